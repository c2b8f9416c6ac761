//! `lockattr bench` against a real server.

use lockattr_tests::{Node, assert_nothing_left};
use serde_json::Value;

use crate::support::{lockattr, said, server};

#[tokio::test]
async fn a_bench_counts_and_leaves_nothing() {
    let (server, url) = server().await;
    for (tasks, keys) in [("4", "1"), ("3", "8")] {
        let words = ["bench", "--json", "--seconds", "1", "--tasks", tasks, "--keys", keys];
        let said = said(&url, &words).await;
        let report: Value = serde_json::from_str(&said.out).expect(&said.err);
        let number = |name: &str| report[name].as_f64().unwrap();
        assert!(number("acquired") > 0.0 && number("seconds") >= 1.0, "{report}");
        assert!(number("acquire_p50_us") <= number("acquire_p99_us"), "{report}");
        assert!(number("hand_offs") < number("acquired"), "{report}");
        assert_nothing_left(&server).await;
    }
}

#[tokio::test]
async fn ctrl_c_ends_a_bench_early_and_cleanly() {
    let (server, url) = server().await;
    let mut node = Node::run(lockattr(&url, &["bench", "--seconds", "3600", "--keys", "1"]));
    let cli = server.cli().await;
    lockattr_tests::eventually("it works", async || {
        !cli.keys("lock:lockattr-bench:*").await.is_empty()
    })
    .await;
    node.interrupt_signal();
    assert!(node.line().await.starts_with("tasks "));
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_bench_without_a_store_says_so() {
    let (server, url) = server().await;
    server.kill();
    assert_eq!(said(&url, &["bench"]).await.code, Some(2));
}
