//! The fencing numbers of locks that belong to sessions.
//!
//! They come from `UUID_SHORT()`, which counts up for as long as the server runs and costs no write.
//! `session_numbers.sql` explains how it becomes numbers that grow across restarts, too.

use mysql_async::{Conn, Error};

use crate::FencingToken;
use crate::engines::mysql::reply::query_first;

/// Reserves numbers. Returns a draw of its own, the rule, and the name of the database.
const RESERVE: &str = "CALL lockattr_v2_session_numbers()";

/// The rule, and whether the server accepts writes.
const RULE: &str = "SELECT first, base, last, CAST(@@GLOBAL.read_only AS CHAR) \
                    FROM lockattr_v2_session_numbers WHERE id = 0";

/// What the server draws for a lock that the session holds, and whether it accepts writes.
pub(super) type Drawn = (u64, String);

/// The rule, and the numbers that are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    first: u64,
    base: u64,
    last: u64,
}

impl Numbers {
    /// Reads the rule and the name of the database. Reserves numbers if few are left.
    pub(super) async fn read(connection: &mut Conn) -> Result<(Self, Vec<u8>), Error> {
        let (_drawn, numbers, database) = reserve(connection).await?;
        Ok((numbers, database))
    }

    /// Whether the rule is still this one. Another server was the primary meanwhile, or an operator
    /// has changed the row, if not.
    pub(super) async fn are_valid(&mut self, connection: &mut Conn) -> Result<bool, Error> {
        let row: Option<(u64, u64, u64, String)> = query_first(connection, RULE).await?;
        let Some((first, base, last, read_only)) = row else { return Ok(false) };
        self.last = last;
        Ok((self.first, self.base) == (first, base) && accepts_writes(&read_only))
    }

    /// Returns the number of a lock that the session has just taken; `None` if it has not.
    pub(super) async fn number(
        &mut self,
        connection: &mut Conn,
        drawn: Option<Drawn>,
    ) -> Result<Option<FencingToken>, Error> {
        let Some((drawn, read_only)) = drawn else { return Ok(None) };
        if !accepts_writes(&read_only) {
            // Others may lock on the server that is the primary now.
            let sentence = "the server is read-only: name the primary in the URL";
            return Err(Error::Other(sentence.into()));
        }
        if let Some(number) = self.reserved(drawn) {
            return Ok(Some(number));
        }
        let (drawn, numbers, _database) = reserve(connection).await?;
        *self = numbers;
        self.reserved(drawn).map(Some).ok_or_else(|| {
            Error::Other(format!("{drawn} makes no fencing number with {self:?}").into())
        })
    }

    /// The number for which the server drew this, if it is reserved. Otherwise many were drawn since,
    /// or the server was restarted, or is another one.
    fn reserved(&self, drawn: u64) -> Option<FencingToken> {
        let nth = drawn.checked_sub(self.first)?;
        let number = self.base.checked_add(nth).filter(|number| *number <= self.last)?;
        FencingToken::read(number)
    }

    /// Numbers without a server.
    #[cfg(test)]
    pub(super) fn for_test() -> Self {
        Self { first: 1 << 56, base: 1, last: 9 }
    }
}

/// Whether this value of `read_only` means no.
fn accepts_writes(read_only: &str) -> bool {
    matches!(read_only, "0" | "OFF")
}

async fn reserve(connection: &mut Conn) -> Result<(u64, Numbers, Vec<u8>), Error> {
    let row = query_first(connection, RESERVE).await?;
    let (drawn, first, base, last, database) =
        row.ok_or_else(|| Error::Other(format!("`{RESERVE}` returned no row").into()))?;
    Ok((drawn, Numbers { first, base, last }, database))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_reserved_is_a_number() {
        let first = 1 << 56;
        let of = |drawn| Numbers::for_test().reserved(drawn).map(FencingToken::counter);
        assert_eq!([of(first), of(first + 8), of(first + 9)], [Some(1), Some(9), None]);
        // A server with a smaller id, and one that was started later.
        assert_eq!([of(4), of(first + (1 << 24)), of(u64::MAX)], [None; 3]);
    }
}
