//! The schema that has the tables: the one that the program names, whatever a search path says.

use lockattr::store::{PostgresSessionStore, PostgresStore, ServerOptions};
use lockattr::{Error, Mode};
use lockattr_tests::{PgBouncer, force_release, in_time};
use tokio_postgres::{Client, NoTls};

use super::*;
use crate::support::assert_refused;

/// Which of PostgreSQL's own a search path with `evil` before `pg_catalog` finds there instead.
const SHADOWS: &str = "
    create schema evil;
    create function evil.clock_timestamp() returns timestamptz language sql as $$
        select 'infinity'::timestamptz $$;
    create function evil.hashtextextended(text, bigint) returns bigint language sql as $$
        select (pg_catalog.random() * 1000000)::bigint $$;
    create function evil.pg_try_advisory_xact_lock_shared(bigint) returns boolean language sql as $$
        select true $$;
    create function evil.pg_advisory_xact_lock(bigint) returns boolean language sql as $$
        select true $$;
    create function evil.pg_try_advisory_xact_lock(bigint) returns boolean language sql as $$
        select true $$;
    create function evil.pg_notify(text, text) returns boolean language sql as $$ select true $$;
    create function evil.pg_backend_pid() returns integer language sql as $$ select 1 $$;
    create function evil.set_config(text, text, boolean) returns text language sql as $$
        select 'evil'::text $$;
    create function evil.current_setting(text) returns text language sql as $$
        select 'evil'::text $$;
    create function evil.differ(bytea, bytea) returns boolean language sql as $$ select false $$;
    create operator evil.= (leftarg = bytea, rightarg = bytea, function = evil.differ);
    create function evil.differ(text, text) returns boolean language sql as $$ select false $$;
    create operator evil.= (leftarg = text, rightarg = text, function = evil.differ);
    create function evil.differ(name, name) returns boolean language sql as $$ select false $$;
    create operator evil.= (leftarg = name, rightarg = name, function = evil.differ);
    create function evil.differ(integer, integer) returns boolean language sql as $$
        select false $$;
    create operator evil.= (leftarg = integer, rightarg = integer, function = evil.differ);
    create view evil.pg_locks as select * from pg_catalog.pg_locks limit 0;
    create view evil.pg_settings as select * from pg_catalog.pg_settings limit 0;
    create view evil.pg_stat_activity as select * from pg_catalog.pg_stat_activity limit 0;";

const HOUR: Duration = Duration::from_secs(3_600);

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn named(database: &Database, schema: &str) -> String {
    database.url_with(&format!("schema={}", encoded(schema)))
}

/// How many schemas have tables of ours.
async fn sets(database: &Database) -> i64 {
    database.number("select count(*) from pg_class where relname = 'lockattr_locks'").await
}

async fn refused(url: &str) -> String {
    match LockManager::connect(url).await {
        Err(Error::Store { source, .. }) => source.to_string(),
        other => panic!("{url}: {other:?}"),
    }
}

/// The first manager holds a lock, and then the second, which has waited for it.
async fn exclude_each_other(database: &Database, schema: &str, one: &str, other: &str) {
    let (one, other) = (manager(one).await, manager(other).await);
    let held = acquire(&one, "x").await;
    let second = other.try_acquire("x", LockOptions::new()).await;
    assert!(matches!(second, Ok(None)), "{schema}: {second:?}");
    let waits = tokio::spawn({
        let other = other.clone();
        async move { acquire(&other, "x").await }
    });
    let client = database.server.client_of(&database.name).await;
    let quoted = schema.replace('"', "\"\"");
    let queued = async || {
        let count = format!("select count(*) from \"{quoted}\".lockattr_queue");
        client.query_one(&count, &[]).await.unwrap().get::<_, i64>(0) == 1
    };
    eventually("the second waits", queued).await;
    let token = held.fencing_token();
    held.release().await.unwrap();
    let held = in_time(waits).await.unwrap();
    assert!(held.fencing_token() > token);
    held.release().await.unwrap();
}

