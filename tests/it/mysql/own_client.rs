//! Stores that a program makes with the configuration of its own client.

use std::sync::Arc;

use lockattr::store::{MysqlStore, ServerOptions};
use lockattr::{Error, LockManager, LockOptions};
use mysql_async::{Opts, OptsBuilder, Pool};

use super::Database;
use lockattr_tests::{HUNG, bare};

fn options() -> ServerOptions {
    // Many other tests share two cores.
    ServerOptions::new().connect_timeout(HUNG).response_timeout(HUNG)
}

async fn manager(store: MysqlStore) -> LockManager {
    let builder = LockManager::builder().store(Arc::new(store)).ttl(HUNG).wait(HUNG);
    builder.connect().await.expect("it answers")
}

fn opts(database: &Database) -> Opts {
    Opts::from_url(&bare(&database.server.url_of(&database.name))).expect("a good URL")
}

#[tokio::test]
async fn stores_from_opts_and_from_a_url_share_their_locks() {
    let database = Database::new().await;
    database.execute("CREATE TABLE seen (id INT)").await;
    // A program whose statements count found rows, and whose connections begin with its own
    // statement.
    let own = OptsBuilder::from_opts(opts(&database))
        .client_found_rows(true)
        .init(vec!["INSERT INTO seen VALUES (1)"]);
    let ours = manager(MysqlStore::from_opts(own, options()).unwrap()).await;
    let theirs = database.manager("").await;
    for round in 0..3 {
        let held = ours.acquire("a", LockOptions::new()).await.unwrap();
        assert!(theirs.try_acquire("a", LockOptions::new()).await.unwrap().is_none(), "{round}");
        held.release().await.unwrap();
        let held = theirs.acquire("a", LockOptions::new()).await.unwrap();
        assert!(ours.try_acquire("a", LockOptions::new()).await.unwrap().is_none(), "{round}");
        held.release().await.unwrap();
    }
    assert!(database.number("SELECT COUNT(*) FROM seen").await > 0, "`init` was dropped");
    database.holds_nothing().await;
}

/// Statements at the start of a connection, the program's or those in the server's `init_connect`, must
/// not choose where the tables are.
///
/// Red without: `USE` in `session_settings`.
#[tokio::test]
async fn the_tables_are_in_the_database_that_the_program_names() {
    let (database, other) = (Database::new().await, Database::new().await);
    let elsewhere = format!("USE {}", other.name);
    let moved = OptsBuilder::from_opts(opts(&database)).init(vec![elsewhere]);
    let ours = manager(MysqlStore::from_opts(moved, options()).unwrap()).await;
    let theirs = database.manager("").await;
    let held = ours.acquire("a", LockOptions::new()).await.unwrap();
    assert!(theirs.try_acquire("a", LockOptions::new()).await.unwrap().is_none(), "two hold it");
    held.release().await.unwrap();
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()";
    assert_eq!(other.number(tables).await, 0);
    database.holds_nothing().await;
}

/// Otherwise the application would decide whether the store's statements are committed, and how long
/// they may take.
///
/// Red without: `ours` at the start of `init` or of `setup` in `Config::of_opts`.
#[tokio::test]
async fn settings_of_the_programs_connections_do_not_change_those_of_the_store() {
    let database = Database::new().await;
    let settings = vec![
        "SET SESSION autocommit = 0, completion_type = 'CHAIN', sql_select_limit = 1",
        "SET NAMES latin1",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET SESSION group_concat_max_len = 4, sql_mode = 'PIPES_AS_CONCAT'",
    ];
    let own = OptsBuilder::from_opts(opts(&database));
    for own in [own.clone().init(settings.clone()), own.setup(settings)] {
        let manager = manager(MysqlStore::from_opts(own, options()).unwrap()).await;
        let names = ["a", "ä💰", "c"];
        let held = manager.acquire_all(names, LockOptions::new()).await.unwrap();
        let other = database.manager("").await;
        assert!(other.try_acquire("ä💰", LockOptions::new()).await.unwrap().is_none());
        assert_eq!(manager.held_locks().await.unwrap().len(), 3);
        held.release().await.unwrap();
    }
    database.holds_nothing().await;
}

#[tokio::test]
async fn a_connection_of_a_pool_gives_the_configuration_for_locks_of_connections() {
    let database = Database::new().await;
    let pool = Pool::new(opts(&database));
    let of_pool = pool.get_conn().await.unwrap().opts().clone();
    let store = MysqlStore::from_opts(of_pool, options()).unwrap().with_session_locks(8).unwrap();
    let (ours, theirs) = (manager(store).await, database.manager("lock=session").await);
    let held = ours.acquire("a", LockOptions::new()).await.unwrap();
    let session = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE()";
    assert!(database.number(session).await > 0);
    let rows = database.number("SELECT COUNT(*) FROM lockattr_v2_locks").await;
    assert_eq!(rows, 0, "the lock is a row");
    assert!(theirs.try_acquire("a", LockOptions::new()).await.unwrap().is_none());
    held.release().await.unwrap();
    theirs.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    pool.disconnect().await.unwrap();
}

#[test]
fn opts_without_a_database_and_a_wrong_number_of_sessions_are_refused() {
    let nameless = OptsBuilder::default().ip_or_hostname("h1").user(Some("u")).pass(Some("s3cret"));
    let refused = |outcome: Result<MysqlStore, Error>| match outcome {
        Err(Error::InvalidOptions(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    let sentence = refused(MysqlStore::from_opts(nameless.clone(), options()));
    assert!(sentence.contains("`db_name`"), "{sentence}");
    let store = MysqlStore::from_opts(nameless.db_name(Some("shop")), options()).unwrap();
    assert!(!format!("{store:?}").contains("s3cret"));
    let sentence = refused(store.with_session_locks(0));
    assert!(sentence.contains("`max_sessions`"), "{sentence}");
}
