//! Authenticates the store: a user and its password become a token, once for each connection.

use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use super::call::{AUTHENTICATE, unary};
use super::config::{Config, Login};
use super::failure::{Failure, Kind};
use super::messages::{AuthenticateRequest, AuthenticateResponse};
use crate::platform::sync::Mutex;
use crate::store::{Credentials, StoreError};

/// The login that the servers last accepted. It serves a provider that fails or does not answer:
/// otherwise a token that expires would end the session, and with it all locks.
#[derive(Default)]
pub(super) struct Accepted(Mutex<Option<Login>>);

impl Config {
    /// Whether the store sends a token with its requests.
    pub(super) fn authenticates(&self) -> bool {
        self.login.is_some() || self.timing.credentials.is_some()
    }

    /// The token for a new connection to this member; `None` without a login.
    pub(super) async fn token(
        &self,
        channel: &Channel,
        address: &str,
        accepted: &Accepted,
    ) -> Result<Option<MetadataValue<Ascii>>, Failure> {
        let Some(provider) = &self.timing.credentials else {
            return match &self.login {
                Some(login) => self.authenticate(channel, address, login).await.map(Some),
                None => Ok(None),
            };
        };
        let limit = self.timing.connect_timeout;
        let first = match provider.current(&self.address, limit).await {
            Ok(first) => first,
            Err(error) => return self.token_as_before(channel, address, accepted, error).await,
        };
        let mut login = self.login_with(&first)?;
        let mut outcome = self.authenticate(channel, address, &login).await;
        // The password may have changed on its way to the server.
        if outcome.as_ref().is_err_and(|failure| failure.kind == Kind::Refused) {
            let second = provider.current(&self.address, limit).await.map_err(Failure::not_sent)?;
            if second != first {
                login = self.login_with(&second)?;
                outcome = self.authenticate(channel, address, &login).await;
            }
        }
        let token = outcome?;
        *accepted.0.lock() = Some(login);
        Ok(Some(token))
    }

    /// The token for the login that the servers last accepted, because the provider has failed with
    /// this error.
    async fn token_as_before(
        &self,
        channel: &Channel,
        address: &str,
        accepted: &Accepted,
        error: StoreError,
    ) -> Result<Option<MetadataValue<Ascii>>, Failure> {
        let Some(login) = accepted.0.lock().clone() else { return Err(Failure::not_sent(error)) };
        tracing::warn!(%error, "the last login that the servers accepted is used again");
        match self.authenticate(channel, address, &login).await {
            Err(failure) if failure.kind == Kind::Refused => Err(Failure::not_sent(error)),
            outcome => outcome.map(Some),
        }
    }

    fn login_with(&self, credentials: &Credentials) -> Result<Login, Failure> {
        let of_url = self.login.as_ref().map(|login| login.user.as_str());
        let user = credentials.user().or(of_url).ok_or_else(|| {
            let sentence = "etcd authenticates users, and the credentials name none: return \
                            `Credentials::new(user, password)`";
            Failure::not_sent(StoreError::new(sentence))
        })?;
        Ok(Login { user: user.to_owned(), password: credentials.password().to_owned() })
    }

    async fn authenticate(
        &self,
        channel: &Channel,
        address: &str,
        login: &Login,
    ) -> Result<MetadataValue<Ascii>, Failure> {
        let request =
            AuthenticateRequest { name: login.user.clone(), password: login.password.clone() };
        let limit = self.timing.response_timeout;
        let response = timeout(limit, unary(channel, None, address, AUTHENTICATE, request)).await;
        let no_response =
            |_| Failure::unknown(format!("no answer from {address} within {limit:?}"));
        let response: AuthenticateResponse = response.map_err(no_response)??;
        let token = response.token.parse();
        token.map_err(|_| {
            Failure::unknown(format!("{address} sent an authentication token that is not ASCII"))
        })
    }
}
