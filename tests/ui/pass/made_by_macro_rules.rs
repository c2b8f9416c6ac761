#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

macro_rules! locked {
    ($vis:vis $name:ident($param:ident: $ty:ty) -> $output:ty, $key:literal, $ttl:expr, $body:block) => {
        #[distributed_lock(key = $key, ttl = $ttl, on_busy = error)]
        $vis async fn $name($param: $ty) -> $output $body
    };
}

locked!(pub(crate) restock(id: u64) -> Result<u64, Error>, "product:<id>", "5s", {
    assert_eq!(lockattr::current().unwrap().key(), "product:42");
    Ok(id + 1)
});

// The template, its parameter and the body all come from the macro's own text.
macro_rules! named {
    ($name:ident) => {
        #[distributed_lock(key = "name:<name>", lease = lease)]
        async fn $name(name: &str) -> Result<String, Error> {
            Ok(format!("{} {name}", lease.key()))
        }
    };
}

named!(name);

macro_rules! key_from {
    ($name:ident, $key:expr) => {
        #[distributed_lock(key = $key)]
        async fn $name(id: u64) -> Result<String, Error> {
            Ok(format!("{} {id}", lockattr::current().unwrap().key()))
        }
    };
}

key_from!(concatenated, concat!("product", ":", 7));
key_from!(expression, 6 * 7);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(restock(42)).await.unwrap(), 43);
    assert_eq!(manager.scope(name("tea")).await.unwrap(), "name:tea tea");
    assert_eq!(manager.scope(concatenated(1)).await.unwrap(), "product:7 1");
    assert_eq!(manager.scope(expression(1)).await.unwrap(), "42 1");
}
