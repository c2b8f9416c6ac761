//! etcd's own `grpc-proxy` in front of a cluster.

use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{Etcd, ctl, member};
use crate::Engine;
use crate::eventually::{Backoff, HUNG};
use crate::port::Port;
use crate::process::Process;

/// A `grpc-proxy`, which is killed when this value is dropped.
#[derive(Debug)]
pub struct GrpcProxy {
    // Declared first, so that it is dropped before its directory.
    _process: Process,
    _directory: TempDir,
    port: Port,
}

impl GrpcProxy {
    /// Starts a proxy of all members, with these arguments. It is ready when this returns.
    ///
    /// # Panics
    ///
    /// If it does not serve within [`HUNG`].
    pub async fn before(etcd: &Etcd, arguments: &[&str]) -> Self {
        let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        let port = Port::free();
        let addr = format!("127.0.0.1:{port}");
        let mut command = Command::new(member::program());
        command
            .args(["grpc-proxy", "start", "--listen-addr", &addr])
            .args(["--endpoints", &etcd.addrs().join(","), "--data-dir"])
            .arg(directory.path().join("data"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = Process::start(&mut command, Some(directory.path()));
        let mut process = started.expect("etcd, which runs the cluster, can be started");
        let mut backoff = Backoff::new();
        while !ctl::is_healthy(&addr).await {
            assert!(process.exit_status().is_none(), "the grpc-proxy ended before it was ready");
            assert!(backoff.pause().await, "the grpc-proxy is not ready within {HUNG:?}");
        }
        Self { _process: process, _directory: directory, port }
    }

    /// Returns the URL of a store behind the proxy, as [`Engine::url_with`] returns it for the cluster.
    pub fn url_with(&self, etcd: &Etcd, query: &str) -> String {
        crate::with_query(&etcd.url_at(&[format!("127.0.0.1:{}", self.port)]), query)
    }
}
