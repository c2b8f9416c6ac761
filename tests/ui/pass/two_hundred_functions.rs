#![deny(warnings)]

//! As many annotated functions as a large service has, with the same names in twenty modules.

use lockattr::LockManager;

macro_rules! functions {
    ($($function:ident)*) => {
        use lockattr::{Error, distributed_lock};

        $(
            #[distributed_lock(key = "product:<id>", ttl = "10s", retry = 10)]
            pub(super) async fn $function(id: u64, quantity: u32) -> Result<u64, Error> {
                tokio::task::yield_now().await;
                Ok(id + u64::from(quantity))
            }
        )*

        pub(super) async fn sum() -> Result<u64, Error> {
            let mut sum = 0;
            $(sum += $function(1, 2).await?;)*
            Ok(sum)
        }
    };
}

macro_rules! modules {
    ($($module:ident)*) => {
        $(
            mod $module {
                functions! { f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 }
            }
        )*

        async fn sum() -> Result<u64, lockattr::Error> {
            let mut sum = 0;
            $(sum += $module::sum().await?;)*
            Ok(sum)
        }
    };
}

modules! { a b c d e f g h i j k l m n o p q r s t }

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    assert_eq!(manager.scope(sum()).await.unwrap(), 600);
}
