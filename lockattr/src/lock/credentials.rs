//! Credentials that rotate: a provider that is asked for the current ones.
#![cfg_attr(
    not(any(
        feature = "redis",
        feature = "postgres",
        feature = "mysql",
        feature = "zookeeper",
        feature = "etcd"
    )),
    expect(dead_code, reason = "only a store with a server asks for them")
)]

use std::error::Error as StdError;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use super::error::StoreError;

/// What a store presents to its server: a password, and the user whose password it is.
///
/// The debug output hides the password.
///
/// ```
/// use lockattr::store::Credentials;
///
/// let credentials = Credentials::new("locks", "secret");
/// assert!(!format!("{credentials:?}").contains("secret"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Option<String>,
    password: String,
}

impl Credentials {
    /// A user and its password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// A password for the user that the URL or the client's configuration names, or for the server's
    /// default user.
    ///
    /// ```
    /// use lockattr::store::Credentials;
    ///
    /// assert_eq!(Credentials::password_only("secret").user(), None);
    /// ```
    pub fn password_only(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }

    /// The user, if these credentials name one.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(crate) fn password(&self) -> &str {
        &self.password
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Returns the current credentials whenever a store needs them.
#[derive(Clone)]
pub(crate) struct CredentialsProvider(Arc<dyn Fn() -> Answer + Send + Sync>);

type Answer = BoxFuture<'static, Result<Credentials, StoreError>>;

impl CredentialsProvider {
    pub(crate) fn new<F, A, E>(provide: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        Self(Arc::new(move || {
            let answer = provide();
            async move { answer.await.map_err(|error| unavailable(error.into())) }.boxed()
        }))
    }

    /// The credentials that are valid now, for the server at `address`. The provider has `limit` to
    /// answer, and a provider that panics costs no more than one that fails: a connection's task goes
    /// on.
    ///
    /// # Errors
    ///
    /// A [`StoreError`] that says that no request was sent.
    pub(crate) async fn current(
        &self,
        address: &str,
        limit: Duration,
    ) -> Result<Credentials, StoreError> {
        // The function may panic as well as its future.
        let answer = AssertUnwindSafe(async { (self.0)().await }).catch_unwind();
        match timeout(limit, answer).await {
            Ok(Ok(answer)) => answer,
            // What it panicked with may quote a secret.
            Ok(Err(_)) => {
                let sentence = format!("{address}: the credentials provider panicked");
                Err(StoreError::new(sentence).not_sent())
            }
            Err(_) => {
                let sentence = format!(
                    "{address}: the credentials provider has not answered within {limit:?}"
                );
                Err(StoreError::new(sentence).not_sent())
            }
        }
    }
}

/// The provider's own error is the source, and not part of the message: it may quote a secret.
fn unavailable(error: Box<dyn StdError + Send + Sync>) -> StoreError {
    StoreError::new("the credentials provider failed; see the error's source")
        .not_sent()
        .with_boxed_source(error)
}

impl fmt::Debug for CredentialsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialsProvider")
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    type Outcome = Result<Credentials, std::io::Error>;

    const LIMIT: Duration = Duration::from_secs(1);

    async fn refused(provider: CredentialsProvider) -> String {
        let error = provider.current("etcd://etcd1/", LIMIT).await.unwrap_err();
        assert!(error.is_not_sent());
        format!("{error} {error:?}")
    }

    /// Red without: the `timeout` in `current`.
    #[tokio::test(start_paused = true)]
    async fn a_provider_that_hangs_is_given_up() {
        let provider = CredentialsProvider::new(pending::<Outcome>);
        let asked = timeout(LIMIT * 2, refused(provider)).await;
        let text = asked.expect("the limit is one second");
        let expected = "etcd://etcd1/: the credentials provider has not answered within 1s";
        assert!(text.contains(expected), "{text}");
    }

    /// Red without: the `catch_unwind` in `current`, or with it around the future alone.
    #[tokio::test]
    async fn a_provider_that_panics_is_named_and_is_not_quoted() {
        fn panics_at_once() -> std::future::Ready<Outcome> {
            panic!("no ticket for s3cret")
        }
        let function = CredentialsProvider::new(panics_at_once);
        let future = CredentialsProvider::new(|| async { panics_at_once().await });
        for provider in [function, future] {
            let text = refused(provider).await;
            assert!(text.contains("the credentials provider panicked"), "{text}");
            assert!(!text.contains("s3cret"), "{text}");
        }
    }
}
