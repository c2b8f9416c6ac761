//! Each alert of docs/grafana/alerts.yml, tried: a real Prometheus scrapes the shop, the fault is
//! made for real, the alert fires, and the first commands of its runbook lead to the cause.
//!
//! The rules are those of the file, with shorter times: minutes become seconds, and a long hold is
//! one of three seconds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use lockattr_tests::{Prometheus, bare, check_rules, eventually};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::customer::{count, order, try_order};
use crate::running::{Servers, Shop, line};

/// Between two questions to Prometheus, each of which starts a program.
const PAUSE: Duration = Duration::from_millis(500);

fn rules_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/alerts.yml")
}

/// The rules with times that a test can wait for.
fn shortened() -> String {
    let rules = std::fs::read_to_string(rules_path()).expect("the rules");
    // What `rate` looks at has to have several scrapes, which come every second.
    let replaced = [
        ("[10m]", "[6s]"),
        ("[5m]", "[6s]"),
        ("[2m]", "[6s]"),
        ("offset 5m", "offset 30s"),
        ("for: 10m", "for: 2s"),
        ("for: 5m", "for: 4s"),
        ("for: 2m", "for: 2s"),
        ("> 60", "> 3"),
    ];
    replaced.iter().fold(rules, |rules, (long, short)| {
        assert!(rules.contains(long), "no rule says {long:?}");
        rules.replace(long, short)
    })
}

/// Two instances of the shop that a Prometheus watches.
struct Watched {
    servers: Servers,
    /// The instance with the fault.
    address: String,
    /// Its log so far. It is read all the time, because a full pipe would stop the shop.
    log: Arc<Mutex<Vec<Value>>>,
    prometheus: Prometheus,
    _calm: Shop,
    _reader: JoinSet<()>,
}

impl Watched {
    /// Starts all of it, and shows that no alert fires while orders are served. The instance with
    /// the fault packs an order in `packing` milliseconds.
    async fn healthy(packing: u32) -> Self {
        let servers = Servers::start().await;
        // An outage is one after the library's own times.
        let url = bare(&servers.redis.url());
        let variables = [("LOCKATTR_URL", url.as_str()), ("SHOP_LOG", "info,lockattr=debug")];
        let Shop { process: mut node, address } = servers.shop_with(packing, &variables).await;
        let calm = servers.shop(20).await;
        let log = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, written) = (JoinSet::new(), log.clone());
        reader.spawn(async move {
            while let Some(text) = node.line_within(Duration::from_secs(3_600)).await {
                written.lock().unwrap().push(line(&text));
            }
        });
        let prometheus = Prometheus::start(&[&address, &calm.address], &shortened()).await;
        for product in 1..=9 {
            assert_eq!(count(&address, product, 10_000).await.status, 204);
        }
        let acquired = r#"rate(lockattr_acquisitions_total{outcome="acquired"}[6s]) > 0"#;
        let scraped = async || {
            order(&calm.address, 1).await;
            !prometheus.query(acquired).is_empty()
        };
        eventually("the shop is scraped", scraped).await;
        // Longer than the window of every rule, and than its `for`. A machine that is busy for seconds is a fault, too,
        // that passes.
        let nothing_fires = async || {
            for _ in 0..12 {
                assert_eq!(order(&calm.address, 2).await.status, 201);
                sleep(Duration::from_secs(1)).await;
                if !prometheus.firing().is_empty() {
                    return false;
                }
            }
            true
        };
        eventually("no alert fires without a fault", nothing_fires).await;
        Self { servers, address, log, prometheus, _calm: calm, _reader: reader }
    }

    /// Waits until all of these alerts have fired.
    async fn fire(&self, names: &[&str]) {
        let mut missing: Vec<_> = names.to_vec();
        let all = async || {
            sleep(PAUSE).await;
            let firing = self.prometheus.firing();
            missing.retain(|name| !firing.iter().any(|fires| fires == name));
            missing.is_empty()
        };
        eventually(&format!("{names:?} fire"), all).await;
    }

    /// The first line of the log with this message.
    async fn log_line(&self, message: &str) -> Value {
        let mut found = None;
        let is_there = async || {
            let log = self.log.lock().unwrap();
            let says =
                |line: &&Value| line["message"].as_str().is_some_and(|m| m.starts_with(message));
            found = log.iter().find(says).cloned();
            found.is_some()
        };
        eventually(message, is_there).await;
        found.expect("it was found")
    }

    /// Runs the command of the runbooks, and returns its exit code and its output.
    fn lockattr(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(cli());
        command.env("LOCKATTR_URL", bare(&self.servers.redis.url())).args(arguments);
        let output = command.output().expect("the command runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    /// The value of the first series of a runbook's query.
    fn value(&self, query: &str) -> Option<f64> {
        let lines = self.prometheus.query(query);
        lines.first()?.split("=> ").nth(1)?.split(' ').next()?.parse().ok()
    }
}

/// The program of `lockattr-cli`, built once.
fn cli() -> &'static Path {
    static CLI: OnceLock<PathBuf> = OnceLock::new();
    CLI.get_or_init(|| {
        let shop = Path::new(env!("CARGO_BIN_EXE_shop"));
        let program = shop.with_file_name("lockattr");
        if !program.exists() {
            let built =
                Command::new(env!("CARGO")).args(["build", "--package", "lockattr-cli"]).status();
            assert!(built.expect("cargo runs").success(), "lockattr-cli cannot be built");
        }
        program
    })
}

