//! The statements that a connection prepares. Where many claims are locked, renewed or released at
//! once, one statement takes arrays.

use tokio_postgres::{Client, Error, Statement};

pub(super) struct Statements {
    pub(super) insert: Statement,
    pub(super) insert_many: Statement,
    pub(super) acquire: Statement,
    pub(super) delete: Statement,
    pub(super) delete_many: Statement,
    pub(super) release: Statement,
    pub(super) renew: Statement,
    pub(super) renew_shared: Statement,
    pub(super) holder: Statement,
}

/// Acquires a free lock: one without a row. The fencing token is drawn after the row has been
/// inserted, so that the next holder of the lock draws a greater one.
const INSERT: &str = "
    insert into lockattr_locks (name, token, value, ends)
    select $1, $2, $3, clock_timestamp() + $4::bigint * interval '1 millisecond'
    where pg_try_advisory_xact_lock_shared(lockattr_transaction_2($1))
    on conflict (name) do nothing
    returning pg_sequence_last_value('lockattr_counter_base') + nextval('lockattr_counter')";

/// The same for many claims, in the order of their locks' names.
const INSERT_MANY: &str = "
    insert into lockattr_locks (name, token, value, ends)
    select name, token, value, clock_timestamp() + ttl * interval '1 millisecond'
    from unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[])
        as claim (name, token, value, ttl)
    where pg_try_advisory_xact_lock_shared(lockattr_transaction_2(name))
    on conflict (name) do nothing
    returning token,
        pg_sequence_last_value('lockattr_counter_base') + nextval('lockattr_counter')";

/// Acquires a lock that is not free, or waits for it.
const ACQUIRE: &str = "select * from lockattr_acquire_2($1, $2, $3, $4, $5, $6, $7)";

/// Releases a lock that no claim waits for. Returns whether its lease still ran.
const DELETE: &str = "
    delete from lockattr_locks where name = $1 and token = $2 and waiting = 0
    returning ends > clock_timestamp()";

/// The same for many claims, in the order of their locks' names.
const DELETE_MANY: &str = "
    delete from lockattr_locks as lock
    using unnest($1::bytea[], $2::bytea[]) as claim (name, token)
    where lock.name = claim.name and lock.token = claim.token and waiting = 0
    returning lock.token, ends > clock_timestamp()";

/// Releases any lock, and hands it off.
const RELEASE: &str = "call lockattr_release_2($1, $2, $3, $4, null)";

/// Renews exclusive leases, in the order of their locks' names. Returns the owner token of each. A
/// renewal never shortens a lease: it may overtake a longer one that was sent before.
const RENEW: &str = "
    update lockattr_locks as lock
    set ends = greatest(ends, clock_timestamp() + ttl * interval '1 millisecond')
    from unnest($1::bytea[], $2::bytea[], $3::bigint[]) as claim (name, token, ttl)
    where lock.name = claim.name and lock.token = claim.token and ends > clock_timestamp()
    returning lock.token";

const RENEW_SHARED: &str = "select lockattr_renew_2($1, $2, $3, $4)";

/// The holder of a lock; of several, the one whose lease ends first.
const HOLDER: &str = "
    select value, (extract(epoch from ends - clock_timestamp()) * 1000000)::bigint from (
        select value, ends from lockattr_locks
        where name = $1 and token <> '' and ends > clock_timestamp()
        union all
        select value, ends from lockattr_holders where name = $1 and ends > clock_timestamp()
    ) as held order by ends limit 1";

/// Deletes some of the rows that dead processes left.
pub(super) const SWEEP: &str = "select lockattr_sweep_2()";

/// Before the first acquisition of a connection.
const RAISE_COUNTER: &str = "select lockattr_raise_counter_2()";

impl Statements {
    /// Prepares them, in one round trip.
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let raised = client.batch_execute(RAISE_COUNTER);
        let free = async {
            tokio::try_join!(
                client.prepare(INSERT),
                client.prepare(INSERT_MANY),
                client.prepare(DELETE),
                client.prepare(DELETE_MANY),
                client.prepare(RENEW)
            )
        };
        let others = async {
            tokio::try_join!(
                client.prepare(ACQUIRE),
                client.prepare(RELEASE),
                client.prepare(RENEW_SHARED),
                client.prepare(HOLDER)
            )
        };
        let ((), free, others) = tokio::try_join!(raised, free, others)?;
        let (insert, insert_many, delete, delete_many, renew) = free;
        let (acquire, release, renew_shared, holder) = others;
        Ok(Self {
            insert,
            insert_many,
            acquire,
            delete,
            delete_many,
            release,
            renew,
            renew_shared,
            holder,
        })
    }
}
