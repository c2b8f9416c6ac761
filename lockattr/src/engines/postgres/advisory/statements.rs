//! The statements that a session prepares.

use tokio_postgres::{Client, Error, Statement};

use super::sql;

pub(super) struct Statements {
    pub(super) try_one: Statement,
    pub(super) try_many: Statement,
    pub(super) lock_one: Statement,
    pub(super) lock_many: Statement,
    pub(super) unlock_one: Statement,
    pub(super) unlock_many: Statement,
    pub(super) held_and_contended: Statement,
    pub(super) queue_status: Statement,
    pub(super) holder: Statement,
}

impl Statements {
    /// Prepares them, in one round trip.
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        let (
            try_one,
            try_many,
            lock_one,
            lock_many,
            unlock_one,
            unlock_many,
            checked,
            queue_status,
            holder,
        ) = tokio::try_join!(
            client.prepare(sql::TRY_ONE),
            client.prepare(sql::TRY_MANY),
            client.prepare(sql::LOCK_ONE),
            client.prepare(sql::LOCK_MANY),
            client.prepare(sql::UNLOCK_ONE),
            client.prepare(sql::UNLOCK_MANY),
            client.prepare(sql::HELD_AND_CONTENDED),
            client.prepare(sql::QUEUE_STATUS),
            client.prepare(sql::HOLDER),
        )?;
        let held_and_contended = checked;
        Ok(Self {
            try_one,
            try_many,
            lock_one,
            lock_many,
            unlock_one,
            unlock_many,
            held_and_contended,
            queue_status,
            holder,
        })
    }
}