/// Customers who want one product until they are dropped.
fn customers(address: &str, many: usize, product: i64) -> JoinSet<()> {
    let mut all = JoinSet::new();
    for _ in 0..many {
        let address = address.to_owned();
        all.spawn(async move {
            loop {
                try_order(&address, product).await;
            }
        });
    }
    all
}

#[test]
fn prometheus_accepts_the_rules() {
    let said = check_rules(&rules_path());
    assert!(said.contains("8 rules found"), "{said}");
}

/// The fault: a person deletes the key of a lock that is held.
///
/// Red without: `LockLost` in alerts.yml, or `Watchdog::lose`.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_lock_fires_lock_lost_and_the_log_names_the_key() {
    let watched = Watched::healthy(200).await;
    let mut orders = customers(&watched.address, 1, 7);
    let cli = watched.servers.redis.cli().await;
    // The order is packed while the key is deleted; the release finds it gone.
    let taken = async || cli.query::<i64>(&["DEL", "lock:product:7"]).await == 1;
    eventually("the lock is deleted", taken).await;
    watched.fire(&["LockLost"]).await;
    orders.abort_all();
    let lost =
        watched.log_line("lock lost: the store no longer has this process as its holder").await;
    assert_eq!(lost["level"], "WARN");
    assert_eq!(lost["lockattr.key"], "product:7");
    assert_eq!(lost["lockattr.template"], "product:<product>");
    assert!(lost["lockattr.fencing_token"].is_u64(), "{lost:#}");
    let unanswered = watched
        .value(r#"sum by (manager, store) (rate(lockattr_renewals_total{outcome="unknown"}[6s]))"#);
    assert!(unanswered.is_none_or(|rate| rate == 0.0), "not the store: {unanswered:?}");
    assert_eq!(watched.lockattr(&["ls"]).0, Some(0), "the store answers");
}

