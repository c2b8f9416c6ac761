#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

struct Order {
    number: u64,
    lines: Vec<String>,
}

impl Order {
    #[distributed_lock(key = "order:<self.number>")]
    async fn into_lines(mut self) -> Result<Vec<String>, Error> {
        self.lines.push(lockattr::current().unwrap().key().to_owned());
        Ok(self.lines)
    }
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let order = Order { number: 42, lines: vec!["tea".to_owned()] };
    assert_eq!(manager.scope(order.into_lines()).await.unwrap(), ["tea", "order:42"]);
}
