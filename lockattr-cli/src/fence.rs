//! `lockattr fence`: what makes a resource check fencing tokens itself.

mod identifier;
mod mysql;
mod postgres;

use clap::{Args, Subcommand, ValueEnum};

use crate::exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::store::StoreUrl;
use identifier::{Column, Dialect, Table};

const AFTER: &str = "\
The migration adds a column for the greatest token that has written a row, and triggers that refuse \
a write (INSERT, UPDATE, DELETE) of a transaction whose token is smaller than the row's, or that has \
none. The write is refused with SQLSTATE LKF01 if its token is too old, and with LKF02 if it has none. \
Several writes under one token are accepted. Nothing is executed, and the migration can be applied twice. \
It waits 3 s for a table that a transaction uses. If it fails or is stopped, the table is guarded as before: apply it again.

The transaction gets its token from the application: in Rust by `FencingToken::fence_in` (PostgreSQL) \
or `lockattr::fence::FencedTransaction` (MySQL, MariaDB), in PostgreSQL also by \
select set_config('lockattr.fence', TOKEN, true).

TABLE is used exactly as you write it, case included: `stock`, `shop.stock`, or with quotes where a \
name has a dot: '\"odd.name\"'.

Exit codes: 0 printed; 2 the arguments are invalid.

Examples:
  lockattr fence sql --engine postgres --table stock | psql shop
  lockattr fence sql --engine mysql --table stock | mysql shop
  lockattr fence sql --engine mysql --table stock --no-delimiter > migrations/0007_fence.sql
  lockattr fence sql --engine postgres --table stock --down";

/// Print what makes a resource refuse late writes by itself
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Fence {
    #[command(subcommand)]
    resource: Resource,
}

#[derive(Debug, Subcommand)]
enum Resource {
    Sql(Sql),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Engine {
    Postgres,
    /// Also for MariaDB
    Mysql,
}

/// Print a migration for a table of PostgreSQL, MySQL or MariaDB
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
struct Sql {
    /// The table, if needed with its schema (MySQL: database) and a dot before it
    #[arg(long)]
    table: Table,
    /// The database; by default that of the store's URL, if the store is a database
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// The column for the token. An existing column is used as it is, and must be a bigint
    #[arg(long, default_value = "fence")]
    column: Column,
    /// Accept writes without a token. They may raise the column, and are refused if they lower it
    #[arg(long, conflicts_with = "down")]
    allow_unfenced: bool,
    /// The name of the function (PostgreSQL), or the beginning of the triggers' names (MySQL), in place of
    /// `lockattr_fence_TABLE`
    #[arg(long)]
    name: Option<Column>,
    /// MySQL: leave out the `DELIMITER` lines, for tools that send the file to the server as it is
    #[arg(long)]
    no_delimiter: bool,
    /// Print the migration that removes the triggers, whatever they are named, and the column again
    #[arg(long)]
    down: bool,
}

/// What a migration is about.
struct Migration<'a> {
    table: &'a Table,
    column: &'a Column,
    /// The function and the triggers begin with it.
    name: String,
    allow_unfenced: bool,
}

impl Fence {
    pub(crate) fn execute(self, url: Option<&StoreUrl>) -> Result<u8, Failure> {
        let Resource::Sql(sql) = self.resource;
        let migration = sql.migration(url).map_err(|why| Failure::new(exit::ERROR, why))?;
        let mut output = Output::new();
        output.text(&migration)?;
        output.finish()?;
        Ok(exit::OK)
    }
}

impl Sql {
    fn migration(&self, url: Option<&StoreUrl>) -> Result<String, String> {
        let engine = self.engine.or_else(|| engine_of(url?)).ok_or(
            "no database is named: write `--engine postgres`, or `--engine mysql` for MySQL and MariaDB",
        )?;
        let dialect = match engine {
            Engine::Postgres => Dialect::Postgres,
            Engine::Mysql => Dialect::Mysql,
        };
        if self.no_delimiter && matches!(engine, Engine::Postgres) {
            return Err(
                "`--no-delimiter` is for `--engine mysql`: PostgreSQL has no `DELIMITER`".into()
            );
        }
        dialect.check_table(&self.table)?;
        dialect.check("column", self.column.as_str())?;
        let name = match &self.name {
            Some(name) => {
                dialect.check("function and the triggers", name.as_str())?;
                name.as_str().to_owned()
            }
            None => format!("lockattr_fence_{}", self.table.name()),
        };
        dialect.check_derived(&name)?;
        let migration = Migration {
            table: &self.table,
            column: &self.column,
            name,
            allow_unfenced: self.allow_unfenced,
        };
        Ok(match (engine, self.down) {
            (Engine::Postgres, false) => postgres::up(&migration),
            (Engine::Postgres, true) => postgres::down(&migration),
            (Engine::Mysql, false) => mysql::up(&migration, !self.no_delimiter),
            (Engine::Mysql, true) => mysql::down(&migration, !self.no_delimiter),
        })
    }
}

/// The database of a store, if it is one.
fn engine_of(url: &StoreUrl) -> Option<Engine> {
    match url.scheme() {
        "postgres" | "postgresql" => Some(Engine::Postgres),
        "mysql" => Some(Engine::Mysql),
        _ => None,
    }
}
