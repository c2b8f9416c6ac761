//! What other programs write under the prefix: names and labels that mislead, megabytes, values that
//! are no locks.

use lockattr_tests::{Node, RedisServer, eventually};

use crate::support::{Said, lockattr, said, server};

/// A key with an escape sequence, a line feed, an override of direction and a separator of lines.
const KEY: &str = "a\u{1b}[31mb\nc\u{202e}d\u{2028}e";
const SHOWN: &str = "a�[31mb�c�d�e";
const LABEL: &str = "0 service=s%1B%E2%80%AE%E2%81%A6x host=h%0A function=f%C2%9B";

async fn set(server: &RedisServer, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
    let mut set = redis::cmd("SET");
    set.arg(name.as_ref()).arg(value.as_ref());
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    set.query_async::<()>(&mut connection).await.unwrap();
}

/// Asserts that the output moves no text of a terminal.
#[track_caller]
fn check_printable(said: &Said) {
    for text in [&said.out, &said.err] {
        for line in text.lines() {
            assert_eq!(lockattr::printable(line), line, "{said:?}");
        }
    }
}

/// Red without: `printable` in `Output::line`, in `report` or in `Holder`.
#[tokio::test]
async fn no_key_and_no_label_moves_the_text_around_it() {
    let (server, url) = server().await;
    set(&server, format!("lock:{KEY}"), LABEL).await;
    let holder = "s���x on h� in f�";

    let listed = said(&url, &["ls"]).await;
    check_printable(&listed);
    let lines: Vec<_> = listed.out.lines().collect();
    assert_eq!(lines.len(), 2, "{listed:?}");
    assert!(lines[1].starts_with(&format!("{SHOWN}  s���x@h�")), "{listed:?}");

    let mut watch = Node::run(lockattr(&url, &["watch"]));
    let line = watch.line().await;
    assert!(line.ends_with(&format!(" held       {SHOWN} by s���x@h�")), "{line}");
    watch.kill();

    let who = said(&url, &["who", KEY]).await;
    assert_eq!(who.out, format!("`{SHOWN}` is held by {holder}\n"));
    let busy = said(&url, &["run", KEY, "--", "true"]).await;
    check_printable(&busy);
    assert_eq!(busy.code, Some(75), "{busy:?}");
    let refused = said(&url, &["release", KEY]).await;
    check_printable(&refused);
    assert!(refused.err.contains(&format!("`{SHOWN}` is held by {holder}")), "{refused:?}");
    let forced = said(&url, &["release", "--force", KEY]).await;
    assert_eq!(forced.out, format!("taken: `{SHOWN}` was held by {holder}\n"));
}

/// Red without: `escaped` in `Output::json`.
#[tokio::test]
async fn json_has_the_key_as_it_is_in_the_store_and_no_character_that_moves_text() {
    let (server, url) = server().await;
    set(&server, format!("lock:{KEY}"), LABEL).await;
    for words in [&["ls", "--json"][..], &["who", "--json", KEY]] {
        let said = said(&url, words).await;
        check_printable(&said);
        assert_eq!(said.out.lines().count(), 1, "{said:?}");
        let object: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!((&object["key"], &object["holder"]["host"]), (&KEY.into(), &"h�".into()));
    }
}

/// Redis hangs up on a subscriber that lets more than 32 MB of replies wait.
///
/// Red without: `shown` in `holder.lua`, `acquire.lua` or `held_locks.lua`.
#[tokio::test]
async fn fifty_megabytes_under_the_name_of_a_lock_are_a_lock_of_another_program() {
    let (server, _) = server().await;
    // The server copies them for the script, which takes long on a busy machine.
    let url = server.url();
    let cli = server.cli().await;
    let last = (50 * 1024 * 1024).to_string();
    cli.query::<i64>(&["SETRANGE", "lock:big", &last, "x"]).await;
    cli.query::<i64>(&["PEXPIRE", "lock:big", "600000"]).await;

    let listed = said(&url, &["ls"]).await;
    assert!(listed.out.lines().any(|line| line.starts_with("big ")), "{listed:?}");
    let who = said(&url, &["who", "big"]).await;
    assert_eq!(who.code, Some(0), "{who:?}");
    assert!(
        who.out.starts_with("`big` is held by another program, its lease ends in 9m"),
        "{who:?}"
    );
    let busy = async || {
        let said = said(&url, &["run", "big", "--", "true"]).await;
        // On a busy machine, the server may take too long for them.
        assert!(matches!(said.code, Some(69 | 75)), "{said:?}");
        said.code == Some(75)
    };
    eventually("busy", busy).await;
    let forced = said(&url, &["release", "--force", "big"]).await;
    assert_eq!(forced.code, Some(0), "{forced:?}");
    assert_eq!(cli.query::<i64>(&["EXISTS", "lock:big"]).await, 0);
}

/// Red without: the check of the kind in `holder.lua`.
#[tokio::test]
async fn what_is_not_a_lock_is_neither_listed_nor_held_nor_released() {
    let (server, url) = server().await;
    let cli = server.cli().await;
    for words in [
        &["HSET", "lock:odd", "f", "v"][..],
        &["RPUSH", "lock:odd", "v"],
        &["SADD", "lock:odd", "v"],
        &["ZADD", "lock:odd", "1", "v"],
        &["XADD", "lock:odd", "*", "f", "v"],
    ] {
        cli.query::<redis::Value>(words).await;
        let listed = said(&url, &["ls"]).await;
        assert_eq!((listed.code, listed.out.lines().count()), (Some(0), 1), "{listed:?}");
        for words in [&["who", "odd"][..], &["release", "odd"], &["release", "--force", "odd"]] {
            let refused = said(&url, words).await;
            assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
            // No advice that would then be refused.
            assert_eq!(refused.err.lines().count(), 1, "{refused:?}");
            assert!(refused.err.contains("`lock:odd` is not a lock: inspect it"), "{refused:?}");
        }
        assert_eq!(cli.query::<i64>(&["DEL", "lock:odd"]).await, 1);
    }
}

/// Red without: `AHEAD` in `span.rs`, or `LAST` in `row.rs`.
#[tokio::test]
async fn a_label_with_an_absurd_time_has_no_age() {
    let (server, url) = server().await;
    let year_300_000_000 = "9467280000000000000";
    let numbers = [year_300_000_000, "18446744073709551615", "99999999999999999999", "-1", "x"];
    for (nth, since) in numbers.iter().enumerate() {
        set(&server, format!("lock:k{nth}"), format!("0 since={since} service=s")).await;
    }
    let listed = said(&url, &["ls", "--sort", "age"]).await;
    assert_eq!((listed.code, listed.err.as_str()), (Some(0), ""), "{listed:?}");
    for line in listed.out.lines().skip(1) {
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[1..], ["s", "-", "-", "forever", "0"], "{listed:?}");
    }
    assert_eq!(listed.out.lines().count(), 1 + numbers.len());
    for nth in 0..numbers.len() {
        let key = format!("k{nth}");
        let who = said(&url, &["who", &key]).await;
        assert_eq!((who.code, who.out), (Some(0), format!("`{key}` is held by s\n")));
        let json = said(&url, &["who", "--json", &key]).await;
        let object: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(object["since"], serde_json::Value::Null, "{json:?}");
    }
    let json = said(&url, &["ls", "--json"]).await;
    assert_eq!((json.code, json.out.lines().count()), (Some(0), numbers.len()), "{json:?}");
}
