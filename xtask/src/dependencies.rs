//! Tests lockattr's dependencies: each engine's client needs the engine's feature.

use crate::child;

/// Each feature and its client crate.
const CLIENTS: [(&str, &str); 5] = [
    ("redis", "redis"),
    ("postgres", "tokio-postgres"),
    ("mysql", "mysql_async"),
    ("zookeeper", "zookeeper-client"),
    ("etcd", "tonic"),
];

/// Returns the names of all crates that lockattr depends on.
fn crates_with(options: &[&str]) -> Vec<String> {
    let words = ["tree", "--package", "lockattr", "--edges", "normal", "--prefix", "none"];
    let mut tree = child::cargo(&words);
    let output = tree.args(options).current_dir(child::root()).output().expect("cargo tree");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

#[track_caller]
fn check(options: &[&str], expected: &[&str]) {
    let crates = crates_with(options);
    for (_, client) in CLIENTS {
        let (found, expected) = (crates.iter().any(|it| it == client), expected.contains(&client));
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

/// Secures the connections of the engines that are chosen, and chooses none.
#[test]
fn tls_brings_no_engine() {
    check(&["--no-default-features", "--features", "tls"], &[]);
    for (feature, client) in CLIENTS {
        let features = format!("{feature},tls");
        check(&["--no-default-features", "--features", &features], &[client]);
    }
}