/// Red without: the schema before a table's name.
#[tokio::test]
async fn a_role_with_a_schema_of_its_own_name_and_one_without_lock_in_the_same_tables() {
    let database = Database::new().await;
    let roles = ["with", "without"].map(|role| format!("{role}_{}", database.name));
    for role in &roles {
        database.run(&format!("create role {role} login superuser")).await;
    }
    database.run(&format!("create schema {}", roles[0])).await;
    let [one, other] = roles.map(|role| database.url.replace("lockattr@", &format!("{role}@")));
    exclude_each_other(&database, "public", &one, &other).await;
    assert_eq!(sets(&database).await, 1);
    database.has_nothing_left().await;
}

async fn client_with_path(database: &Database, path: &str) -> Client {
    let address = database.server.addr().replace(':', " port=");
    let words = format!("host={address} user=lockattr dbname={}", database.name);
    let (client, connection) = tokio_postgres::connect(&words, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("set search_path to {path}")).await.unwrap();
    client
}

/// Red without: the search path of our own sessions, or `pg_catalog` in the statements of others.
#[tokio::test]
async fn a_search_path_that_hides_or_replaces_names_changes_nothing() {
    let database = Database::new().await;
    database.run(SHADOWS).await;
    let plain = database.url.clone();
    for path in ["nowhere", "evil, pg_catalog, public"] {
        let option = encoded(&format!("-csearch_path={}", path.replace(", ", ",")));
        let under = database.url_with(&format!("options={option}"));
        exclude_each_other(&database, "public", &under, &plain).await;
        exclude_each_other(&database, "public", &plain, &under).await;
        let (held, other) = (manager(&under).await, manager(&plain).await);
        for (locks, others) in [(&held, &other), (&other, &held)] {
            let mut client = client_with_path(&database, path).await;
            let mut transaction = client.transaction().await.unwrap();
            locks.acquire_in(&mut transaction, "x").await.unwrap();
            let second = others.try_acquire("x", LockOptions::new()).await;
            assert!(matches!(second, Ok(None)), "{path}: {second:?}");
            drop(transaction);
        }
        // A session lock has no tables, but it is a number that a function of the server's makes.
        let sessions = [&under, &plain].map(|url| with_query(url, "lock=session"));
        let (one, other) = (manager(&sessions[0]).await, manager(&sessions[1]).await);
        let held = acquire(&one, "s").await;
        let second = other.try_acquire("s", LockOptions::new()).await;
        assert!(matches!(second, Ok(None)), "{path}: {second:?}");
        held.release().await.unwrap();
        let mut client = client_with_path(&database, path).await;
        let mut transaction = client.transaction().await.unwrap();
        let token = one.acquire_in(&mut transaction, "s").await.unwrap();
        let second = other.try_acquire("s", LockOptions::new()).await;
        assert!(matches!(second, Ok(None)), "{path}: {second:?}");
        token.fence_in(&mut transaction).await.unwrap();
        let fence = "select pg_catalog.current_setting('lockattr.fence')";
        let fence: String = transaction.query_one(fence, &[]).await.unwrap().get(0);
        assert_eq!(fence, token.to_string());
    }
    assert_eq!(sets(&database).await, 1);
    database.has_nothing_left().await;
}

/// A program that found its tables by a search path up to now must not get a second set.
///
/// Red without: `Schema::refuse`.
#[tokio::test]
async fn tables_elsewhere_on_the_search_path_are_refused_until_a_schema_is_named() {
    let database = Database::new().await;
    database.run(&PostgresStore::migration("old").unwrap()).await;
    let by_option = database.url_with("options=-csearch_path%3Dpublic,old");
    let role = format!("old_{}", database.name);
    database
        .run(&format!(
            "create role {role} login superuser; alter role {role} set search_path = old"
        ))
        .await;
    let by_role = database.url.replace("lockattr@", &format!("{role}@"));
    for url in [&by_option, &by_role] {
        let text = refused(url).await;
        assert!(text.contains("`schema=old`") && text.contains("`schema=public`"), "{text}");
    }
    assert_eq!(sets(&database).await, 1, "no second set was made");
    let in_old = with_query(&by_option, "schema=old");
    exclude_each_other(&database, "old", &in_old, &with_query(&by_role, "schema=old")).await;
    assert_eq!(sets(&database).await, 1);
    // A program that names the other one gets a second set.
    let in_public = with_query(&by_role, "schema=public");
    exclude_each_other(&database, "public", &in_public, &in_public).await;
    assert_eq!(sets(&database).await, 2);
}

