//! `lockattr fence sql`: the migration that it prints, applied as it is to real databases.

mod mysql;
mod mysql_steps;
mod mysql_transactions;
mod postgres;
mod postgres_steps;
mod postgres_transactions;

use std::process::{Command, Stdio};

use lockattr::{FencingToken, LockManager, LockOptions};
use lockattr_tests::{Node, force_release};

use crate::support::{lockattr, said};

/// A token, as a lock would give it.
fn token(number: u64) -> FencingToken {
    FencingToken::try_from(number).unwrap()
}

/// What `lockattr fence sql WORD…` prints.
async fn printed(words: &[&str]) -> String {
    let said = said("", &[&["fence", "sql"], words].concat()).await;
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{words:?}");
    said.out
}

/// Runs a client of a database with this input. Returns whether it succeeded, and its output.
fn client(program: &str, arguments: &[&str], input: &str) -> (bool, String) {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// A holder that is stopped and loses its lock meanwhile, and another one that gets it.
struct Overtaken {
    late: Node,
    next: FencingToken,
}

impl Overtaken {
    /// `write` is a command that writes under `$LOCKATTR_FENCING_TOKEN`. The late holder runs it when
    /// [`write_late`](Self::write_late) is called.
    async fn new(store: &str, write: &str) -> Self {
        let script = format!("echo \"$LOCKATTR_FENCING_TOKEN\"; read go; {write}; echo \"end $?\"");
        let mut command = lockattr(store, &["run", "product:42"]);
        command.args(["--", "sh", "-c", &script]);
        let mut late = Node::run(command);
        let first: u64 = late.line().await.parse().expect("a token");
        late.stop_signal();
        let manager = LockManager::connect(store).await.unwrap();
        // As the end of its lease, which it does not renew.
        assert!(force_release(&manager, "product:42").await.unwrap());
        let guard = manager.acquire("product:42", LockOptions::new()).await.unwrap();
        let next = guard.fencing_token();
        assert!(next.get() > first);
        guard.release().await.unwrap();
        Self { late, next }
    }

    /// Returns what the command printed, and its exit code.
    async fn write_late(&mut self) -> (String, String) {
        self.late.say("go").await;
        let mut text = String::new();
        loop {
            let line = self.late.line().await;
            match line.strip_prefix("end ") {
                Some(code) => {
                    self.late.continue_signal();
                    return (text, code.to_owned());
                }
                None => text += &line,
            }
        }
    }
}

#[tokio::test]
async fn the_engine_is_that_of_the_store_unless_it_is_named() {
    let words = ["fence", "sql", "--table", "stock"];
    for (url, marker) in [
        ("postgres://secret@nowhere/shop", "LANGUAGE plpgsql"),
        ("postgresql://nowhere/shop", "LANGUAGE plpgsql"),
        ("mysql://nowhere/shop", "DELIMITER ;;"),
    ] {
        // Does not contact the store.
        let said = said(url, &words).await;
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        assert!(said.out.contains(marker), "{}", said.out);
    }
    for url in ["", "redis://nowhere/"] {
        let said = said(url, &words).await;
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
        assert!(said.err.contains("`--engine postgres`"), "{}", said.err);
    }
    let named = printed(&["--table", "stock", "--engine", "postgres"]).await;
    assert!(named.contains("LANGUAGE plpgsql"));
}

#[tokio::test]
async fn arguments_that_would_do_nothing_or_something_else_are_refused() {
    let long = "t".repeat(60);
    for (words, expected) in [
        (&["--table", ""][..], "a name is empty"),
        (&["--table", "a.b.c"], "double quotes"),
        (&["--table", "a\nb"], "control character"),
        (&["--table", "a", "--column", ""], "a name is empty"),
        (&["--table", "a", "--no-delimiter"], "`--engine mysql`"),
        (&["--table", "a", "--down", "--allow-unfenced"], "cannot be used with"),
        (&["--table", &long], "`--name`"),
        (&["--table", "a\\", "--engine", "mysql"], "backslash"),
        (&["--table", "a", "--name", "a\\", "--engine", "mysql"], "backslash"),
        (&["--table", &"t".repeat(64)], "63 bytes"),
        (&[], "--table"),
    ] {
        let said = said("postgres://nowhere/", &[&["fence", "sql"], words].concat()).await;
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{words:?}");
        assert!(said.err.contains(expected), "{words:?}: {}", said.err);
    }
}
