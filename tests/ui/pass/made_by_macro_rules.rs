#![deny(warnings)]
#![allow(clippy::double_must_use)]

use std::pin::Pin;

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

// The template, its parameter and the body are all in the macro's own text.
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

// Attributes, options and a whole function come from the caller.
macro_rules! with_defaults {
    ($(#[$attr:meta])* ($($options:tt)*) $function:item) => {
        $(#[$attr])*
        #[distributed_lock(defaults(ttl = "30s", retry = 1), $($options)*)]
        $function
    };
}

with_defaults! {
    /// Documented.
    #[must_use]
    (key = "whole:<id>", retry = 2)
    fn whole(id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

// The `impl` block is in the macro; the inner attribute, the key and the body come from the caller.
macro_rules! block {
    ($lock:meta, $key:expr, $body:block) => {
        struct Block(u64);

        #[distributed_lock(key = $key)]
        impl Block {
            #[$lock]
            fn key(&self) -> Result<String, Error> $body

            #[distributed_lock(key = "<self.0>")]
            fn own_key(&self) -> Result<String, Error> $body
        }
    };
}

block!(distributed_lock, "block", { Ok(lockattr::current().unwrap().key().to_owned()) });

// `self` and the bodies come from the caller; the keys are the macro's.
macro_rules! methods {
    ($self:ident, $body:block) => {
        #[derive(Clone)]
        struct Methods(u64);

        impl Methods {
            #[distributed_lock(key = "method:<self.0>")]
            async fn locked(&$self) -> Result<u64, Error> $body

            #[distributed_lock(key = $self.0, when = $self.0 > 0)]
            fn plain($self) -> Result<u64, Error> $body

            #[distributed_lock(key = "<self.0>")]
            fn boxed(&$self) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + '_>> {
                Box::pin(async move $body)
            }
        }
    };
}

methods!(self, { Ok(self.0) });

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(restock(42)).await.unwrap(), 43);
    assert_eq!(manager.scope(name("tea")).await.unwrap(), "name:tea tea");
    assert_eq!(manager.scope(concatenated(1)).await.unwrap(), "product:7 1");
    assert_eq!(manager.scope(expression(1)).await.unwrap(), "42 1");
    let methods = Methods(7);
    assert_eq!(manager.scope(methods.locked()).await.unwrap(), 7);
    assert_eq!(manager.scope(methods.boxed()).await.unwrap(), 7);
    tokio::task::spawn_blocking(move || {
        manager.scope_blocking(|| {
            assert_eq!(whole(7).unwrap(), 7);
            assert_eq!(methods.plain().unwrap(), 7);
            assert_eq!(Block(3).key().unwrap(), "block");
            assert_eq!(Block(3).own_key().unwrap(), "3");
        });
    })
    .await
    .unwrap();
}
