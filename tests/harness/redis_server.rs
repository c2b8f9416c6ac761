//! One Redis of the test's own: where it listens, how it is reached, how it dies and comes back.

mod builder;
mod config;
mod engine;
mod launch;
mod replica;
mod tls;
mod urls;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;

pub use builder::RedisServerBuilder;
pub(crate) use config::quoted;
pub(crate) use tls::Authority;

use crate::Cli;
use crate::process::Process;
use config::Config;

/// A `redis-server` on free loopback ports, in a directory of its own, that ends with this value.
///
/// It keeps nothing on disk unless asked to. The program is `redis-server` on the `PATH`, or what
/// the environment variable `LOCKATTR_REDIS_SERVER` names; any server that speaks the protocol and
/// reads the same configuration will do.
///
/// A server in a `static` is never dropped; it ends when the test program does, however that ends.
#[derive(Debug)]
pub struct RedisServer {
    process: Mutex<Option<Process>>,
    stopped: AtomicBool,
    config: Config,
    directory: TempDir,
}

impl RedisServer {
    /// Starts a server without passwords, TLS or persistence, and returns once it answers.
    ///
    /// # Panics
    ///
    /// When the program is missing, saying how to install it, or when it does not start, with the
    /// end of its log.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// For a server with passwords, users, TLS or an append-only file.
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder::default()
    }

    /// A connection of the harness' own, for looking and for meddling.
    pub async fn cli(&self) -> Cli {
        let connected = Cli::connect(self.addr(), self.config.password()).await;
        connected
            .unwrap_or_else(|error| panic!("the harness cannot look into {}: {error}", self.addr()))
    }

    /// Its process id in this life.
    ///
    /// # Panics
    ///
    /// When it is down.
    pub fn pid(&self) -> u32 {
        self.with_process(Process::id)
    }

    /// Dies at once (SIGKILL), as a machine does that loses power. Does nothing to a server that is
    /// down.
    pub fn kill(&self) {
        if let Some(mut process) = self.slot().take() {
            process.kill();
        }
        self.stopped.store(false, Ordering::Relaxed);
    }

    /// Comes back on the same ports with what is on disk: nothing, except after [`Cli::save`] or
    /// with an append-only file.
    ///
    /// # Panics
    ///
    /// When it is not down.
    pub async fn revive(&self) {
        assert!(self.slot().is_none(), "revive() is for a server that was killed");
        let process = launch::revive(&self.config, self.directory.path()).await;
        *self.slot() = Some(process);
    }

    /// Killed, and back on the same ports with no data and no scripts.
    pub async fn restart(&self) {
        self.kill();
        launch::wipe(self.directory.path());
        self.revive().await;
    }

    /// Killed, and back on the same ports with all data it had, but no scripts and no connections.
    pub async fn restart_with_data(&self) {
        self.cli().await.save().await;
        self.kill();
        self.revive().await;
    }

    /// Stands still (SIGSTOP): the system still accepts connections and bytes for it, no process
    /// answers.
    ///
    /// # Panics
    ///
    /// When it is down. So does [`continue_signal`](Self::continue_signal).
    pub fn stop_signal(&self) {
        self.with_process(Process::stop);
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Goes on (SIGCONT), with all that arrived meanwhile.
    pub fn continue_signal(&self) {
        self.with_process(Process::resume);
        self.stopped.store(false, Ordering::Relaxed);
    }

    /// Stands still for as long as `work` takes.
    pub async fn while_stopped<T>(&self, work: impl Future<Output = T>) -> T {
        self.stop_signal();
        let output = work.await;
        self.continue_signal();
        output
    }

    /// Whether it is worth asking: neither killed nor standing still.
    pub(crate) fn is_up(&self) -> bool {
        self.slot().is_some() && !self.stopped.load(Ordering::Relaxed)
    }

    fn with_process<T>(&self, act: impl FnOnce(&Process) -> T) -> T {
        act(self.slot().as_ref().expect("the server is down"))
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        // A test that panicked inside leaves nothing half done that matters here.
        self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// `ca.pem` beside the server's certificate: what a client must trust to accept it.
    ///
    /// # Panics
    ///
    /// When the server was built without TLS.
    pub fn ca_path(&self) -> PathBuf {
        self.tls_file(tls::CA)
    }

    /// A certificate that the server accepts from a client, signed by the same authority as its
    /// own.
    ///
    /// # Panics
    ///
    /// When the server was built without TLS.
    pub fn client_cert_path(&self) -> PathBuf {
        self.tls_file(tls::CLIENT)
    }

    /// The key to [`client_cert_path`](Self::client_cert_path).
    ///
    /// # Panics
    ///
    /// When the server was built without TLS.
    pub fn client_key_path(&self) -> PathBuf {
        self.tls_file(tls::CLIENT_KEY)
    }

    fn tls_file(&self, name: &str) -> PathBuf {
        self.config.tls_port().expect("a server built with .tls()");
        self.directory.path().join(name)
    }
}

/// How long a server may take to answer for the first time; a loaded machine starts many at once.
const STARTS_WITHIN: Duration = Duration::from_secs(20);
