//! Authenticates a session: by user and password (`digest`), from the URL or from a provider.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::Error;
use crate::lock::credentials::CredentialsProvider;
use crate::store::StoreError;

#[derive(Clone)]
pub(super) struct Login {
    /// User and password of the URL.
    pub(super) digest: Option<(String, String)>,
    pub(super) credentials: Option<CredentialsProvider>,
}

impl Login {
    pub(super) fn read(url: &Url, credentials: Option<CredentialsProvider>) -> Result<Self, Error> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let digest = match (url.username(), url.password()) {
            ("", None) => None,
            (user, Some(password)) if !user.is_empty() => Some((decoded(user), decoded(password))),
            _ => {
                let sentence = "a ZooKeeper URL takes both user and password, or neither";
                return Err(Error::InvalidOptions(sentence.into()));
            }
        };
        Ok(Self { digest, credentials })
    }

    pub(super) fn authenticates(&self) -> bool {
        self.digest.is_some() || self.credentials.is_some()
    }

    /// `user:password` for a new session. A provider has `limit` to answer.
    pub(super) async fn current(
        &self,
        address: &str,
        limit: Duration,
    ) -> Result<Option<String>, StoreError> {
        let of_url = self.digest.as_ref();
        let Some(provider) = &self.credentials else {
            return Ok(of_url.map(|(user, password)| [user, ":", password].concat()));
        };
        let current = provider.current(address, limit).await?;
        let user = current.user().or(of_url.map(|(user, _)| user.as_str())).ok_or_else(|| {
            let sentence = "ZooKeeper authenticates users, and the credentials name none: return \
                            `Credentials::new(user, password)`";
            StoreError::new(sentence).not_sent()
        })?;
        Ok(Some([user, ":", current.password()].concat()))
    }
}
