//! The fencing token as a `bigint` column: of any database with sqlx, and of PostgreSQL with
//! tokio-postgres.

use std::num::TryFromIntError;

use super::FencingToken;

/// Why a column does not hold a token.
#[derive(Debug, thiserror::Error)]
#[error("the column holds {value}, which is not a fencing token: no token is negative")]
struct NotAToken {
    value: i64,
    source: TryFromIntError,
}

fn read(value: i64) -> Result<FencingToken, NotAToken> {
    FencingToken::try_from(value).map_err(|source| NotAToken { value, source })
}

#[cfg(feature = "sqlx")]
mod with_sqlx {
    use sqlx::encode::IsNull;
    use sqlx::error::BoxDynError;
    use sqlx::{Database, Decode, Encode, Type};

    use super::{FencingToken, read};

    /// As the database's signed 64-bit integer: `BIGINT` in PostgreSQL, MySQL and MariaDB.
    impl<DB: Database> Type<DB> for FencingToken
    where
        i64: Type<DB>,
    {
        fn type_info() -> DB::TypeInfo {
            <i64 as Type<DB>>::type_info()
        }

        fn compatible(column: &DB::TypeInfo) -> bool {
            <i64 as Type<DB>>::compatible(column)
        }
    }

    impl<'q, DB: Database> Encode<'q, DB> for FencingToken
    where
        i64: Encode<'q, DB>,
    {
        fn encode_by_ref(&self, buffer: &mut DB::ArgumentBuffer) -> Result<IsNull, BoxDynError> {
            i64::from(*self).encode(buffer)
        }
    }

    /// Refuses a negative number.
    impl<'r, DB: Database> Decode<'r, DB> for FencingToken
    where
        i64: Decode<'r, DB>,
    {
        fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
            Ok(read(i64::decode(value)?)?)
        }
    }
}

#[cfg(feature = "postgres")]
mod with_tokio_postgres {
    use std::error::Error;

    use bytes::BytesMut;
    use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

    use super::{FencingToken, read};

    /// As a `bigint`.
    impl ToSql for FencingToken {
        accepts!(INT8);
        to_sql_checked!();

        fn to_sql(
            &self,
            column: &Type,
            out: &mut BytesMut,
        ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
            i64::from(*self).to_sql(column, out)
        }
    }

    /// Refuses a negative number.
    impl<'a> FromSql<'a> for FencingToken {
        accepts!(INT8);

        fn from_sql(column: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
            Ok(read(i64::from_sql(column, raw)?)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_number_is_refused_by_its_value() {
        let token = FencingToken::from_counter(91_234_567_890_123);
        assert_eq!(read(token.into()).unwrap(), token);
        assert!(read(0).unwrap() < token, "a column may begin with 0");
        let refused = read(i64::MIN).unwrap_err().to_string();
        assert!(refused.contains("-9223372036854775808"), "{refused}");
    }
}
