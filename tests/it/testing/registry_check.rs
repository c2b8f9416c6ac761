//! Annotated functions checked against a store when the service starts. No server runs: a check sends nothing.

use lockattr::{AnnotatedLock, Error, LockManager, distributed_lock, registry};

mod jobs {
    use super::*;

    #[distributed_lock(key = "job", ttl = "10s")]
    async fn plain() -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "job:nightly", once_per = "22h")]
    async fn nightly() -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "job:soon", once_per = "30s")]
    async fn soon() -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "job:dated", once_for = "<date>")]
    async fn dated(date: u32) -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "price", share_result = true)]
    async fn price() -> Result<u64, Error> {
        Ok(1)
    }

    #[distributed_lock(key = "report", share_result = false)]
    async fn report() -> Result<u64, Error> {
        Ok(1)
    }

    #[distributed_lock(key = "page", mode = shared)]
    async fn page() -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "partner", permits = 3)]
    async fn partner() -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(keys = ["from", "to"])]
    async fn transfer() -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "long", ttl = "5m", max_hold = "1h")]
    async fn long() -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "unknown", ttl = std::time::Duration::MAX, max_hold = "1ms")]
    async fn unknown() -> Result<(), Error> {
        Ok(())
    }

    #[distributed_lock(key = "scheduler", lead = true, progress_within = "30s")]
    async fn scheduler() -> Result<(), Error> {
        Ok(())
    }

    /// The functions are never called; that they exist is enough.
    pub(super) fn exist() {
        let _once = (nightly, soon, dated);
        let _others = (plain, price, report, page, partner, transfer, long, unknown, scheduler);
    }
}

fn of_this_file() -> impl Iterator<Item = &'static AnnotatedLock> {
    jobs::exist();
    registry().into_iter().filter(|lock| lock.file == file!())
}

/// The functions that the store at `url` refuses, with its reasons.
fn refused(url: &str) -> Vec<(&'static str, String)> {
    let manager = LockManager::builder().url(url).build().unwrap();
    let refused = of_this_file().filter_map(|lock| match lock.check(&manager) {
        Ok(()) => None,
        Err(Error::InvalidOptions(why)) => Some((name(lock), why)),
        Err(error) => panic!("{error:?}"),
    });
    refused.collect()
}

fn name(lock: &AnnotatedLock) -> &'static str {
    lock.function.rsplit("::").next().unwrap()
}

fn names(url: &str) -> Vec<&'static str> {
    refused(url).into_iter().map(|(name, _)| name).collect()
}

/// A manager without a server: building one sends nothing, and neither does a check.
#[tokio::test]
async fn each_store_refuses_the_functions_that_it_cannot_run() {
    assert_eq!(of_this_file().count(), 12);
    assert_eq!(names("memory://"), [""; 0]);
    assert_eq!(names("redis://127.0.0.1:1"), [""; 0]);
    assert_eq!(names("postgres://127.0.0.1:1/db"), [""; 0]);
    assert_eq!(names("mysql://127.0.0.1:1/db"), ["price"]);
    let three = "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3";
    assert_eq!(names(three), ["nightly", "dated", "price", "long"]);
    let sessions = ["nightly", "soon", "dated", "price", "long"];
    for url in ["zookeeper://127.0.0.1:1", "etcd://127.0.0.1:1"] {
        assert_eq!(names(url), sessions, "{url}");
    }
    let alone = ["nightly", "soon", "dated", "price", "page", "partner", "transfer"];
    assert_eq!(names("mysql://127.0.0.1:1/db?lock=session"), alone);
}

#[tokio::test]
async fn a_refusal_names_the_function_its_place_and_what_to_do() {
    let refused = refused("zookeeper://127.0.0.1:1");
    let (_, nightly) = &refused[0];
    let place = of_this_file().nth(1).unwrap().to_string();
    assert!(nightly.starts_with(&format!("{place}: ")), "{nightly}");
    assert!(nightly.contains("once_per"), "{nightly}");
    let (_, price) = &refused[3];
    assert!(
        price.contains("`share_result` needs a store") && price.contains("use Redis"),
        "{price}"
    );
}