/// Red without: the schema in the names of channels, or in those of tables.
#[tokio::test]
async fn two_schemas_are_independent_sets_of_locks() {
    let database = Database::new().await;
    let url = |schema: &str| named(&database, schema);
    let (a, b) = (manager(&url("a")).await, manager(&url("b")).await);
    let held = [acquire(&a, "x").await, acquire(&b, "x").await];
    let waits = [url("a"), url("b")].map(|url| {
        tokio::spawn(async move {
            let waiter = manager(&url).await;
            acquire(&waiter, "x").await
        })
    });
    for schema in ["a", "b"] {
        let one = format!("select count(*) from {schema}.lockattr_queue");
        eventually("one waits", async || database.number(&one).await == 1).await;
    }
    let channels = "select count(distinct split_part(query, ';', 1)) from pg_stat_activity
        where datname = current_database() and query like 'listen lockattr_%'";
    assert_eq!(database.number(channels).await, 2, "each schema has its own channel");
    let [held_in_a, held_in_b] = held;
    let [waits_in_a, waits_in_b] = waits;
    held_in_a.release().await.unwrap();
    let next = in_time(waits_in_a).await.unwrap();
    assert!(!waits_in_b.is_finished());
    held_in_b.ensure_held().unwrap();
    held_in_b.release().await.unwrap();
    in_time(waits_in_b).await.unwrap().release().await.unwrap();
    next.release().await.unwrap();
    // A transaction's lock is a number, which comes from the schema too.
    let mut client = database.server.client_of(&database.name).await;
    let mut transaction = client.transaction().await.unwrap();
    a.acquire_in(&mut transaction, "x").await.unwrap();
    acquire(&b, "x").await.release().await.unwrap();
    let second = a.try_acquire("x", LockOptions::new()).await;
    assert!(matches!(second, Ok(None)), "{second:?}");
    drop(transaction);
    assert_eq!(sets(&database).await, 2);
    for schema in ["a", "b"] {
        let left = async || database.server.left_in(&database.name, schema).await.is_empty();
        eventually("nothing is left", left).await;
    }
}

/// Red without: the quotes, their doubling, or the delimiter of the functions' bodies.
#[tokio::test]
async fn a_schema_may_have_any_name_that_postgresql_allows() {
    let database = Database::new().await;
    let longest = "s".repeat(63);
    let names =
        ["My-Schema", "o'dd", "say \"x\"", "a$$b$body0$", "'public.lockattr_locks'", "schéma"];
    for name in names.into_iter().chain([&*longest]) {
        let url = named(&database, name);
        exclude_each_other(&database, name, &url, &url).await;
        // What an operator runs changes nothing.
        database.run(&PostgresStore::migration(name).unwrap()).await;
        let locks = manager(&url).await;
        let shared = locks.acquire("x", LockOptions::new().mode(Mode::Shared)).await.unwrap();
        assert_eq!(locks.held_locks().await.unwrap().len(), 1, "{name}");
        assert!(locks.holder("x").await.unwrap().is_some());
        assert!(force_release(&locks, "x").await.unwrap());
        drop(shared);
        let mut client = database.server.client_of(&database.name).await;
        let mut transaction = client.transaction().await.unwrap();
        locks.acquire_in(&mut transaction, "x").await.unwrap();
        transaction.commit().await.unwrap();
        acquire(&locks, "x").await.release_done(HOUR).await.unwrap();
        let done = locks.try_acquire("x", LockOptions::new()).await;
        assert!(matches!(done, Ok(None)), "{name}: {done:?}");
    }
    assert_eq!(sets(&database).await, 7, "each schema was made, with its tables");
}

