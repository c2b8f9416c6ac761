//! `fork(2)`: the child owns nothing of its parent's, and releases nothing.

use std::time::Duration;

use lockattr_tests::{Node, RedisServer, assert_nothing_left, node};

/// The lines of the parent until `last`.
async fn said(node: &mut Node, last: &str) -> Vec<String> {
    let mut said = Vec::new();
    while said.last().is_none_or(|line: &String| !line.starts_with(last)) {
        let line = node.line_within(Duration::from_secs(20)).await;
        said.push(line.unwrap_or_else(|| panic!("it exited or hangs after {said:#?}")));
    }
    said
}

/// The rest of the line that begins with `words`.
fn value_of<'a>(said: &'a [String], words: &str) -> &'a str {
    let line = said.iter().find_map(|line| line.strip_prefix(words));
    line.unwrap_or_else(|| panic!("no `{words}` in {said:#?}"))
}

/// The child has only the thread that forked, and its parent's connections.
#[tokio::test]
async fn a_forked_process_is_refused_and_releases_nothing_of_its_parent() {
    let server = RedisServer::start().await;
    let mut node = node!("fork", url = server.url_with("ttl=60s"));
    let said = said(&mut node, "parent holds").await;
    for asks in ["copy acquires: ", "copy asks: ", "copy shuts down: "] {
        let refused = value_of(&said, asks);
        assert!(
            refused.starts_with("Err(InvalidOptions(") && refused.contains("fork"),
            "{refused}"
        );
    }
    for looks in ["copy holds: ", "copy nests: ", "copy releases: "] {
        let lost = value_of(&said, looks);
        assert!(lost.starts_with("Err(Lost {") && lost.contains("Forked"), "{lost}");
    }
    assert_eq!(value_of(&said, "copy installs once: "), "true");
    assert_eq!(value_of(&said, "copy finds it free: "), "false");
    assert_eq!(value_of(&said, "copy ended: "), "Ok(())");
    assert_eq!(value_of(&said, "parent holds: "), "Ok(())");
    let cli = server.cli().await;
    let (parents, copys) = (cli.value("lock:parents").await, cli.value("lock:copys").await);
    let (parents, copys) = (parents.expect("it is held"), copys.expect("it is held"));
    let halves = |value: &str| [value[..16].to_owned(), value[16..32].to_owned()];
    let same = halves(&parents).iter().any(|half| halves(&copys).contains(half));
    assert!(!same, "two processes with one chance: {parents}, {copys}");
    assert!(cli.value("lock:held").await.is_some(), "the fork released what its parent holds");
    node.say("go on").await;
    assert_eq!(node.line().await, "parent released");
    cli.query::<i64>(&["DEL", "lock:parents", "lock:copys"]).await;
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}

#[tokio::test]
async fn a_process_forked_inside_a_body_learns_that_it_has_no_lock() {
    let server = RedisServer::start().await;
    let mut node = node!("fork", url = server.url_with("ttl=60s"), how = "body");
    let said = said(&mut node, "parent ended").await;
    let lost = value_of(&said, "copy ended: ");
    assert!(lost.starts_with("Err(Lost {") && lost.contains("Forked"), "{lost}");
    assert_eq!(value_of(&said, "parent ended: "), "Ok(())");
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}

/// A waiter of the parent's is copied too, and so is the task that renews and releases.
#[tokio::test]
async fn a_forked_runtime_acquires_and_releases_nothing() {
    let server = RedisServer::start().await;
    let mut node = node!("fork", url = server.url_with("ttl=60s"), how = "runtime");
    let said = said(&mut node, "parent released").await;
    for call in ["copy acquires: ", "copy watches: ", "copy leads: "] {
        let refused = value_of(&said, call);
        assert!(
            refused.starts_with("Err(InvalidOptions(") && refused.contains("fork"),
            "{refused}"
        );
    }
    assert_eq!(value_of(&said, "copy waited: "), "false");
    assert_eq!(value_of(&said, "parent holds: "), "Ok(())");
    assert!(node.finish().await.success());
    assert_nothing_left(&server).await;
}
