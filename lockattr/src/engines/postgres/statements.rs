//! The statements that a connection prepares. Where many claims are locked, renewed or released at
//! once, one statement takes arrays. Written for the schema `public`, and prepared for the store's.

use tokio_postgres::{Client, Error, Statement};

use super::schema::Schema;

pub(super) struct Statements {
    /// For statements that are not prepared.
    pub(super) schema: Schema,
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
    insert into public.lockattr_locks (name, token, value, ends)
    select $1, $2, $3, clock_timestamp() + $4::bigint * interval '1 millisecond'
    where pg_try_advisory_xact_lock_shared(public.lockattr_transaction_3($1))
    on conflict (name) do nothing
    returning pg_sequence_last_value('public.lockattr_counter_base') + nextval('public.lockattr_counter')";

/// The same for many claims, in the order of their locks' names.
const INSERT_MANY: &str = "
    insert into public.lockattr_locks (name, token, value, ends)
    select name, token, value, clock_timestamp() + ttl * interval '1 millisecond'
    from unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[])
        as claim (name, token, value, ttl)
    where pg_try_advisory_xact_lock_shared(public.lockattr_transaction_3(name))
    on conflict (name) do nothing
    returning token,
        pg_sequence_last_value('public.lockattr_counter_base') + nextval('public.lockattr_counter')";

/// Acquires a lock that is not free, or waits for it.
const ACQUIRE: &str = "select * from public.lockattr_acquire_3($1, $2, $3, $4, $5, $6, $7)";

/// Releases a lock that no claim waits for. Returns whether its lease still ran.
const DELETE: &str = "
    delete from public.lockattr_locks where name = $1 and token = $2 and waiting = 0
    returning ends > clock_timestamp()";

/// The same for many claims, in the order of their locks' names.
const DELETE_MANY: &str = "
    delete from public.lockattr_locks as lock
    using unnest($1::bytea[], $2::bytea[]) as claim (name, token)
    where lock.name = claim.name and lock.token = claim.token and waiting = 0
    returning lock.token, ends > clock_timestamp()";

/// Releases any lock, and hands it off.
const RELEASE: &str = "call public.lockattr_release_3($1, $2, $3, $4, null)";

/// Renews exclusive leases, in the order of their locks' names. Returns the owner token of each. A
/// renewal never shortens a lease: it may overtake a longer one that was sent before.
const RENEW: &str = "
    update public.lockattr_locks as lock
    set ends = greatest(ends, clock_timestamp() + ttl * interval '1 millisecond')
    from unnest($1::bytea[], $2::bytea[], $3::bigint[]) as claim (name, token, ttl)
    where lock.name = claim.name and lock.token = claim.token and ends > clock_timestamp()
    returning lock.token";

const RENEW_SHARED: &str = "select public.lockattr_renew_3($1, $2, $3, $4)";

/// The holder of a lock; of several, the one whose lease ends first.
const HOLDER: &str = "
    select value, (extract(epoch from ends - clock_timestamp()) * 1000000)::bigint from (
        select value, ends from public.lockattr_locks
        where name = $1 and token <> '' and ends > clock_timestamp()
        union all
        select value, ends from public.lockattr_holders where name = $1 and ends > clock_timestamp()
    ) as held order by ends limit 1";

/// Deletes some of what has ended, if that is due. Returns whether there is more.
pub(super) const SWEEP: &str = "select public.lockattr_sweep_3()";

/// Before the first acquisition of a connection.
const RAISE_COUNTER: &str = "select public.lockattr_raise_counter_3()";

impl Statements {
    /// Prepares them, in one round trip.
    pub(super) async fn prepare(client: &Client, schema: &Schema) -> Result<Self, Error> {
        let prepare = async |statement: &str| client.prepare(&schema.sql(statement)).await;
        let raise = schema.sql(RAISE_COUNTER);
        let raised = client.batch_execute(&raise);
        let free = async {
            tokio::try_join!(
                prepare(INSERT),
                prepare(INSERT_MANY),
                prepare(DELETE),
                prepare(DELETE_MANY),
                prepare(RENEW)
            )
        };
        let others = async {
            tokio::try_join!(
                prepare(ACQUIRE),
                prepare(RELEASE),
                prepare(RENEW_SHARED),
                prepare(HOLDER)
            )
        };
        let ((), free, others) = tokio::try_join!(raised, free, others)?;
        let (insert, insert_many, delete, delete_many, renew) = free;
        let (acquire, release, renew_shared, holder) = others;
        Ok(Self {
            schema: schema.clone(),
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