/// Red without: any of the conditions in `Schema::new`, or the one in `PostgresSessionStore`.
#[test]
fn names_that_no_schema_of_ours_can_have_are_refused() {
    let longer = "s".repeat(64);
    for (query, word) in [
        ("schema=", "`schema` is empty"),
        (&*format!("schema={longer}"), "64 bytes"),
        ("schema=a%00b", "zero byte"),
        ("schema=a%5C'b", "a backslash"),
        ("schema=pg_temp", "PostgreSQL's own"),
        ("schema=information_schema", "PostgreSQL's own"),
        ("schema=a&lock=session", "`lock=session`"),
    ] {
        assert_refused(&[(&format!("postgres://me:s3cret@db.example/shop?{query}"), word)]);
    }
    let config = tokio_postgres::Config::new();
    let of = |name: &str| ServerOptions::new().schema(name);
    let refused = PostgresStore::from_config(config.clone(), NoTls, of("pg_temp"));
    assert!(matches!(refused, Err(Error::InvalidOptions(_))), "{refused:?}");
    let refused = PostgresSessionStore::from_config(config, NoTls, of("locks"));
    assert!(matches!(refused, Err(Error::InvalidOptions(_))), "{refused:?}");
    assert!(matches!(PostgresStore::migration(""), Err(Error::InvalidOptions(_))));
}

#[tokio::test]
async fn a_schema_that_cannot_be_made_is_an_error_that_says_what_to_do() {
    let database = Database::new().await;
    let role = format!("few_{}", database.name);
    database.run(&format!("create role {role} login")).await;
    let few = named(&database, "locks").replace("lockattr@", &format!("{role}@"));
    let text = refused(&few).await;
    assert!(text.contains("PostgresStore::migration"), "{text}");
    // It is there, and may not be used.
    database.run("create schema locks").await;
    let text = refused(&few).await;
    assert!(text.contains("PostgresStore::migration"), "{text}");
    database.run(&format!("grant usage, create on schema locks to {role}")).await;
    exclude_each_other(&database, "locks", &few, &few).await;
    // No program has named this one, so it is not made.
    database.run("drop schema public").await;
    let text = refused(&database.url).await;
    assert!(text.contains("`schema=`"), "{text}");
}

#[tokio::test]
async fn the_builder_and_the_options_of_a_store_name_the_schema_too() {
    let database = Database::new().await;
    let built = LockManager::builder().url(&database.url).schema("locks").connect().await.unwrap();
    let held = acquire(&built, "x").await;
    let port = database.server.addr().rsplit(':').next().unwrap().parse().unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port).user("lockattr").dbname(&database.name);
    let store = PostgresStore::from_config(config, NoTls, ServerOptions::new().schema("locks"));
    let made = LockManager::builder().store(store.unwrap()).connect().await.unwrap();
    let second = made.try_acquire("x", LockOptions::new()).await;
    assert!(matches!(second, Ok(None)), "{second:?}");
    held.release().await.unwrap();
    // The operator's word counts.
    let url = database.url_with("schema=others");
    let overridden = LockManager::builder().schema("locks").url(url).connect().await.unwrap();
    drop(acquire(&overridden, "x").await);
    assert_eq!(sets(&database).await, 2);
}

#[tokio::test]
async fn a_pool_in_session_mode_locks_in_the_schema_that_is_named() {
    let database = Database::new().await;
    let pooler = PgBouncer::before(database.server, "session", 20, "").await;
    let behind = with_query(&pooler.url(&database.name), "schema=My-Schema");
    let direct = named(&database, "My-Schema");
    exclude_each_other(&database, "My-Schema", &behind, &direct).await;
    exclude_each_other(&database, "My-Schema", &direct, &behind).await;
    // What is on the search path is found there too.
    database.run(&format!("alter database {} set search_path = 'My-Schema'", database.name)).await;
    let pooler = PgBouncer::before(database.server, "session", 20, "").await;
    let text = refused(&pooler.url(&database.name)).await;
    assert!(text.contains("`schema=My-Schema`"), "{text}");
}