/// The fault: the Redis of the locks hangs (SIGSTOP) for longer than a lease.
///
/// Red without: any of these rules.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_fires_its_alerts_and_lock_lost() {
    let watched = Watched::healthy(12_000).await;
    let address = watched.address.clone();
    // One order after another is packed, so that some end during the outage: releases, renewals.
    let mut orders = JoinSet::new();
    for product in 3..=9_i64 {
        let address = address.clone();
        orders.spawn(async move {
            sleep(Duration::from_millis(1_600 * (product.unsigned_abs() - 3))).await;
            loop {
                try_order(&address, product).await;
            }
        });
    }
    let held = async || {
        sleep(PAUSE).await;
        watched.value("sum(lockattr_held)").is_some_and(|held| held >= 5.0)
    };
    eventually("orders are packed", held).await;
    watched.servers.redis.stop_signal();
    watched
        .fire(&["LockStoreUnavailable", "LockRenewalsUnanswered", "LockReleasesUnanswered"])
        .await;
    // The runbook's first commands.
    let (code, said) = watched.lockattr(&["ls"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.starts_with("lockattr: "), "{said}");
    let instances = watched
        .prometheus
        .query(r#"sum by (instance, store) (rate(lockattr_acquisitions_total{outcome="unavailable"}[6s])) > 0"#);
    assert!(
        instances[0].contains(&address) && instances[0].contains(r#"store="redis""#),
        "{instances:?}"
    );
    watched.servers.redis.continue_signal();
    orders.abort_all();
    let refused = watched.log_line("lock not acquired").await;
    assert_eq!(refused["error.type"], "store", "{refused:#}");
    let lost = watched.log_line("lock lost: its lease expired before its holder released it").await;
    assert_eq!((&lost["level"], &lost["error.type"]), (&"WARN".into(), &"lost.expired".into()));
    // It is over.
    let ends = async || {
        sleep(PAUSE).await;
        !watched.prometheus.firing().contains(&"LockStoreUnavailable".to_owned())
    };
    eventually("the alert ends with the outage", ends).await;
    assert_eq!(watched.lockattr(&["ls"]).0, Some(0));
}

/// The fault: two hundred customers want one product, which takes four seconds to pack.
///
/// Red without: any of these rules.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_at_one_product_fires_the_alerts_of_contention_and_of_long_holds() {
    let watched = Watched::healthy(4_000).await;
    let mut orders = customers(&watched.address, 200, 7);
    watched.fire(&["LockContended", "LockHungry", "LockHeldLong"]).await;
    let held = watched.value(
        "histogram_quantile(0.99, sum by (le, template) (rate(lockattr_hold_duration_seconds_bucket[20s])))",
    );
    assert!(held.is_some_and(|held| held > 2.5), "the hold explains it: {held:?}");
    let (code, said) = watched.lockattr(&["ls", "--sort", "age"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("product:7") && said.contains("shop@"), "{said}");
    let (code, said) = watched.lockattr(&["who", "product:7"]);
    assert!(code == Some(0) && said.contains("is held by shop on"), "{said}");
    orders.abort_all();
    let refused = watched.log_line("lock not acquired").await;
    assert_eq!(refused["error.type"], "contended", "{refused:#}");
    assert!(
        refused["lockattr.holder"].as_str().is_some_and(|who| who.starts_with("shop on")),
        "{refused:#}"
    );
}

/// The fault: a person has set the key by hand, without an end.
///
/// Red without: `LockStuck` in alerts.yml.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_without_an_end_fires_lock_stuck_and_who_names_another_program() {
    let watched = Watched::healthy(50).await;
    let cli = watched.servers.redis.cli().await;
    cli.query::<()>(&["SET", "lock:product:7", "by hand"]).await;
    let mut orders = customers(&watched.address, 5, 7);
    watched.fire(&["LockStuck"]).await;
    let (code, said) = watched.lockattr(&["who", "product:7"]);
    assert!(code == Some(0) && said.contains("is held by another program"), "{said}");
    let (code, said) = watched.lockattr(&["release", "--force", "product:7"]);
    assert_eq!(code, Some(0), "{said}");
    let ends = async || {
        sleep(PAUSE).await;
        watched.prometheus.firing().is_empty()
    };
    eventually("the alert ends with the release", ends).await;
    orders.abort_all();
}
