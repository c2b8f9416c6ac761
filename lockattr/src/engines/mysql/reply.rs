//! Reads the rows of a reply. A column of another type than expected is an error that names both: the
//! client's own getters panic, which a server can cause.

use std::any::type_name;

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Error, Params, Row};

/// Executes a prepared statement, and reads all its rows.
pub(super) async fn exec<T: FromRow>(
    connection: &mut Conn,
    statement: &str,
    params: impl Into<Params> + Send,
) -> Result<Vec<T>, Error> {
    #[expect(clippy::disallowed_methods, reason = "a `Row` is a row of any type")]
    let rows: Vec<Row> = connection.exec(statement, params).await?;
    rows.into_iter().map(|row| read(statement, row)).collect()
}

/// Executes a prepared statement, and reads its first row.
pub(super) async fn exec_first<T: FromRow>(
    connection: &mut Conn,
    statement: &str,
    params: impl Into<Params> + Send,
) -> Result<Option<T>, Error> {
    Ok(exec(connection, statement, params).await?.into_iter().next())
}

/// Executes a statement without parameters, unprepared, and reads all its rows.
pub(super) async fn query<T: FromRow>(
    connection: &mut Conn,
    statement: &str,
) -> Result<Vec<T>, Error> {
    #[expect(clippy::disallowed_methods, reason = "a `Row` is a row of any type")]
    let rows: Vec<Row> = connection.query(statement).await?;
    rows.into_iter().map(|row| read(statement, row)).collect()
}

/// Executes a statement without parameters, unprepared, and reads its first row.
pub(super) async fn query_first<T: FromRow>(
    connection: &mut Conn,
    statement: &str,
) -> Result<Option<T>, Error> {
    Ok(query(connection, statement).await?.into_iter().next())
}

fn read<T: FromRow>(statement: &str, row: Row) -> Result<T, Error> {
    mysql_async::from_row_opt(row).map_err(|failed| {
        let columns = failed.0.columns();
        let found: Vec<_> = columns.iter().map(mysql_async::Column::column_type).collect();
        let expected = type_name::<T>().replace("core::option::", "").replace("alloc::vec::", "");
        let sentence = format!(
            "the server replied to `{statement}` with {found:?} or a value that is none, and not \
             with {}",
            expected.replace("alloc::string::", "")
        );
        Error::Other(sentence.into())
    })
}
