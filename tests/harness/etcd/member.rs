//! One member of an etcd cluster and its process.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use super::log_of;
use crate::Certificates;
use crate::log::last_lines;
use crate::port::Port;
use crate::process::{Process, install_hint};

/// The environment variable that names a program other than the `etcd` on the `PATH`.
const PROGRAM: &str = "LOCKATTR_ETCD";

/// Returns the path of the server program.
pub(super) fn program() -> String {
    std::env::var(PROGRAM).unwrap_or_else(|_| "etcd".to_owned())
}

#[derive(Debug)]
pub(super) struct Member {
    name: String,
    port: Port,
    peer_port: Port,
    /// The `--initial-cluster` argument: all members' names and peer URLs.
    cluster: String,
    process: Option<Process>,
    stopped: bool,
    tls: Option<Tls>,
    /// Whether a leader may be silent for ten seconds, and not for half a second, before the others elect another.
    patient: bool,
}

/// How it serves its clients over TLS.
#[derive(Debug)]
struct Tls {
    arguments: Vec<String>,
    /// It reports its health here, without TLS.
    status_port: Port,
}

impl Member {
    /// Returns the members of one cluster, on free ports.
    pub(super) fn all(count: usize) -> Vec<Self> {
        let names: Vec<_> = (0..count).map(|nth| (format!("m{nth}"), Port::free())).collect();
        let peers = names.iter().map(|(name, port)| format!("{name}=http://127.0.0.1:{port}"));
        let cluster = peers.collect::<Vec<_>>().join(",");
        let member = |(name, peer_port)| {
            let cluster = cluster.clone();
            let (process, stopped, tls, patient) = (None, false, None, false);
            Self { name, port: Port::free(), peer_port, cluster, process, stopped, tls, patient }
        };
        names.into_iter().map(member).collect()
    }

    /// The same member, in a cluster where no member dies: it is not deposed when it gets no core for a while.
    pub(super) fn patient(self) -> Self {
        Self { patient: true, ..self }
    }

    /// The same member, whose clients need TLS.
    pub(super) fn with_tls(self, certificates: &Certificates) -> Self {
        let option = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let status_port = Port::free();
        let mut arguments = vec![
            option("cert-file", &certificates.server()),
            option("key-file", &certificates.server_key()),
            format!("--listen-metrics-urls=http://127.0.0.1:{status_port}"),
        ];
        if certificates.demands_client() {
            arguments.push(option("trusted-ca-file", &certificates.ca()));
            arguments.push("--client-cert-auth".into());
        }
        Self { tls: Some(Tls { arguments, status_port }), ..self }
    }

    /// Returns the address of a page with its health.
    pub(super) fn status_addr(&self) -> String {
        let port = self.tls.as_ref().map_or(&self.port, |tls| &tls.status_port);
        format!("127.0.0.1:{port}")
    }

    pub(super) fn addr(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Starts its process, with the data it had.
    pub(super) fn start(&mut self, directory: &Path) {
        let program = program();
        let log = fs::File::create(log_of(directory, &self.name)).expect("a log file");
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let (client, peer) =
            (format!("{scheme}://{}", self.addr()), format!("http://127.0.0.1:{}", self.peer_port));
        let election = if self.patient { "10000" } else { "500" };
        let mut command = Command::new(&program);
        command
            .args(["--name", &self.name, "--initial-cluster", &self.cluster])
            .arg("--data-dir")
            .arg(directory.join(&self.name))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster-token", &self.cluster])
            .args(["--heartbeat-interval", "50", "--election-timeout", election])
            .args(self.tls.iter().flat_map(|tls| &tls.arguments))
            // Each login costs the hash of a password.
            .args(["--bcrypt-cost", "4"])
            .args(["--unsafe-no-fsync", "--logger", "zap", "--log-outputs", "stderr"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let started = Process::start(&mut command, Some(directory));
        self.process = Some(started.unwrap_or_else(|error| match error.kind() {
            ErrorKind::NotFound => panic!(
                "`{program}` is not installed. {}, or set {PROGRAM} to a server's path.",
                install_hint("etcd-server etcd-client")
            ),
            _ => panic!("`{program}` could not be started: {error}"),
        }));
        self.stopped = false;
    }

    /// Returns whether it runs and is not paused.
    pub(super) fn is_up(&self) -> bool {
        self.process.is_some() && !self.stopped
    }

    pub(super) fn kill(&mut self) {
        self.process = None;
    }

    pub(super) fn stop(&mut self) {
        if let Some(process) = &self.process {
            process.stop();
            self.stopped = true;
        }
    }

    pub(super) fn resume(&mut self) {
        if let Some(process) = &self.process {
            process.resume();
            self.stopped = false;
        }
    }

    /// Returns an error with the end of the log if it has ended by itself.
    pub(super) fn check_running(&mut self, directory: &Path) -> Result<(), String> {
        match self.process.as_mut().map(Process::exit_status) {
            Some(None) => Ok(()),
            _ => Err(self.log_tail(directory)),
        }
    }

    /// Returns the end of its log.
    pub(super) fn log_tail(&self, directory: &Path) -> String {
        let log = fs::read_to_string(log_of(directory, &self.name)).unwrap_or_default();
        last_lines(&log)
    }
}
