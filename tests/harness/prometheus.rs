//! A Prometheus that scrapes services of a test and evaluates alert rules.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::eventually::{Backoff, HUNG};
use crate::port::Port;
use crate::process::{Process, install_hint};

/// The environment variables that name other programs than those on the `PATH`.
const PROGRAM: &str = "LOCKATTR_PROMETHEUS";
const PROMTOOL: &str = "LOCKATTR_PROMTOOL";

/// A Prometheus on a free loopback port, which scrapes and evaluates its rules every second. It is
/// killed when this value is dropped.
#[derive(Debug)]
pub struct Prometheus {
    /// Declared first, so that it is dropped before its directory.
    _process: Process,
    _directory: TempDir,
    port: Port,
}

impl Prometheus {
    /// Starts one that scrapes `/metrics` of these addresses, with a file of rules of this content.
    ///
    /// # Panics
    ///
    /// If it cannot be started, or refuses the rules.
    pub async fn start(targets: &[&str], rules: &str) -> Self {
        start(targets, rules).await
    }

    /// Evaluates an expression now. Each line of the result is `{labels} => value`.
    ///
    /// # Panics
    ///
    /// If Prometheus refuses the expression.
    pub fn query(&self, expression: &str) -> Vec<String> {
        let server = format!("http://127.0.0.1:{}", self.port);
        let lines = promtool(&["query", "instant", &server, expression]);
        lines.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Returns the names of the alerts that fire now, each once.
    pub fn firing(&self) -> Vec<String> {
        let expression = r#"count by (alertname) (ALERTS{alertstate="firing"})"#;
        let mut names: Vec<_> = self
            .query(expression)
            .iter()
            .filter_map(|line| line.split('"').nth(1).map(str::to_owned))
            .collect();
        names.sort();
        names
    }
}

/// Checks a file of rules as Prometheus itself reads it, and returns what the check says.
///
/// # Panics
///
/// If the rules are invalid.
pub fn check_rules(path: &Path) -> String {
    promtool(&["check", "rules", &path.display().to_string()])
}

fn promtool(arguments: &[&str]) -> String {
    let program = std::env::var(PROMTOOL).unwrap_or_else(|_| "promtool".into());
    let output = Command::new(&program).args(arguments).output().unwrap_or_else(|error| {
        panic!("{program} could not be started: {error}; {}", install_hint("prometheus"))
    });
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "promtool {arguments:?}: {said}{errors}");
    said
}

async fn start(targets: &[&str], rules: &str) -> Prometheus {
    let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
    let (path, port) = (directory.path(), Port::free());
    let rule_file = path.join("rules.yml");
    fs::write(&rule_file, rules).expect("the rules can be written");
    check_rules(&rule_file);
    let targets: Vec<_> = targets.iter().map(|target| format!("'{target}'")).collect();
    let config = format!(
        "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
         rule_files: ['{}']\n\
         scrape_configs: [{{ job_name: test, static_configs: [{{ targets: [{}] }}] }}]\n",
        rule_file.display(),
        targets.join(", ")
    );
    let file = path.join("prometheus.yml");
    fs::write(&file, config).expect("the configuration can be written");
    let program = std::env::var(PROGRAM).unwrap_or_else(|_| "prometheus".into());
    let mut command = Command::new(&program);
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.tsdb.path={}", path.join("data").display()));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Process::start(&mut command, Some(path));
    let mut process = started.unwrap_or_else(|error| {
        panic!("{program} could not be started: {error}; {}", install_hint("prometheus"))
    });
    let mut backoff = Backoff::new();
    while TcpStream::connect(("127.0.0.1", port.number())).is_err() {
        assert!(process.exit_status().is_none(), "Prometheus ended before it was ready");
        assert!(backoff.pause().await, "Prometheus is not ready within {HUNG:?}");
    }
    Prometheus { _process: process, _directory: directory, port }
}
