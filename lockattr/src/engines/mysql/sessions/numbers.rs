//! The fencing numbers of locks that belong to sessions.
//!
//! They come from `UUID_SHORT()`, which counts up for as long as the server runs and costs no write.
//! `session_numbers.sql` explains how it becomes numbers that grow across restarts, too. The rule is
//! the same for all sessions of a server that runs, so each session reads it once.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use crate::FencingToken;

const READ: &str = "CALL lockattr_v2_session_numbers()";

/// The rule, and the numbers that are reserved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    first: u64,
    base: u64,
    last: u64,
}

impl Numbers {
    /// Reads the rule, and the name of the database. Reserves more numbers if few are left.
    pub(super) async fn read(connection: &mut Conn) -> Result<(Self, Vec<u8>), Error> {
        let row = connection.query_first(READ).await?;
        let (first, base, last, database) =
            row.ok_or_else(|| Error::Other(format!("`{READ}` returned no row").into()))?;
        Ok((Self { first, base, last }, database))
    }

    /// The number of the lock for which the server drew this; `None` if it is not reserved: many
    /// were drawn since, or another server replied.
    fn of(&self, drawn: u64) -> Option<FencingToken> {
        let nth = drawn.checked_sub(self.first)?;
        let number = self.base.checked_add(nth).filter(|number| *number <= self.last)?;
        FencingToken::read(number)
    }

    /// The same, and reads the rule again where it is needed.
    pub(super) async fn reserved(
        &mut self,
        connection: &mut Conn,
        drawn: u64,
    ) -> Result<FencingToken, Error> {
        if let Some(number) = self.of(drawn) {
            return Ok(number);
        }
        (*self, _) = Self::read(connection).await?;
        self.of(drawn).ok_or_else(|| {
            Error::Other(format!("`UUID_SHORT()` went from {drawn} to another range").into())
        })
    }

    /// Numbers without a server.
    #[cfg(test)]
    pub(super) fn for_test() -> Self {
        Self { first: 1 << 56, base: 1, last: 9 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_reserved_is_a_number() {
        let numbers = Numbers::for_test();
        let of = |nth: u64| numbers.of((1 << 56) + nth).map(FencingToken::counter);
        assert_eq!([of(0), of(8), of(9)], [Some(1), Some(9), None]);
        // A server with a smaller id, and one that was started later.
        assert_eq!(numbers.of(4), None);
        assert_eq!(of(1 << 24), None);
        assert_eq!(numbers.of(u64::MAX), None);
    }
}
