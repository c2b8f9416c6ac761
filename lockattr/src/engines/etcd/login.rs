//! Authenticates the store: a user and its password become a token, once for each connection.

use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use super::call::{AUTHENTICATE, unary};
use super::config::{Config, Login};
use super::failure::{Failure, Kind};
use super::messages::{AuthenticateRequest, AuthenticateResponse};
use crate::store::{Credentials, StoreError};

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
    ) -> Result<Option<MetadataValue<Ascii>>, Failure> {
        let Some(provider) = &self.timing.credentials else {
            return match &self.login {
                Some(login) => self.authenticate(channel, address, login).await.map(Some),
                None => Ok(None),
            };
        };
        let first = provider.current().await.map_err(Failure::not_sent)?;
        let outcome = self.authenticate(channel, address, &self.login_with(&first)?).await;
        let outcome = match outcome {
            // The password may have changed on its way to the server.
            Err(failure) if failure.kind == Kind::Refused => {
                let second = provider.current().await.map_err(Failure::not_sent)?;
                if second == first {
                    return Err(failure);
                }
                self.authenticate(channel, address, &self.login_with(&second)?).await
            }
            outcome => outcome,
        };
        outcome.map(Some)
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
