//! Tests lockattr's dependencies: each engine's client needs the engine's feature, and each feature
//! has its number of crates.

use std::collections::BTreeSet;

use crate::child;
use crate::members;

/// Each feature and its client crate.
const CLIENTS: [(&str, &str); 6] = [
    ("redis", "redis"),
    ("postgres", "tokio-postgres"),
    ("mysql", "mysql_async"),
    ("zookeeper", "zookeeper-client"),
    ("etcd", "tonic"),
    ("sqlx", "sqlx"),
];

/// How many crates a build compiles besides lockattr's own, on Linux: without any feature, with the
/// default ones, and with each feature alone. Names and versions count, so two versions of a crate
/// are two. A change of `Cargo.lock` that changes a number changes it here too.
const COUNTS: [(&str, usize); 14] = [
    ("", 60),
    ("default", 76),
    ("redis", 76),
    ("tls", 81),
    ("postgres", 99),
    ("mysql", 127),
    ("zookeeper", 136),
    ("etcd", 99),
    ("sqlx", 95),
    ("share", 64),
    ("metrics", 63),
    ("serde", 63),
    ("registry", 62),
    ("testing", 62),
];

/// Returns names and versions of all crates that lockattr depends on, and its own.
fn crates_with(options: &[&str]) -> Vec<String> {
    let words = ["tree", "--package", "lockattr", "--edges", "normal", "--prefix", "none"];
    let target = ["--target", "x86_64-unknown-linux-gnu"];
    let mut tree = child::cargo(&words);
    let output =
        tree.args(target).args(options).current_dir(child::root()).output().expect("cargo tree");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let crates = text.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "));
    crates.collect()
}

#[track_caller]
fn check(options: &[&str], expected: &[&str]) {
    let crates = crates_with(options);
    for (_, client) in CLIENTS {
        let (found, expected) = (
            crates.iter().any(|it| it.starts_with(&format!("{client} "))),
            expected.contains(&client),
        );
        assert_eq!(found, expected, "{client} with {options:?}");
    }
}

#[test]
fn default_features_bring_none_of_the_other_engines() {
    check(&[], &["redis"]);
    check(&["--no-default-features"], &[]);
}

#[test]
fn each_feature_brings_its_own_client_and_no_other() {
    for (feature, client) in CLIENTS {
        check(&["--no-default-features", "--features", feature], &[client]);
    }
}

/// Fencing tokens need no driver of sqlx; its transactions need that of their database. The runtime,
/// TLS and macros are the program's choice.
#[test]
fn sqlx_brings_a_driver_only_for_a_store_and_never_a_runtime() {
    const CHOICES: [&str; 5] = ["rustls", "native-tls", "async-io", "sqlx-macros", "sqlx-sqlite"];
    const DRIVERS: [&str; 2] = ["sqlx-postgres", "sqlx-mysql"];
    for (features, driver) in
        [("sqlx", None), ("postgres,sqlx", Some(DRIVERS[0])), ("mysql,sqlx", Some(DRIVERS[1]))]
    {
        let crates = crates_with(&["--no-default-features", "--features", features]);
        let has = |name: &str| crates.iter().any(|it| it.split(' ').next() == Some(name));
        for name in DRIVERS {
            assert_eq!(has(name), driver == Some(name), "{features}: {name}");
        }
        let chosen: Vec<_> = CHOICES.into_iter().filter(|name| has(name)).collect();
        assert!(chosen.is_empty(), "{features}: {chosen:?}");
    }
}

/// Secures the connections of the engines that are chosen, and chooses none.
#[test]
fn tls_brings_no_engine() {
    check(&["--no-default-features", "--features", "tls"], &[]);
    for (feature, client) in CLIENTS {
        let features = format!("{feature},tls");
        check(&["--no-default-features", "--features", &features], &[client]);
    }
}

fn count(feature: &str) -> usize {
    let crates = crates_with(&["--no-default-features", "--features", feature]);
    let others: BTreeSet<_> = crates.iter().filter(|name| !name.starts_with("lockattr")).collect();
    others.len()
}

/// Red without: any of the numbers in `COUNTS`.
#[test]
fn each_feature_has_its_number_of_crates() {
    let counts = COUNTS.map(|(feature, _)| (feature, count(feature)));
    assert_eq!(counts, COUNTS, "left: today; right: `COUNTS` in xtask/src/dependencies.rs");
}

/// Red without: any of the rows in `COUNTS`.
#[test]
fn every_public_feature_has_a_number_of_crates() {
    let all = members::published();
    let lockattr = all.iter().find(|member| member.name() == "lockattr").expect("the runtime");
    let public = lockattr.names("features").into_iter().filter(|name| !name.starts_with("__"));
    let counted: BTreeSet<_> = COUNTS.iter().map(|(feature, _)| *feature).collect();
    let missing: Vec<_> = public.filter(|feature| !counted.contains(feature)).collect();
    assert!(missing.is_empty(), "not in `COUNTS`: {missing:?}");
}
