//! Statements that the server rolls back because another transaction was in their way: they are
//! repeated.

use lockattr::Error;
use lockattr_tests::in_time;

use super::*;

/// A deadlock, a serialization failure, and what lockattr's own functions raise.
const CODES: [&str; 3] = ["40P01", "40001", "LA001"];

impl Database {
    /// Rolls back the next `times` statements that do this with a table, with one of the `CODES`.
    async fn conflicts(&self, with: &str, code: &str, times: u32) {
        // No rollback resets a sequence.
        let trigger = format!(
            "drop sequence if exists conflicts; create sequence conflicts;
            create or replace function conflict() returns trigger language plpgsql as $$ begin
                if nextval('public.conflicts') <= {times} then
                    raise exception using errcode = '{code}', message = 'another came first';
                end if;
                return null;
            end $$;
            create or replace trigger conflict before {with} execute function conflict()"
        );
        self.run(&trigger).await;
    }

    /// How many statements came to the trigger.
    async fn came(&self) -> i64 {
        self.number("select case when is_called then last_value else 0 end from conflicts").await
    }
}

/// The plain insert does not repeat itself, because the function comes next, which does so twice.
///
/// Red without: the loop in `acquire_contended`.
#[tokio::test]
async fn an_acquisition_that_conflicts_is_repeated_a_few_times() {
    for code in CODES {
        let database = Database::new().await;
        let manager = database.manager("").await;
        // `acquire` would try again after an error.
        let attempt = async || manager.try_acquire("a", LockOptions::new()).await;
        database.conflicts("insert on lockattr_locks", code, 3).await;
        let guard = attempt().await.unwrap().expect("it is free");
        assert_eq!(database.came().await, 4, "{code}");
        guard.release().await.unwrap();

        database.conflicts("insert on lockattr_locks", code, 4).await;
        let guard = attempt().await;
        let Err(Error::Store { source, .. }) = guard else { panic!("{code}: {guard:?}") };
        assert!(source.to_string().contains("try again"), "{source}");
        attempt().await.unwrap().expect("it is free").release().await.unwrap();
        database.has_nothing_left().await;
    }
}

/// Red without: the loop in `acquire_contended`.
#[tokio::test]
async fn a_claim_that_conflicts_on_its_way_into_the_queue_is_queued() {
    for code in CODES {
        let database = Database::new().await;
        // Nothing but the release lets the waiter in.
        let (here, there) = (database.manager("").await, database.manager("retry_delay=1h").await);
        let holder = acquire(&here, "a").await;
        database.conflicts("insert on lockattr_queue", code, 2).await;
        let waiter = tokio::spawn(async move { acquire(&there, "a").await });
        database.waiting(1).await;
        assert_eq!(database.came().await, 3, "{code}");
        holder.release().await.unwrap();
        in_time(waiter).await.unwrap().release().await.unwrap();
        database.has_nothing_left().await;
    }
}

/// Red without: the loop in `repeated`.
#[tokio::test]
async fn a_release_that_conflicts_is_repeated() {
    for code in CODES {
        let database = Database::new().await;
        let manager = database.manager("").await;
        let guard = acquire(&manager, "a").await;
        database.conflicts("delete on lockattr_locks", code, 2).await;
        guard.release().await.unwrap();
        assert_eq!(database.came().await, 3, "{code}");
        database.has_nothing_left().await;
    }
}
