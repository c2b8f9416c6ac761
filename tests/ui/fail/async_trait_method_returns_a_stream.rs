use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use lockattr::{Error, distributed_lock};

#[async_trait]
trait Shop {
    async fn export(&self) -> Result<BoxStream<'_, u32>, Error>;
}

struct Corner {
    rows: Vec<u32>,
}

#[async_trait]
impl Shop for Corner {
    #[distributed_lock(key = "export")]
    async fn export(&self) -> Result<BoxStream<'_, u32>, Error> {
        Ok(stream::iter(self.rows.iter().copied()).boxed())
    }
}

fn main() {
    drop(Corner { rows: Vec::new() }.export());
}
