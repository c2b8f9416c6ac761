//! What `#[tokio::test]` and `#[tokio::main]` leave when they stand above.
use lockattr::Error;
/// Was `#[tokio::test] async fn only_one_at_a_time() { … }`.
pub fn only_one_at_a_time() {
    ::lockattr::__private::register! {
        "::only_one_at_a_time", ["test-database"], "on_busy" = "skip"
    }
    let body = async {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::only_one_at_a_time"),
            ::lockattr::__private::KeyBuilder::new().text("test-database"),
            &const { ::lockattr::LockOptions::new().template("test-database") },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: () = loop {};
                        return lockattr_output;
                    }
                    {
                        tokio::task::yield_now().await;
                    }
                },
                ::lockattr::__private::skip::<()>,
            )
            .await
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
pub fn migrate() -> Result<(), Error> {
    ::lockattr::__private::register! {
        "::migrate", ["migration"], "max_hold" = "\"1h\""
    }
    let body = async {
        let lockattr_call = ::lockattr::__private::Call::new(
            ::core::concat!(::core::module_path!(), "::migrate"),
            ::lockattr::__private::KeyBuilder::new().text("migration"),
            &const {
                ::lockattr::LockOptions::new()
                    .template("migration")
                    .max_hold(::core::time::Duration::from_secs(3600))
            },
        );
        ::lockattr::__private::run(
                lockattr_call.begin(),
                async move {
                    #[allow(unreachable_code, clippy::type_complexity)]
                    if false {
                        let lockattr_output: Result<(), Error> = loop {};
                        return lockattr_output;
                    }
                    {
                        tokio::task::yield_now().await;
                        Ok(())
                    }
                },
                ::lockattr::__private::reject::<Result<(), Error>>,
            )
            .await
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
