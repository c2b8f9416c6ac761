use futures_util::stream::{self, Stream};
use lockattr::distributed_lock;

#[distributed_lock(key = "export")]
fn rows() -> impl Stream<Item = u32> {
    stream::iter(0..3)
}

fn main() {
    drop(rows());
}
