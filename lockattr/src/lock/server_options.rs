//! How a store talks to its server: connections, timeouts, credentials, and files for TLS.

use std::error::Error as StdError;
use std::path::PathBuf;
use std::time::Duration;

use super::century::at_most_a_century;
use super::credentials::{Credentials, CredentialsProvider};
#[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
use super::settings::{duration, number};
use crate::Error;

/// How a store talks to its server.
///
/// A URL's query and [`LockManagerBuilder`](crate::LockManagerBuilder) set the same for a store that is
/// opened by its URL. This is for a store that the program makes from a client of its own.
///
/// ```
/// use std::time::Duration;
/// use lockattr::store::ServerOptions;
///
/// let options = ServerOptions::new().connections(4).response_timeout(Duration::from_millis(500));
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ServerOptions {
    /// `None` for the store's default.
    connections: Option<usize>,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    /// After this long without an answer, the client checks whether the server is alive.
    pub(crate) heartbeat: Duration,
    /// How many replicas must have a lease before it counts.
    pub(crate) replicas: usize,
    /// The schema with the tables in a PostgreSQL database; `None` for `public`.
    pub(crate) schema: Option<String>,
    pub(crate) credentials: Option<CredentialsProvider>,
    pub(crate) tls: TlsFiles,
}

/// The PEM files for connections with TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsFiles {
    /// The trusted authorities, in place of the system's.
    pub(crate) ca: Option<PathBuf>,
    /// The client's own certificate, and its key.
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            connections: None,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            // Longer than a campaign with a TTL of 10 s is silent: it then needs no question of its own.
            heartbeat: Duration::from_secs(7),
            replicas: 0,
            schema: None,
            credentials: None,
            tls: TlsFiles::default(),
        }
    }
}

impl ServerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of connections (1 to 64) over which the keys are spread. By default 1 for a Redis
    /// server (2 with `replicas`), and 2 for a database.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = Some(connections);
        self
    }

    /// The longest time of one attempt to connect to one address of the server: 1 s by default.
    ///
    /// All addresses of a name are tried, each a quarter of a second after the one before. Looking the
    /// name up may take 15 s. TLS and the login have four times as long as an attempt, and a
    /// [credentials provider](Self::credentials) as long for each answer.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = at_most_a_century(limit);
        self
    }

    /// The longest time to wait for an answer of the server: 1 s by default.
    pub fn response_timeout(mut self, limit: Duration) -> Self {
        self.response_timeout = at_most_a_century(limit);
        self
    }

    /// The time without an answer after which the connection is checked, and replaced if it is
    /// dead: 7 s by default.
    pub fn heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = at_most_a_century(interval);
        self
    }

    /// How many replicas of a Redis server must have a lease before it counts: none by default.
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// The schema of a PostgreSQL database that has the store's tables: `public` by default.
    ///
    /// Two schemas are two sets of locks, so all programs that share locks have to name the same one.
    /// [`PostgresStore`](crate::store::PostgresStore#tables) says how it is created.
    ///
    /// ```
    /// use lockattr::store::ServerOptions;
    ///
    /// let options = ServerOptions::new().schema("locks");
    /// # let _ = options;
    /// ```
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = Some(name.into());
        self
    }

    /// A function that returns the credentials which are valid now, for passwords that rotate.
    ///
    /// The store asks it for each connection that it opens. A Redis store also asks at each
    /// [`heartbeat`](Self::heartbeat), and replaces its connections if the answer has changed. So the function
    /// should cache what it fetches. The answer replaces the user and the password in the URL or in
    /// the client's configuration.
    ///
    /// The function has [`connect_timeout`](Self::connect_timeout) to answer. A function that takes longer,
    /// fails or panics costs one attempt to connect, whose error names the function. It must not block its
    /// thread: a blocked thread cannot be given up.
    ///
    /// ```
    /// use lockattr::store::{Credentials, ServerOptions};
    ///
    /// let options = ServerOptions::new().credentials(|| async {
    ///     let password = std::fs::read_to_string("/run/secrets/locks")?;
    ///     Ok::<_, std::io::Error>(Credentials::new("locks", password.trim_end()))
    /// });
    /// # let _ = options;
    /// ```
    pub fn credentials<F, A, E>(mut self, provide: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Result<Credentials, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.credentials = Some(CredentialsProvider::new(provide));
        self
    }

    /// The number of connections to a Redis server. The server executes one command at a time, and
    /// one connection carries the commands of all tasks in few writes, where two connections need
    /// twice as many. But `WAIT` blocks its connection.
    #[cfg(feature = "redis")]
    pub(crate) fn redis_connections(&self) -> usize {
        self.connections.unwrap_or(if self.replicas > 0 { 2 } else { 1 })
    }

    /// The number of connections to a database. Each is a process or a thread of the server, which
    /// answers one request at a time.
    #[cfg(any(feature = "postgres", feature = "mysql"))]
    pub(crate) fn database_connections(&self) -> usize {
        self.connections.unwrap_or(2)
    }

    /// Applies one setting of a URL's query; `false` if it is not one of a server's.
    #[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool, Error> {
        match name {
            "connections" => self.connections = Some(number(name, value)?),
            "connect_timeout" => self.connect_timeout = duration(name, value)?,
            "response_timeout" => self.response_timeout = duration(name, value)?,
            "heartbeat" => self.heartbeat = duration(name, value)?,
            "replicas" => self.replicas = number(name, value)?,
            "ca" => self.tls.ca = Some(value.into()),
            "client_cert" | "cert" => self.tls.cert = Some(value.into()),
            "client_key" | "key" => self.tls.key = Some(value.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.connections.is_some_and(|connections| !(1..=64).contains(&connections)) {
            return Err(Error::InvalidOptions("`connections` must be 1 to 64".into()));
        }
        let times = [
            ("connect_timeout", self.connect_timeout),
            ("response_timeout", self.response_timeout),
            ("heartbeat", self.heartbeat),
        ];
        if let Some((name, _)) = times.iter().find(|(_, time)| time.is_zero()) {
            return Err(Error::InvalidOptions(format!("`{name}` must not be zero")));
        }
        self.tls.check()
    }
}

impl TlsFiles {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let (named, missing) = match (&self.cert, &self.key) {
            (Some(_), None) => ("client_cert", "client_key"),
            (None, Some(_)) => ("client_key", "client_cert"),
            _ => return Ok(()),
        };
        let message = format!("`{named}` needs `{missing}` too: give both files");
        Err(Error::InvalidOptions(message))
    }

    /// The files that are set, by the names of their settings.
    #[cfg(any(feature = "redis", feature = "postgres"))]
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let all = [("ca", &self.ca), ("client_cert", &self.cert), ("client_key", &self.key)];
        all.into_iter().filter_map(|(name, path)| Some((name, path.as_ref()?)))
    }
}
