#![deny(warnings)]

use std::cell::RefCell;
use std::rc::Rc;

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "product:<id>")]
async fn restock(id: Rc<str>, log: &RefCell<Vec<String>>) -> Result<usize, Error> {
    let owned = Rc::clone(&id);
    tokio::task::yield_now().await;
    log.borrow_mut().push(format!("{} {owned}", lockattr::current().unwrap().key()));
    Ok(Rc::strong_count(&id))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let log = RefCell::default();
    assert_eq!(manager.scope(restock("42".into(), &log)).await.unwrap(), 2);
    assert_eq!(log.into_inner(), ["product:42 42"]);
}
