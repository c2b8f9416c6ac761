//! A user with exactly the rights that the docs name.

use std::process::{Command, Stdio};

use lockattr::store::MysqlStore;
use lockattr::{Error, LockManager, LockOptions};

use super::{Database, take_turns};
use crate::every_way::lock_in_every_way;

#[tokio::test]
async fn a_user_without_create_rights_learns_what_to_run_and_can_lock_afterwards() {
    let database = Database::new().await;
    let name = &database.name;
    let source = include_str!("../../../lockattr/src/engines/mysql.rs");
    let documented = source.lines().find_map(|line| line.strip_prefix("/// GRANT "));
    let documented = documented.expect("the docs list rights");
    let rights = documented.replace("shop", name).replace("locker", &format!("least_{name}"));
    let rights = format!("GRANT {rights}");
    database.execute(&format!("CREATE USER least_{name} IDENTIFIED BY 'pass'")).await;
    database.execute(&rights).await;
    let url = database.url("").replace("locker:s3cret@", &format!("least_{name}:pass@"));
    let refused = LockManager::connect(&url).await.unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, Error::Store { .. }) && text.contains("MIGRATION"), "{text}");
    assert!(!text.contains("pass"), "{text}");

    migrate(&database);
    let connect = async || LockManager::connect(&url).await.unwrap();
    // A waiter that could not be woken would take five seconds each time.
    take_turns([connect().await, connect().await], 20).await;
    let queued = "SELECT COUNT(*) FROM lockattr_v2_queue";
    lock_in_every_way(&url, &url, async || database.number(queued).await == 1).await;
    database.holds_nothing().await;
}

/// Two users, neither of which may `KILL` the other's queries: the docs promise ten seconds.
#[tokio::test]
async fn a_process_that_cannot_be_woken_polls_in_time() {
    let database = Database::new().await;
    let name = &database.name;
    // Creates the tables.
    drop(database.manager("").await);
    let mut managers = Vec::new();
    for user in ["one", "other"] {
        let user = format!("{user}_{name}");
        database.execute(&format!("CREATE USER {user} IDENTIFIED BY 'pass'")).await;
        let rights = "SELECT, INSERT, UPDATE, DELETE, EXECUTE";
        database.execute(&format!("GRANT {rights} ON {name}.* TO {user}")).await;
        let url = database.url("").replace("locker:s3cret@", &format!("{user}:pass@"));
        managers.push(LockManager::connect(&url).await.unwrap());
    }
    let [one, other] = managers.try_into().expect("two of them");
    let guard = one.acquire("a", LockOptions::new()).await.unwrap();
    let next = tokio::spawn(async move {
        let guard = other.acquire("a", LockOptions::new()).await.unwrap();
        guard.release().await.unwrap();
    });
    database.has_queued(1).await;
    let released = tokio::time::Instant::now();
    guard.release().await.unwrap();
    next.await.unwrap();
    let after = released.elapsed().as_secs();
    // If it were sooner, another process would have woken it.
    assert!((3..13).contains(&after), "after {after} s");
    database.holds_nothing().await;
}

/// Runs the migration as the docs describe: with the client, as a user with the rights. Running it
/// twice does no harm.
fn migrate(database: &Database) {
    let addr = database.server.addr();
    let port = addr.rsplit(':').next().expect("a port");
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--host=127.0.0.1", "--user=locker", "--password=s3cret"]);
    client.arg(format!("--port={port}")).arg(&database.name);
    let mut client = client.stdin(Stdio::piped()).spawn().expect("`mariadb` is on the PATH");
    let mut stdin = client.stdin.take().expect("it is piped");
    std::io::Write::write_all(&mut stdin, MysqlStore::MIGRATION.as_bytes()).unwrap();
    drop(stdin);
    assert!(client.wait().unwrap().success());
}
