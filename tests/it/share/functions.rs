//! Two functions that are not the same lock one key: neither gets the result of the other.

use std::any::type_name;
use std::sync::atomic::{AtomicU32, Ordering};

use lockattr::{Error, LockManager, LockOptions, distributed_lock};

use super::pair::{Gate, Pair};

struct Amazon;
struct Ebay;

impl Amazon {
    #[distributed_lock(key = "7", share_result = true)]
    async fn price(gate: &Gate) -> Result<String, Error> {
        says(gate, "amazon").await
    }
}

impl Ebay {
    #[distributed_lock(key = "7", share_result = true)]
    async fn price(gate: &Gate) -> Result<String, Error> {
        says(gate, "ebay").await
    }
}

trait Shop {
    async fn offer(gate: &Gate) -> Result<String, Error>;

    #[distributed_lock(key = "7", share_result = true)]
    async fn default_offer(gate: &Gate) -> Result<String, Error> {
        says(gate, type_name::<Self>()).await
    }
}

impl Shop for Amazon {
    #[distributed_lock(key = "7", share_result = true)]
    async fn offer(gate: &Gate) -> Result<String, Error> {
        says(gate, "amazon").await
    }
}

impl Shop for Ebay {
    #[distributed_lock(key = "7", share_result = true)]
    async fn offer(gate: &Gate) -> Result<String, Error> {
        says(gate, "ebay").await
    }
}

struct Table<T>(std::marker::PhantomData<T>);

impl<T> Table<T> {
    #[distributed_lock(key = "7", share_result = true)]
    async fn rows(gate: &Gate) -> Result<String, Error> {
        says(gate, type_name::<T>()).await
    }
}

#[distributed_lock(key = "7", share_result = true)]
async fn count<T>(gate: &Gate) -> Result<String, Error> {
    says(gate, type_name::<T>()).await
}

#[distributed_lock(key = "7", share_result = true)]
async fn page<const N: usize>(gate: &Gate) -> Result<String, Error> {
    says(gate, &N.to_string()).await
}

#[distributed_lock(key = "7", share_result = true)]
async fn given(name: impl ToString, gate: &Gate) -> Result<String, Error> {
    says(gate, &name.to_string()).await
}

/// Functions of one name, at one path of modules.
macro_rules! in_a_block {
    ($says:literal, $gate:expr) => {{
        #[distributed_lock(key = "7", share_result = true)]
        async fn price(gate: Gate) -> Result<String, Error> {
            says(&gate, $says).await
        }
        price($gate.clone())
    }};
}

fn boxed<'a>(
    says_what: &'a str,
    gate: &'a Gate,
) -> std::pin::Pin<Box<dyn Future<Output = Result<String, Error>> + 'a>> {
    Box::pin(says(gate, says_what))
}

#[async_trait::async_trait]
trait Boxed {
    #[distributed_lock(key = "7", share_result = true)]
    async fn price(&self, gate: &Gate) -> Result<String, Error>
    where
        Self: Sync,
    {
        says(gate, type_name::<Self>()).await
    }
}

impl Boxed for Amazon {}
impl Boxed for Ebay {}

async fn says(gate: &Gate, what: &str) -> Result<String, Error> {
    let _open = gate.acquire().await.unwrap();
    Ok(what.to_owned())
}

async fn each_gets_its_own(pair: Pair) {
    let gate = &pair.gate;
    let with = |manager: &LockManager| manager.clone();
    let (one, other) = (with(&pair.one), with(&pair.other));
    macro_rules! differ {
        ($first:expr, $second:expr) => {
            let (first, second) = pair.call("7", $first, $second).await;
            assert_ne!(first, second, "{}", stringify!($first));
        };
    }
    differ!(Amazon::price(gate), Ebay::price(gate));
    differ!(<Amazon as Shop>::offer(gate), <Ebay as Shop>::offer(gate));
    differ!(<Amazon as Shop>::default_offer(gate), <Ebay as Shop>::default_offer(gate));
    differ!(Table::<Amazon>::rows(gate), Table::<Ebay>::rows(gate));
    differ!(count::<Amazon>(gate), count::<Ebay>(gate));
    differ!(count::<&Amazon>(gate), count::<&Ebay>(gate));
    differ!(page::<1>(gate), page::<2>(gate));
    differ!(given("a text", gate), given(7, gate));
    differ!(in_a_block!("one", gate), in_a_block!("other", gate));
    differ!(Boxed::price(&Amazon, gate), Boxed::price(&Ebay, gate));
    differ!(
        async {
            let body = async |_: &lockattr::Lease| boxed("one", gate).await;
            one.with_shared_result("7", LockOptions::new(), body).await?
        },
        async {
            let body = async |_: &lockattr::Lease| boxed("other", gate).await;
            other.with_shared_result("7", LockOptions::new(), body).await?
        }
    );
}

/// Red without: the type of a closure of the function, in what tells results apart.
#[tokio::test(flavor = "multi_thread")]
async fn in_memory_functions_that_differ_by_type_or_generic_argument_never_share() {
    each_gets_its_own(Pair::in_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_redis_functions_that_differ_by_type_or_generic_argument_never_share() {
    each_gets_its_own(Pair::over_redis().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_postgres_functions_that_differ_by_type_or_generic_argument_never_share() {
    each_gets_its_own(Pair::over_postgres().await).await;
}

/// Generic, and with a borrow: still one function.
#[distributed_lock(key = "7", share_result = true)]
async fn run<T>(gate: &Gate, runs: &AtomicU32, _of: &T) -> Result<u32, Error> {
    let _open = gate.acquire().await.unwrap();
    Ok(runs.fetch_add(1, Ordering::Relaxed) + 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_function_with_the_same_generic_arguments_shares_whatever_it_borrows() {
    let (pair, runs) = (Pair::in_memory(), AtomicU32::new(0));
    let local = String::from("borrowed");
    let borrowed = &*local;
    let calls = (run(&pair.gate, &runs, &"static"), run(&pair.gate, &runs, &borrowed));
    assert_eq!(pair.call("7", calls.0, calls.1).await, (1, 1));
}
