//! How the connections of a store are opened: with which login, and over which TLS.

use std::any::TypeId;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Connection, Error, NoTls, Socket};

use super::config::Config;
use super::failure::failure_of;
use super::hosts::{self, OneHost};
use super::negotiation::{Negotiated, negotiation, reaches_a_network};
use crate::engines::dial::{handshake_limit, lookup, no_answer, reachable_of};
use crate::store::StoreError;

/// Opens connections. Hides the type of the TLS, which the program may choose.
pub(super) trait Connect: Send + Sync {
    /// Whether it can encrypt.
    fn has_tls(&self) -> bool;

    /// Connects to the server of the store with this `address`, by the `sslmode` in `server`. With
    /// `elsewhere`, that is another machine.
    fn connect<'a>(
        &'a self,
        server: &'a tokio_postgres::Config,
        address: &'a str,
        elsewhere: bool,
    ) -> BoxFuture<'a, Result<Connected, Error>>;
}

/// A client, and what reads and writes for it.
pub(super) type Connected = (Client, Box<dyn Messages>);

/// A [`Connection`], whatever its TLS.
pub(super) trait Messages: Send {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>>;
}

impl<S, T> Messages for Connection<S, T>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
    T: AsyncRead + AsyncWrite + Unpin + Send,
{
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> {
        Connection::poll_message(self, cx)
    }
}

/// Connects by a TLS implementation for the client.
pub(super) struct By<T>(pub(super) T);

impl<T> Connect for By<T>
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    fn has_tls(&self) -> bool {
        TypeId::of::<T>() != TypeId::of::<NoTls>()
    }

    fn connect<'a>(
        &'a self,
        server: &'a tokio_postgres::Config,
        address: &'a str,
        elsewhere: bool,
    ) -> BoxFuture<'a, Result<Connected, Error>> {
        let tls = self.0.clone();
        async move {
            let connected: Connected =
                match negotiation(server, self.has_tls(), elsewhere.then_some(address)) {
                    Some((server, how)) => boxed(server.connect(Negotiated { tls, how }).await?),
                    None => boxed(server.connect(tls).await?),
                };
            Ok(connected)
        }
        .boxed()
    }
}

fn boxed<S, T>((client, connection): (Client, Connection<S, T>)) -> Connected
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    (client, Box::new(connection))
}

/// The client's settings for one connection.
pub(super) struct Login<'a>(Cow<'a, tokio_postgres::Config>);

impl Config {
    /// Asks the credentials provider, if there is one. It has `connect_timeout` to answer.
    pub(super) async fn login(&self) -> Result<Login<'_>, StoreError> {
        let Some(provider) = &self.timing.credentials else {
            return Ok(Login(Cow::Borrowed(&self.server)));
        };
        let current = provider.current(&self.address, self.timing.connect_timeout).await?;
        let mut server = self.server.clone();
        if let Some(user) = current.user() {
            server.user(user);
        }
        server.password(current.password());
        Ok(Login(Cow::Owned(server)))
    }

    /// Connects to the first host that lets the store in.
    pub(super) async fn connect(&self, login: &Login<'_>) -> Result<Connected, StoreError> {
        let mut failures = Vec::new();
        for host in hosts::of(&login.0) {
            match self.connect_to(host).await {
                Ok(connected) => return Ok(connected),
                Err(failure) => failures.push(failure),
            }
        }
        Err(self.all(failures))
    }

    /// Connects to the first address of a host that lets the store in: one may be a standby, or starting.
    async fn connect_to(&self, host: OneHost) -> Result<Connected, StoreError> {
        let OneHost { config, name } = host;
        // By the name, before it is looked up: what a name server says proves nothing.
        let elsewhere = reaches_a_network(&config);
        let Some((name, port)) = name else {
            return self.connect_at(&config, &self.address, elsewhere).await;
        };
        let failed = |error: io::Error| {
            StoreError::new(format!("{}: {error}", self.address)).with_source(error)
        };
        let (mut left, mut failures) = (lookup(&name, port).await.map_err(failed)?, Vec::new());
        while !left.is_empty() {
            let found = match reachable_of(left.clone(), self.timing.connect_timeout).await {
                Ok(found) => found,
                Err(error) => {
                    failures.push(failed(error));
                    break;
                }
            };
            left.retain(|address| *address != found);
            let (mut config, mut at) = (config.clone(), self.address.clone());
            config.hostaddr(found.ip());
            if name != found.ip().to_string() {
                at = format!("{at} at {found}");
            }
            match self.connect_at(&config, &at, elsewhere).await {
                Ok(connected) => return Ok(connected),
                Err(failure) => failures.push(failure),
            }
        }
        Err(self.all(failures))
    }

    /// `at` is the address in the error of a server that did not answer.
    async fn connect_at(
        &self,
        server: &tokio_postgres::Config,
        at: &str,
        elsewhere: bool,
    ) -> Result<Connected, StoreError> {
        let limit = self.timing.connect_timeout;
        // The client's own limit covers only the attempt.
        let limit = limit.saturating_add(handshake_limit(limit));
        match timeout(limit, self.connector.connect(server, &self.address, elsewhere)).await {
            Ok(Err(error)) if error.as_db_error().is_some() => {
                Err(failure_of(&self.address, error).error)
            }
            Ok(connected) => connected.map_err(|error| failure_of(at, error).error),
            Err(_) => Err(StoreError::new(format!("{at}: {}", no_answer(limit)))),
        }
    }

    /// One error for all that were tried.
    fn all(&self, mut failures: Vec<StoreError>) -> StoreError {
        let sentences: Vec<_> = failures.iter().map(ToString::to_string).collect();
        match failures.pop() {
            Some(only) if failures.is_empty() => only,
            Some(last) => StoreError::new(sentences.join("; ")).with_source(last),
            None => StoreError::new(format!("{}: no host", self.address)),
        }
    }
}

/// What a [`Config`] holds.
pub(super) type Connector = Arc<dyn Connect>;
