#![deny(warnings)]

use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use lockattr::{Error, LockManager, distributed_lock};

struct Table {
    rows: Vec<u32>,
}

impl Table {
    #[distributed_lock(key = "table", lease = lease)]
    fn rows(&self, add: u32) -> impl Stream<Item = Result<u32, Error>> + Send {
        assert_eq!(lease.key(), "table");
        if add == 0 {
            return stream::iter(&self.rows[..0]).map(shown);
        }
        stream::iter(&self.rows[..]).map(shown)
    }

    #[distributed_lock(key = "table", on_busy = skip)]
    fn boxed(&self) -> BoxStream<'_, u32> {
        Box::pin(stream::iter(self.rows.iter().copied()))
    }
}

fn shown(row: &u32) -> Result<u32, Error> {
    Ok(*row)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let table = Table { rows: vec![1, 2] };
    let both = async {
        let rows = Box::pin(table.rows(1));
        assert_eq!(rows.map(Result::unwrap).collect::<Vec<_>>().await, [1, 2]);
        assert_eq!(table.boxed().collect::<Vec<_>>().await, [1, 2]);
    };
    manager.scope(both).await;
}
