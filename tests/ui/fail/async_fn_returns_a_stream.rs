use futures_util::stream::{self, Stream};
use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "export")]
async fn rows() -> Result<impl Stream<Item = u32>, Error> {
    Ok(stream::iter(0..3))
}

fn main() {
    drop(rows());
}
