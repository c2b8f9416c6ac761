//! What has ended is deleted by each process that is connected, whatever else it does.

use lockattr::Mode;
use lockattr_tests::capture_events;
use tokio::task::JoinSet;

use super::*;

/// How often the connections of the process that sweeps ask whether a sweep is due.
const OFTEN: &str = "heartbeat=100ms";

/// Connections that ask only once.
const ONCE: &str = "heartbeat=1h";

/// What is left, besides the locks of the process that sweeps: each lock with its waiters, then the
/// holders of shared locks, then the queue.
const LEFT: &str = "
    select coalesce(string_agg(line, ', ' order by line), '') from (
        select convert_from(name, 'UTF8') || ' waiting ' || waiting as line from lockattr_locks
        union all
        select convert_from(name, 'UTF8') || ' shared by ' || encode(token, 'escape') from lockattr_holders
        where name not like '%readers'
        union all
        select convert_from(name, 'UTF8') || ' queued' from lockattr_queue
    ) as lines where line not like '%leader %' and line not like '%lives waited %'";

const COUNT: &str = "select count(*) from lockattr_locks";

impl Database {
    /// Locks with one exclusive holder, whose leases end in so many seconds.
    async fn insert_locks(&self, name: &str, count: usize, ends: i64) {
        self.run(&format!(
            "insert into lockattr_locks select convert_to('{name} ' || n, 'UTF8'), 'done', 'value done=1',
                 now() + interval '{ends} seconds' from generate_series(1, {count}) as n"
        ))
        .await;
    }

    /// As if 40 seconds had passed since the last sweep.
    async fn sweep_is_due(&self) {
        self.run("update lockattr_sweep set due = '-infinity'").await;
    }

    async fn left(&self) -> String {
        self.server.client_of(&self.name).await.query_one(LEFT, &[]).await.unwrap().get(0)
    }

    /// Waits until so many locks are left, and then until only these are.
    async fn holds(&self, count: i64, left: &str) {
        let few = async || self.number(COUNT).await <= count;
        eventually("what has ended is deleted", few).await;
        let only = async || self.left().await == left;
        eventually(&format!("only this is left: {left}"), only).await;
    }
}

/// What a process does besides being connected.
#[derive(Debug, Clone, Copy)]
enum Calls {
    None,
    TryAcquire,
    Lead,
}

/// Starts the process that sweeps. Its calls end with it.
async fn process(database: &Database, calls: Calls) -> (LockManager, JoinSet<()>) {
    let (manager, mut tasks) = (database.manager(OFTEN).await, JoinSet::new());
    let caller = manager.clone();
    match calls {
        Calls::None => {}
        Calls::TryAcquire => drop(tasks.spawn(async move {
            loop {
                let guard = caller.try_acquire("leader", LockOptions::new()).await.unwrap();
                guard.expect("it is free").release().await.unwrap();
            }
        })),
        Calls::Lead => drop(tasks.spawn(async move {
            let term = |_term| std::future::pending::<()>();
            caller.lead("leader", LockOptions::new(), term).await.unwrap();
        })),
    }
    (manager, tasks)
}

/// Red without: the call of the sweep in `check` of `Queries`.
#[tokio::test]
async fn what_has_ended_is_deleted_whatever_calls_a_process_makes() {
    for calls in [Calls::None, Calls::TryAcquire, Calls::Lead] {
        let database = Database::new().await;
        let (_sweeps, mut tasks) = process(&database, calls).await;
        let (holder, waiter) = (database.manager(ONCE).await, database.manager(ONCE).await);
        let held = acquire(&holder, "held").await;
        let reader = holder.acquire("read", LockOptions::new().mode(Mode::Shared)).await.unwrap();
        let waits = tokio::spawn(async move { acquire(&waiter, "held").await.release().await });
        database.waiting(1).await;

        database.insert_locks("ended done", 24_000, -1).await;
        database.insert_locks("ended waited", 300, -1).await;
        database.insert_locks("lives done", 1, 3_600).await;
        database.insert_locks("lives waited", 300, 3_600).await;
        let others = "
            insert into lockattr_queue select name, 1, sha256(name), 'value', 'x', 0, 10000, 4711,
                now() - interval '20 seconds', null from lockattr_locks
                where name like '%waited%';
            update lockattr_locks set waiting = waiting + 1 where name like '%waited%';
            insert into lockattr_locks select convert_to(word || ' shared', 'UTF8'), '', '', '-infinity'
                from unnest(array['ended', 'lives']) as word;
            insert into lockattr_holders select convert_to(word || ' shared', 'UTF8'), token, 's', 'value',
                now() + case when token = 'first' then interval '-1 second' else length * interval '1 hour' end
                from (values ('ended', -1), ('lives', 1)) as locks (word, length),
                    (values ('first'::bytea), ('second'::bytea)) as holders (token)";
        database.run(others).await;
        assert!(database.number(COUNT).await > 24_600, "{calls:?}");

        database.sweep_is_due().await;
        let token = "select encode(token, 'escape') from lockattr_holders where name = 'lock:read'";
        let client = database.server.client_of(&database.name).await;
        let reads: String = client.query_one(token, &[]).await.unwrap().get(0);
        let left = format!(
            "lives done 1 waiting 0, lives shared shared by second, lives shared waiting 0, \
             lock:held queued, lock:held waiting 1, lock:read shared by {reads}, lock:read waiting 0"
        );
        database.holds(310, &left).await;
        let waited =
            "select count(*) from lockattr_locks where name like 'lives waited%' and waiting = 0";
        let corrected = async || database.number(waited).await == 300;
        eventually("dead waiters are not counted", corrected).await;

        held.ensure_held().unwrap();
        held.release().await.unwrap();
        waits.await.unwrap().unwrap();
        reader.release().await.unwrap();
        tasks.shutdown().await;
    }
}

