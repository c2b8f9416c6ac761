#![deny(warnings)]
#![allow(clippy::too_many_arguments, clippy::toplevel_ref_arg)]

use lockattr::{Error, LockManager, distributed_lock};

struct Order {
    customer: u64,
    lines: Vec<u32>,
}

#[distributed_lock(key = "<shop>:<customer>:<first>:<line>:<whole.0>")]
async fn ship(
    (shop, _): (&str, u8),
    Order { customer, mut lines }: Order,
    [first, ..]: [u8; 3],
    &line: &u32,
    whole @ (_, _): (u8, u8),
    ref mut name: String,
    mut shipped: u32,
    _: u64,
) -> Result<u32, Error> {
    assert_eq!(lockattr::current().unwrap().key(), "corner:42:7:1:5");
    lines.push(line);
    name.push('!');
    assert_eq!(name, "tea!");
    shipped += lines.iter().sum::<u32>();
    Ok(shipped + u32::from(whole.1))
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let order = Order { customer: 42, lines: vec![10, 100] };
    let shipping = ship(("corner", 0), order, [7, 8, 9], &1, (5, 6), "tea".into(), 1000, 0);
    assert_eq!(manager.scope(shipping).await.unwrap(), 1117);
}
