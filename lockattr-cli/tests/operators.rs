//! `ls`, `who` and `release` against a real server.

use std::process::Stdio;
use std::time::{Duration, SystemTime};

use lockattr::{Error, Mode};
use lockattr_tests::{RedisServer, assert_nothing_left, eventually, with_query};

use crate::support::{at_once, done_by, lockattr, renewing_server, running, said, server, service};

/// The lines of JSON, each an object.
fn objects(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn what_is_held_is_listed_as_a_table_and_as_objects() {
    let (server, url) = server().await;
    let none = said(&url, &["ls"]).await;
    assert_eq!((none.code, none.out.lines().count()), (Some(0), 1), "{none:?}");
    assert_eq!(said(&url, &["ls", "--json"]).await.out, "");

    let orders = service(&server, "orders").await;
    let _a = orders.acquire("product:42", at_once()).await.unwrap();
    let _b = orders.acquire("order:7", at_once().mode(Mode::Shared)).await.unwrap();
    let _c = service(&server, "reports").await;
    let _c = _c.acquire("order:7", at_once().mode(Mode::Shared)).await.unwrap();
    let process = std::process::id();

    let all = said(&url, &["ls"]).await;
    let lines: Vec<_> = all.out.lines().collect();
    assert!(lines[0].starts_with("KEY         HOLDER"), "{all:?}");
    assert!(lines[1].starts_with("order:7     ") && lines[1].contains(" (+1) "), "{all:?}");
    assert!(lines[2].starts_with("product:42  orders@"), "{all:?}");
    assert!(lines[2].contains(&format!(":{process}  ")), "{all:?}");
    assert!(lines[2].contains("  shop::deduct  "), "{all:?}");
    assert_eq!(lines.len(), 3);

    let json = objects(&said(&url, &["ls", "--json", "product:*"]).await.out);
    assert_eq!(json.len(), 1);
    let lock = &json[0];
    assert_eq!(lock["key"], "product:42");
    assert_eq!(lock["holder"]["service"], "orders");
    assert_eq!(lock["holder"]["process"], process);
    assert_eq!(lock["holder"]["function"], "shop::deduct");
    assert_eq!((&lock["holders"], &lock["waiting"]), (&1.into(), &0.into()));
    assert!((300_000..600_000).contains(&lock["remaining_ms"].as_u64().unwrap()), "{lock}");
    assert!(lock["since"].as_str().unwrap().ends_with('Z'), "{lock}");
    assert_eq!(objects(&said(&url, &["ls", "--json", "7"]).await.out)[0]["holders"], 2);
}

#[tokio::test]
async fn who_tells_in_words_and_by_its_exit_code() {
    let (server, url) = server().await;
    let free = said(&url, &["who", "product:42"]).await;
    assert_eq!((free.code, free.out.as_str()), (Some(1), "`product:42` is free\n"));
    let orders = service(&server, "orders").await;
    let guard = orders.acquire("product:42", at_once()).await.unwrap();
    let held = said(&url, &["who", "product:42"]).await;
    assert_eq!(held.code, Some(0));
    assert!(held.out.starts_with("`product:42` is held by orders on "), "{held:?}");
    let json = objects(&said(&url, &["who", "--json", "product:42"]).await.out);
    assert_eq!((&json[0]["held"], &json[0]["holder"]["service"]), (&true.into(), &"orders".into()));
    guard.release().await.unwrap();
    server.kill();
    let unknown = said(&url, &["who", "product:42"]).await;
    assert_eq!((unknown.code, unknown.out.as_str()), (Some(2), ""), "{unknown:?}");
}

#[tokio::test]
async fn a_lock_is_taken_by_force_and_not_without() {
    let (server, url) = server().await;
    let orders = service(&server, "orders").await;
    let guard = orders.acquire("product:42", at_once()).await.unwrap();

    let refused = said(&url, &["release", "product:42"]).await;
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""));
    let lines: Vec<_> = refused.err.lines().collect();
    assert!(lines[0].starts_with("lockattr: `product:42` is held by orders on "), "{refused:?}");
    let id = orders.holder("product:42").await.unwrap().expect("it is held").id.to_string();
    let write = format!("`lockattr release --force --holder {id} product:42`");
    assert!(lines[1].ends_with(&write), "{refused:?}");
    let who = objects(&said(&url, &["who", "--json", "product:42"]).await.out);
    assert_eq!(who[0]["holder"]["id"], *id);

    // That holder has left, and another one came.
    guard.release().await.unwrap();
    let guard = orders.acquire("product:42", at_once()).await.unwrap();
    let late = said(&url, &["release", "--force", "--holder", &id, "product:42"]).await;
    assert_eq!(late.code, Some(3), "{late:?}");
    assert!(late.out.starts_with("not taken: `product:42` is held by orders on "), "{late:?}");
    guard.ensure_held().unwrap();
    assert!(orders.holder("product:42").await.unwrap().is_some());

    let forced = said(&url, &["release", "--force", "product:42"]).await;
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert!(forced.out.starts_with("taken: `product:42` was held by orders on "), "{forced:?}");
    assert!(matches!(guard.release().await, Err(Error::Lost { .. })));

    for words in [&["--force"][..], &["--force", "--holder", &id]] {
        let again = said(&url, &[&["release", "product:42"], words].concat()).await;
        assert_eq!((again.code, again.out.as_str()), (Some(1), "`product:42` is free\n"));
    }
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_done_key_is_shown_with_its_end_and_reopened_by_force() {
    let (server, url) = server().await;
    let hours = Duration::from_secs(20 * 3_600);
    done_by(&server, "nightly", hours).await;
    let orders = service(&server, "orders").await;
    let guard = orders.acquire("product:42", at_once()).await.unwrap();

    let all = said(&url, &["ls"]).await;
    let lines: Vec<_> = all.out.lines().collect();
    assert!(lines[1].starts_with("nightly     reports@batch-1:9"), "{all:?}");
    assert!(lines[1].contains("  done until ") && lines[1].ends_with("Z        0"), "{all:?}");
    assert!(!lines[2].contains("done"), "{all:?}");
    let json = objects(&said(&url, &["ls", "--json"]).await.out);
    assert_eq!((&json[0]["done"], &json[1]["done"]), (&true.into(), &false.into()));
    let left = json[0]["remaining_ms"].as_u64().unwrap();
    assert!((19 * 3_600_000..=20 * 3_600_000).contains(&left), "{left}");

    let who = said(&url, &["who", "nightly"]).await;
    assert_eq!(who.code, Some(0));
    let until = who.out.strip_prefix("`nightly` is done until ").unwrap();
    let until = until.strip_suffix(", by reports on batch-1 (process 9) in report.sh\n").unwrap();
    let until = humantime::parse_rfc3339(until).unwrap();
    let left = until.duration_since(SystemTime::now()).unwrap();
    assert!(left <= hours && left + Duration::from_secs(3_600) > hours, "{left:?}");
    let json = objects(&said(&url, &["who", "--json", "nightly"]).await.out);
    assert_eq!((&json[0]["held"], &json[0]["done"]), (&true.into(), &true.into()));

    let refused = said(&url, &["release", "nightly"]).await;
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""));
    assert!(refused.err.starts_with("lockattr: `nightly` is done until "), "{refused:?}");
    assert!(
        refused.err.contains("to reopen it by force: `lockattr release --force --holder "),
        "{refused:?}"
    );
    assert!(orders.try_acquire("nightly", at_once()).await.unwrap().is_none(), "still done");

    let forced = said(&url, &["release", "--force", "nightly"]).await;
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert!(forced.out.starts_with("reopened: `nightly` was done until "), "{forced:?}");
    let again = orders.try_acquire("nightly", at_once()).await.unwrap().expect("reopened");
    again.release().await.unwrap();
    guard.release().await.unwrap();
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn help_says_that_a_forced_release_reopens_a_done_key() {
    let help = said("redis://127.0.0.1:1/", &["help", "release"]).await;
    assert!(help.out.contains("A key that is done is reopened"), "{help:?}");
}

