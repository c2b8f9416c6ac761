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
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

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

    /// The credentials that are valid now.
    ///
    /// # Errors
    ///
    /// A [`StoreError`] that says that no request was sent.
    pub(crate) async fn current(&self) -> Result<Credentials, StoreError> {
        (self.0)().await
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
