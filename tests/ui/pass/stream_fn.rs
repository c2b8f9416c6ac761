#![deny(warnings)]

use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use lockattr::{Error, Lease, LockManager, distributed_lock};

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

    #[distributed_lock(key = "table", lease = lease)]
    fn leased(&self) -> impl Stream<Item = Result<(u32, u64), Error>> + Send {
        stream::iter(&self.rows).then(move |row| {
            let lease = lease.clone();
            async move { lease.ensure_held().map(|()| (*row, lease.fencing_token().into())) }
        })
    }

    #[distributed_lock(key = "table", lease = lease)]
    fn leased_boxed(&self) -> BoxStream<'_, Result<String, Error>> {
        stream::once(async move { append(&lease).await }).boxed()
    }

    #[distributed_lock(key = "table", on_busy = skip)]
    fn boxed(&self) -> BoxStream<'_, u32> {
        Box::pin(stream::iter(self.rows.iter().copied()))
    }
}

#[distributed_lock(key = "table", lease = held, on_busy = return(stream::iter(vec![Ok(None)])))]
fn owned() -> impl Stream<Item = Result<Option<Lease>, Error>> + Send + 'static {
    stream::unfold(Some(held), async |held| Some((Ok(Some(held?)), None)))
}

async fn append(lease: &Lease) -> Result<String, Error> {
    lease.ensure_held()?;
    Ok(lease.key().to_owned())
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
        let leased: Vec<_> = Box::pin(table.leased()).map(Result::unwrap).collect().await;
        assert!(matches!(leased[..], [(1, token), (2, same)] if token == same && token > 0));
        let keys: Vec<_> = table.leased_boxed().map(Result::unwrap).collect().await;
        assert_eq!(keys, ["table"]);
        let leases: Vec<_> = Box::pin(owned()).map(Result::unwrap).collect().await;
        let lease = leases[0].as_ref().unwrap();
        assert!(lease.ensure_held().is_err(), "released with the stream");
        assert_eq!(table.boxed().collect::<Vec<_>>().await, [1, 2]);
    };
    manager.scope(both).await;
}