/// Red without: the row of `lockattr_sweep`, which is locked during a step.
#[tokio::test]
async fn two_processes_sweep_each_part_once() {
    let database = Database::new().await;
    let _both = [database.manager(OFTEN).await, database.manager(OFTEN).await];
    database.insert_locks("ended", 10_000, -1).await;
    // Only this test takes `due` back.
    database
        .run(
            "create table steps (after bytea);
             create function step() returns trigger language plpgsql as $$ begin
                 insert into public.steps values (new.next); return null; end $$;
             create trigger step after update on lockattr_sweep for each row
                 when (new.due > old.due) execute function step();",
        )
        .await;
    database.sweep_is_due().await;
    database.holds(0, "").await;
    // A heartbeat asks, and then checks the connection.
    for _ in 0..2 {
        let now =
            database.number("select (extract(epoch from clock_timestamp()) * 1000)::bigint").await;
        let silent = format!(
            "select count(*) from pg_stat_activity where datname = current_database()
             and pid <> pg_backend_pid() and extract(epoch from query_start) * 1000 <= {now}"
        );
        eventually("all have asked again", async || database.number(&silent).await == 0).await;
    }
    let steps = "select count(*) from steps";
    assert_eq!(database.number(steps).await, 10_000 / 500 + 1);
    assert_eq!(database.number("select count(distinct after) from steps").await, 10_000 / 500 + 1);
}

/// The process that swept has died halfway.
///
/// Red without: `next` in `sweep.sql`.
#[tokio::test]
async fn a_sweep_that_was_interrupted_goes_on_where_it_was() {
    let database = Database::new().await;
    let _sweeps = database.manager(OFTEN).await;
    database.insert_locks("first", 500, -1).await;
    database.insert_locks("second", 500, -1).await;
    database.run("update lockattr_sweep set due = '-infinity', next = 'p'").await;
    eventually("the second half is gone", async || database.number(COUNT).await <= 500).await;
    assert_eq!(
        database.number("select count(*) from lockattr_locks where name like 'first%'").await,
        500
    );
    database.sweep_is_due().await;
    database.has_nothing_left().await;
}

/// Red without: `skip locked` of the locks in `sweep.sql`.
#[tokio::test]
async fn a_sweep_passes_over_a_row_that_is_in_use() {
    let database = Database::new().await;
    let _sweeps = database.manager(OFTEN).await;
    database.insert_locks("ended", 700, -1).await;
    let uses = database.server.client_of(&database.name).await;
    uses.batch_execute("begin; select from lockattr_locks where name = 'ended 7' for update")
        .await
        .unwrap();
    database.sweep_is_due().await;
    database.holds(1, "ended 7 waiting 0").await;
    uses.batch_execute("rollback").await.unwrap();
    database.sweep_is_due().await;
    database.has_nothing_left().await;
}

/// Red without: `warn_once`.
#[tokio::test]
async fn a_process_that_may_not_delete_says_so_once() {
    let database = Database::new().await;
    let events = capture_events();
    // Creates the tables.
    drop(database.manager(ONCE).await);
    let user = format!("looker_{}", database.name);
    database
        .run(&format!(
            "create role {user} login;
             grant select, insert, update on all tables in schema public to {user};
             grant usage, select, update on all sequences in schema public to {user};"
        ))
        .await;
    database.insert_locks("ended", 1, -1).await;
    let url = database.url_with(OFTEN).replace("lockattr@", &format!("{user}@"));
    let manager = manager(&url).await;
    database.sweep_is_due().await;
    eventually("it has said so", async || events.contains("cannot delete")).await;
    let asks = "select xact_rollback from pg_stat_database where datname = current_database()";
    let before = database.number(asks).await;
    eventually("it has asked again", async || database.number(asks).await > before + 3).await;
    assert!(manager.holder("a").await.unwrap().is_none(), "the connection still serves");
    assert_eq!(events.count("cannot delete"), 1, "{:?}", events.all());
    assert!(events.contains("PostgresStore::migration"), "{:?}", events.all());
}
