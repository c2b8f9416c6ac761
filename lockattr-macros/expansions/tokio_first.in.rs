//! What `#[tokio::test]` and `#[tokio::main]` leave when they stand above.

use lockattr::Error;

/// Was `#[tokio::test] async fn only_one_at_a_time() { … }`.
#[lockattr::distributed_lock(key = "test-database", on_busy = skip)]
pub fn only_one_at_a_time() {
    let body = async {
        tokio::task::yield_now().await;
    };
    tokio::pin!(body);
    let body: ::core::pin::Pin<&mut dyn ::core::future::Future<Output = ()>> = body;
    #[allow(
        clippy::expect_used,
        clippy::diverging_sub_expression,
        clippy::needless_return,
        clippy::unwrap_in_result
    )]
    {
        use tokio::runtime::Builder;
        return Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("Failed building the Runtime")
            .block_on(body);
    }
}

/// Was `#[tokio::main] async fn migrate() -> Result<(), Error> { … }`.
#[lockattr::distributed_lock(key = "migration", max_hold = "1h")]
pub fn migrate() -> Result<(), Error> {
    let body = async {
        tokio::task::yield_now().await;
        Ok(())
    };
    let body = {
        if false {
            let _: &dyn ::core::future::Future<Output = Result<(), Error>> = &body;
        }
        body
    };
    #[allow(
        clippy::expect_used,
        clippy::diverging_sub_expression,
        clippy::needless_return,
        clippy::unwrap_in_result
    )]
    {
        use tokio::runtime::Builder;
        return Builder::new_multi_thread()
            .enable_all()
            .build()
            .expect("Failed building the Runtime")
            .block_on(body);
    }
}
