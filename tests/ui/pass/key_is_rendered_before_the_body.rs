#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

struct Order {
    customer: String,
    lines: Vec<u32>,
}

// The key borrows its arguments: the body may move, destructure and change them.
#[distributed_lock(key = "<order.customer>:<order.lines[0]>:<*quantity>", lease = lease)]
async fn ship(order: Order, quantity: &mut u32) -> Result<(String, Vec<u32>), Error> {
    *quantity += 1;
    let Order { mut customer, lines } = order;
    customer.push_str("'s ");
    customer.push_str(lease.key());
    Ok((customer, lines))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let order = Order { customer: "Ada".to_owned(), lines: vec![7] };
    let mut quantity = 1;
    let (key, lines) = manager.scope(ship(order, &mut quantity)).await.unwrap();
    assert_eq!((key.as_str(), lines, quantity), ("Ada's Ada:7:1", vec![7], 2));
}
