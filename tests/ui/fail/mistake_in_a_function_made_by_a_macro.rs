use lockattr::{Error, distributed_lock};

macro_rules! locked {
    ($name:ident, $ttl:expr) => {
        #[distributed_lock(key = "stock", ttl = $ttl)]
        async fn $name() -> Result<(), Error> {
            Ok(())
        }
    };
}

locked!(restock, "ten seconds");

fn main() {}
