//! Fencing tokens in an object store: a former leader cannot overwrite the object of the next one.
//!
//! S3 (`If-Match`), Google Cloud Storage (generations) and Azure have conditional puts, and nothing
//! that compares numbers. So the object keeps the greatest token in its metadata, and a put says
//! which version of the object it replaces: if another leader writes between the comparison and the
//! put, the put fails and the comparison is repeated. The crate `object_store` has one interface for
//! these services; here it keeps the objects in memory.
//!
//! ```text
//! cargo run --example fenced_object
//! cargo test -p lockattr-examples --example fenced_object
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::fmt;

use lockattr::{FencingToken, LockManager, LockOptions};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, UpdateVersion,
};

/// The entry of the object's metadata; in S3 the header `x-amz-meta-lock-fencing-token`.
const TOKEN: Attribute = Attribute::Metadata(std::borrow::Cow::Borrowed("lock-fencing-token"));

/// Why an object was not written.
#[derive(Debug)]
enum Refused {
    /// A holder with a greater token has written it.
    Overtaken {
        by: FencingToken,
    },
    Store(Error),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overtaken { by } => write!(f, "a holder with the token {by} has written"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

/// The last version of an object that a writer has seen.
struct Seen {
    token: Option<FencingToken>,
    /// What a put has to replace.
    mode: PutMode,
}

/// Reads the token of the object, without its content.
async fn look(store: &dyn ObjectStore, path: &Path) -> Result<Seen, Error> {
    let found = match store.get_opts(path, GetOptions::new().with_head(true)).await {
        Ok(found) => found,
        Err(Error::NotFound { .. }) => return Ok(Seen { token: None, mode: PutMode::Create }),
        Err(error) => return Err(error),
    };
    // An object without a token is older than the tokens.
    let token = found.attributes.get(&TOKEN).and_then(|text| text.parse::<u64>().ok());
    let version =
        UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
    Ok(Seen {
        token: token.and_then(|token| token.try_into().ok()),
        mode: PutMode::Update(version),
    })
}

/// Replaces the version that was seen, if it is still there.
async fn replace(
    store: &dyn ObjectStore,
    path: &Path,
    seen: Seen,
    token: FencingToken,
    text: &str,
) -> Result<(), Error> {
    let mut attributes = Attributes::new();
    attributes.insert(TOKEN, token.to_string().into());
    let options = PutOptions { mode: seen.mode, attributes, ..PutOptions::default() };
    store.put_opts(path, PutPayload::from(text.to_owned()), options).await.map(drop)
}

/// Writes the object, unless a holder with a greater token has written it.
///
/// A repeated write under the same token is accepted, so a put without an answer can be repeated.
async fn write(
    store: &dyn ObjectStore,
    path: &Path,
    token: FencingToken,
    text: &str,
) -> Result<(), Refused> {
    loop {
        let seen = look(store, path).await.map_err(Refused::Store)?;
        if let Some(by) = seen.token.filter(|by| *by > token) {
            return Err(Refused::Overtaken { by });
        }
        match replace(store, path, seen, token, text).await {
            // Another leader has written since: is its token greater?
            Err(Error::Precondition { .. } | Error::AlreadyExists { .. }) => {}
            outcome => return outcome.map_err(Refused::Store),
        }
    }
}

async fn read(store: &dyn ObjectStore, path: &Path) -> Result<String, Error> {
    let bytes = store.get(path).await?.bytes().await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    let manager = LockManager::connect(&url).await?;
    let (store, path) = (InMemory::new(), Path::from("reports/latest"));

    let former = manager.acquire("leader", LockOptions::new()).await?;
    write(&store, &path, former.fencing_token(), "Monday, by the first leader").await?;
    // The leader stops for longer than its lease lasts; here an operator takes the lock.
    if let Some(seen) = manager.holder("leader").await? {
        manager.force_release("leader", &seen).await?;
    }
    let leader = manager.acquire("leader", LockOptions::new()).await?;
    write(&store, &path, leader.fencing_token(), "Tuesday, by the second leader").await?;

    // The first leader continues, and does not know yet.
    match write(&store, &path, former.fencing_token(), "Monday, corrected").await {
        Ok(()) => println!("the late report was published"),
        Err(refused) => println!("the late report was REFUSED: {refused}"),
    }
    println!("published: {}", read(&store, &path).await?);
    leader.release().await?;
    manager.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u64) -> FencingToken {
        FencingToken::try_from(number).unwrap()
    }

    fn fresh() -> (InMemory, Path) {
        (InMemory::new(), Path::from("reports/latest"))
    }

    #[tokio::test]
    async fn a_smaller_token_is_refused_and_the_object_stays() {
        let (store, path) = fresh();
        write(&store, &path, token(5), "first").await.unwrap();
        write(&store, &path, token(5), "again").await.unwrap();
        write(&store, &path, token(6), "next").await.unwrap();
        let late = write(&store, &path, token(5), "late").await;
        assert!(matches!(late, Err(Refused::Overtaken { by }) if by == token(6)), "{late:?}");
        assert_eq!(read(&store, &path).await.unwrap(), "next");
    }

    /// Red without: the version in the put.
    #[tokio::test]
    async fn a_write_between_the_comparison_and_the_put_is_not_overwritten() {
        let (store, path) = fresh();
        // Both for the first version and for a later one.
        for next in [6, 8] {
            let seen = look(&store, &path).await.unwrap();
            write(&store, &path, token(next), "next").await.unwrap();
            let late = replace(&store, &path, seen, token(next - 1), "late").await;
            let late = late.expect_err("the object has changed");
            assert!(
                matches!(late, Error::Precondition { .. } | Error::AlreadyExists { .. }),
                "{late}"
            );
            assert_eq!(read(&store, &path).await.unwrap(), "next");
        }
    }

    #[tokio::test]
    async fn an_object_from_before_the_tokens_is_replaced() {
        let (store, path) = fresh();
        store.put(&path, PutPayload::from("old")).await.unwrap();
        write(&store, &path, token(1), "new").await.unwrap();
        assert_eq!(read(&store, &path).await.unwrap(), "new");
        assert_eq!(look(&store, &path).await.unwrap().token, Some(token(1)));
    }

    /// Whatever the order in which they write.
    #[tokio::test(flavor = "multi_thread")]
    async fn of_many_leaders_the_last_one_has_the_last_word() {
        let (store, path) = fresh();
        let store = std::sync::Arc::new(store);
        let writers: Vec<_> = (1..=32)
            .map(|number| {
                let (store, path) = (store.clone(), path.clone());
                tokio::spawn(async move {
                    let text = number.to_string();
                    // Refused, if a later one was faster.
                    write(&*store, &path, token(number), &text).await.is_ok()
                })
            })
            .collect();
        let mut last = false;
        for writer in writers {
            last = writer.await.unwrap();
        }
        assert!(last, "the greatest token is never refused");
        assert_eq!(read(&*store, &path).await.unwrap(), "32");
    }
}