#[tokio::test]
async fn a_run_of_a_done_key_names_until_when() {
    let (server, url) = server().await;
    done_by(&server, "nightly", Duration::from_secs(3_600)).await;
    let busy = said(&url, &["run", "nightly", "--", "true"]).await;
    assert_eq!((busy.code, busy.out.as_str()), (Some(75), ""), "{busy:?}");
    assert!(busy.err.contains("`nightly` is done until "), "{busy:?}");
}

#[tokio::test]
async fn a_run_from_which_the_lock_is_taken_ends() {
    let (server, url) = renewing_server().await;
    let mut node = running(&url, &["nightly"], "echo up; while :; do sleep 0.05; done");
    assert_eq!(node.line().await, "up");
    assert_eq!(said(&url, &["release", "--force", "nightly"]).await.code, Some(0));
    assert_eq!(node.finish().await.code(), Some(76));
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn no_password_is_notified_to_anybody() {
    let server = RedisServer::builder().password("s3cr3t").start().await;
    let wrong = format!("redis://:gehe1m@{}/", server.addr());
    for url in [server.url(), wrong, "redis://:gehe1m@h/?tll=3s".into(), "nonsense:gehe1m".into()] {
        for words in [&["ls"][..], &["who", "a"], &["run", "a", "--", "true"], &["--help"]] {
            let said = said(&url, words).await;
            let output = format!("{said:?}");
            assert!(
                !output.contains("s3cr3t") && !output.contains("gehe1m"),
                "{words:?}: {output}"
            );
        }
    }
}

/// Red without: `explained` in the store's `connect.rs`.
#[tokio::test]
async fn tls_on_a_port_without_it_and_the_other_way_round_is_named() {
    let (server, plain) = server().await;
    let asked = plain.replace("redis://", "rediss://");
    for url in [asked, format!("redis+cluster://{}?tls=true", server.addr())] {
        let sentence = format!("the server at {} does not speak TLS on this port", server.addr());
        // A server that waits for the rest of a request says nothing until `connect_timeout`.
        let is_named = async || {
            let refused = said(&with_query(&url, "connect_timeout=2s"), &["who", "a"]).await;
            assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
            refused.err.contains(&sentence) && refused.err.contains(": write `redis://`")
        };
        eventually("the refusal says what to write", is_named).await;
    }

    let server = RedisServer::builder().tls().password("s3cr3t").start().await;
    let url = server.tls_url().replace("rediss://", "redis://");
    let refused = said(url.split('?').next().unwrap(), &["who", "a"]).await;
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
    assert!(refused.err.contains("speaks only TLS on this port: write `rediss://`"), "{refused:?}");
    assert!(!refused.err.contains("s3cr3t"), "{refused:?}");
}

#[tokio::test]
async fn a_reader_that_has_seen_enough_is_no_error() {
    let (server, url) = server().await;
    let cli = server.cli().await;
    for number in 0..5_000 {
        let () = cli.query(&["SET", &format!("lock:k{number}"), "theirs", "PX", "60000"]).await;
    }
    let mut command = tokio::process::Command::from(lockattr(&url, &["ls"]));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[tokio::test]
async fn without_a_store_the_variable_is_named() {
    let said = said("", &["ls"]).await;
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(said.err.contains("`LOCKATTR_URL`"), "{said:?}");
}

#[tokio::test]
async fn every_engine_is_there() {
    for url in [
        "rediss://127.0.0.1:1/",
        "redis+cluster://127.0.0.1:1",
        "redis+sentinel://127.0.0.1:1/master",
        "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
        "postgres://127.0.0.1:1/db",
        "mysql://127.0.0.1:1/db",
        "zookeeper://127.0.0.1:1",
        "etcd://127.0.0.1:1",
    ] {
        let said = said(url, &["who", "product:42"]).await;
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{url}: {said:?}");
        assert!(!said.err.contains("feature"), "{url}: {said:?}");
    }
    let memory = said("memory://", &["ls", "--json"]).await;
    assert_eq!((memory.code, memory.out.as_str()), (Some(0), ""), "{memory:?}");
}
