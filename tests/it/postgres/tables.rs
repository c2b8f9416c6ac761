//! The tables: created by the first client or by hand, and left empty.

use futures_util::future::join_all;
use lockattr::Error;
use lockattr::store::PostgresStore;
use tokio_postgres::NoTls;

use super::*;
use crate::every_way::lock_in_every_way;

#[tokio::test]
async fn many_clients_can_create_the_tables_at_once() {
    for _ in 0..3 {
        let database = Database::new().await;
        // On threads of their own; otherwise the first is done before the second begins.
        let managers = (0..12).map(|_| {
            let url = database.url_with("connections=1");
            tokio::task::spawn_blocking(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(async {
                    let manager = manager(&url).await;
                    acquire(&manager, "a").await.release().await.unwrap();
                });
            })
        });
        for made in join_all(managers).await {
            made.unwrap();
        }
        database.has_nothing_left().await;
    }
}

/// What a hardened database takes from everyone, also for what is created later.
const NOTHING_IS_PUBLIC: &str = "revoke all on database {database} from public;
    revoke all on schema public from public;
    alter default privileges revoke execute on functions from public;
    alter default privileges revoke usage on types from public;";

/// The statements in the docs of `PostgresStore`.
fn documented_grants() -> String {
    let source = include_str!("../../../lockattr/src/engines/postgres.rs");
    let docs: Vec<_> = source.lines().filter_map(|line| line.trim().strip_prefix("///")).collect();
    let docs = docs.join("\n");
    let (_, grants) = docs.split_once("```text\n grant").expect("the docs list grants");
    format!("grant{}", grants.split("```").next().unwrap_or_default())
}

/// The user has only the rights that the docs name, and everyone else has none.
///
/// Red without: any of the grants in the docs.
#[tokio::test]
async fn a_user_without_create_rights_is_pointed_to_the_migration_and_needs_few_rights() {
    let database = Database::new().await;
    let (name, user) = (&database.name, format!("locker_{}", database.name));
    let as_user = database.url.replace("lockattr@", &format!("{user}@"));
    let url = with_query(&as_user, "schema=locks");
    let grants = documented_grants().replace("shop", name).replace("to app", &format!("to {user}"));
    let (connect, others) = grants.split_once(';').expect("the first is the right to connect");
    database.run(&NOTHING_IS_PUBLIC.replace("{database}", name)).await;
    database.run(&format!("create role {user} login; {connect}")).await;
    let Err(Error::Store { source, .. }) = LockManager::connect(&url).await else {
        panic!("connected to a database without tables");
    };
    assert!(source.to_string().contains("PostgresStore::migration"), "{source}");

    database.run(&PostgresStore::migration("locks").unwrap()).await;
    let Err(Error::Store { source, .. }) = LockManager::connect(&url).await else {
        panic!("connected without rights");
    };
    assert!(source.to_string().contains("grant"), "{source}");

    database.run(others).await;
    // A sweep is due at the first connection.
    database.run("update locks.lockattr_sweep set due = '-infinity'").await;
    let queued = async || database.number("select count(*) from locks.lockattr_queue").await == 1;
    lock_in_every_way(&url, &as_user, queued).await;
    // In a transaction, the function runs with the rights of the program's own client.
    let address = database.server.addr().replace(':', " port=");
    let words = format!("host={address} user={user} dbname={name}");
    let (mut client, connection) = tokio_postgres::connect(&words, NoTls).await.unwrap();
    tokio::spawn(connection);
    let mut transaction = client.transaction().await.unwrap();
    manager(&url).await.acquire_in(&mut transaction, "a").await.unwrap();
    transaction.commit().await.unwrap();
}

/// The migration is idempotent: running it again changes nothing.
///
/// Red without: `if not exists`.
#[tokio::test]
async fn the_migration_runs_any_number_of_times_beside_programs_that_lock() {
    let database = Database::new().await;
    let manager = database.manager("").await;
    let guard = acquire(&manager, "a").await;
    database.run(&PostgresStore::migration("public").unwrap()).await;
    assert!(manager.holder("a").await.unwrap().is_some());
    guard.release().await.unwrap();
    acquire(&manager, "a").await.release().await.unwrap();
    database.has_nothing_left().await;
}

/// The sweep reads which rows have no holder, and a reader acquires one of these locks before the
/// sweep locks its row.
///
/// Red without: the statements that read again in `lockattr_sweep_3`, once the rows are locked.
#[tokio::test]
async fn a_sweep_does_not_delete_a_lock_that_was_just_acquired() {
    let database = Database::new().await;
    drop(database.manager("").await);
    let (sweeps, reads) = (
        database.server.client_of(&database.name).await,
        database.server.client_of(&database.name).await,
    );
    let left =
        "insert into lockattr_locks select convert_to('lock ' || n, 'UTF8'), '', '', '-infinity'
        from generate_series(1, 400) as n on conflict do nothing";
    let acquire = "select lockattr_acquire_3(array[convert_to('lock ' || n, 'UTF8')],
        decode(lpad(to_hex(n), 32, '0'), 'hex'), 'label', 's', 0, 60000, null)
        from generate_series(1, 400) as n";
    for _ in 0..10 {
        database.run(left).await;
        let sweep = "update lockattr_sweep set due = '-infinity'; select lockattr_sweep_3()";
        let (swept, read) = tokio::join!(sweeps.batch_execute(sweep), async {
            for n in 1..=400 {
                let one = acquire
                    .replace("generate_series(1, 400)", &format!("generate_series({n}, {n})"));
                reads.batch_execute(&one).await.unwrap();
            }
        });
        swept.unwrap();
        let () = read;
        let without_row = "select count(*) from lockattr_holders as holder
            where not exists (select from lockattr_locks where lockattr_locks.name = holder.name)";
        assert_eq!(database.number(without_row).await, 0, "a writer could acquire them, too");
        database.run("truncate lockattr_locks, lockattr_holders").await;
    }
}
