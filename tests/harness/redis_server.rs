//! A Redis server of the test's own: its ports, its addresses, and how it is killed and restarted.

mod builder;
mod config;
mod engine;
mod launch;
mod replica;
mod urls;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

pub use builder::RedisServerBuilder;
pub(crate) use config::quoted;

use crate::Cli;
use crate::authority::{CA, CLIENT, CLIENT_KEY};
use crate::process::Process;
use config::Config;

/// A `redis-server` on free loopback ports, in its own directory. It is killed when this value is
/// dropped.
///
/// It keeps nothing on disk unless the builder says otherwise. The program is `redis-server` on the
/// `PATH`, or the one that the environment variable `LOCKATTR_REDIS_SERVER` names: any server with
/// the same protocol and configuration file.
///
/// A server in a `static` is never dropped; it is killed when the test program ends, however that
/// ends.
#[derive(Debug)]
pub struct RedisServer {
    process: Mutex<Option<Process>>,
    stopped: AtomicBool,
    config: Config,
    directory: TempDir,
}

impl RedisServer {
    /// Starts a server without passwords, TLS or persistence, and returns once it responds.
    ///
    /// # Panics
    ///
    /// If the program is missing, with the command that installs it, or if it does not start, with
    /// the end of its log.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Returns a builder, for a server with passwords, users, TLS or an append-only file.
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder::default()
    }

    /// Opens a connection of the harness' own, to inspect and to change the server.
    pub async fn cli(&self) -> Cli {
        let connected = Cli::connect(self.addr(), self.config.password()).await;
        connected.unwrap_or_else(|error| {
            panic!("the harness cannot connect to {}: {error}", self.addr())
        })
    }

    /// Returns the process id that it has now. A restart changes it.
    ///
    /// # Panics
    ///
    /// If it is down.
    pub fn pid(&self) -> u32 {
        self.with_process(Process::id)
    }

    /// Kills it (SIGKILL), as a power failure would. Does nothing if it is down.
    pub fn kill(&self) {
        if let Some(mut process) = self.slot().take() {
            process.kill();
        }
        self.stopped.store(false, Ordering::Relaxed);
    }

    /// Starts it again on the same ports with the data on disk: none, except after [`Cli::save`] or
    /// with an append-only file.
    ///
    /// # Panics
    ///
    /// If it is not down.
    pub async fn revive(&self) {
        assert!(self.slot().is_none(), "revive() is for a server that was killed");
        let process = launch::revive(&self.config, self.directory.path()).await;
        *self.slot() = Some(process);
    }

    /// Kills it and starts it again on the same ports, without data and scripts.
    pub async fn restart(&self) {
        self.kill();
        launch::wipe(self.directory.path());
        self.revive().await;
    }

    /// Kills it and starts it again on the same ports, with all its data, but without scripts and
    /// connections.
    pub async fn restart_with_data(&self) {
        self.cli().await.save().await;
        self.kill();
        self.revive().await;
    }

    /// Pauses it (SIGSTOP): the system still accepts connections and bytes, but no response comes.
    ///
    /// # Panics
    ///
    /// If it is down. So does [`continue_signal`](Self::continue_signal).
    pub fn stop_signal(&self) {
        self.with_process(Process::stop);
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Resumes it (SIGCONT). It handles everything that arrived meanwhile.
    pub fn continue_signal(&self) {
        self.with_process(Process::resume);
        self.stopped.store(false, Ordering::Relaxed);
    }

    /// Pauses it while `work` runs.
    pub async fn while_stopped<T>(&self, work: impl Future<Output = T>) -> T {
        self.stop_signal();
        let output = work.await;
        self.continue_signal();
        output
    }

    /// Returns whether it can respond: it is neither killed nor paused.
    pub(crate) fn is_up(&self) -> bool {
        self.slot().is_some() && !self.stopped.load(Ordering::Relaxed)
    }

    fn with_process<T>(&self, act: impl FnOnce(&Process) -> T) -> T {
        act(self.slot().as_ref().expect("the server is down"))
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        // A panic of a test leaves this value intact.
        self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns the path of `ca.pem`, the authority that a client must trust to accept the server's
    /// certificate.
    ///
    /// # Panics
    ///
    /// If the server was built without TLS.
    pub fn ca_path(&self) -> PathBuf {
        self.tls_file(CA)
    }

    /// Returns the path of a client certificate that the server accepts, signed by the same
    /// authority as its own.
    ///
    /// # Panics
    ///
    /// If the server was built without TLS.
    pub fn client_cert_path(&self) -> PathBuf {
        self.tls_file(CLIENT)
    }

    /// Returns the path of the private key of [`client_cert_path`](Self::client_cert_path).
    ///
    /// # Panics
    ///
    /// If the server was built without TLS.
    pub fn client_key_path(&self) -> PathBuf {
        self.tls_file(CLIENT_KEY)
    }

    fn tls_file(&self, name: &str) -> PathBuf {
        self.config.tls_port().expect("a server built with .tls()");
        self.directory.path().join(name)
    }
}
