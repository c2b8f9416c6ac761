use std::rc::Rc;

use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "stock")]
async fn count() -> Result<u32, Error> {
    let counted = Rc::new(17);
    tokio::task::yield_now().await;
    Ok(*counted)
}

fn assert_send(_: impl Send) {}

fn main() {
    assert_send(count());
}
