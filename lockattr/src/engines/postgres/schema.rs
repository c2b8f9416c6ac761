//! The schema that has the store's tables. Every statement names it, so no search path matters.

use std::fmt::Write;

use crate::Error;
use crate::store::StoreError;

/// The schema of a store whose program names none.
const DEFAULT: &str = "public";

/// The server would cut longer names, and take two of them for one.
const LONGEST: usize = 63;

/// What the store creates, for the schema `public`.
const OBJECTS: &str = concat!(
    include_str!("tables.sql"),
    include_str!("lock_rows.sql"),
    include_str!("counter.sql"),
    include_str!("holders.sql"),
    include_str!("queue.sql"),
    include_str!("acquire.sql"),
    include_str!("release.sql"),
    include_str!("transaction.sql"),
    include_str!("renew.sql"),
    include_str!("mark_done.sql"),
    include_str!("sweep.sql"),
);

/// For our own sessions: a user's functions and operators could otherwise take the place of the
/// server's, and its temporary tables that of catalogs.
pub(super) const SEARCH_PATH: &str = "set search_path to pg_catalog, pg_temp";

#[derive(Clone)]
pub(super) struct Schema {
    name: String,
    /// Whether the program has named it. It then means this one, whatever tables others have.
    pub(super) is_named: bool,
}

impl Schema {
    pub(super) fn new(name: Option<&str>) -> Result<Self, Error> {
        let schema = Self { name: name.unwrap_or(DEFAULT).to_owned(), is_named: name.is_some() };
        let invalid = |reason: &str| Err(Error::InvalidOptions(format!("`schema` {reason}")));
        match &*schema.name {
            "" => invalid("is empty: name the schema for lockattr's tables, or leave it out"),
            name if name.len() > LONGEST => {
                invalid(&format!("has {} bytes: PostgreSQL's names have {LONGEST}", name.len()))
            }
            name if name.contains('\0') => invalid("has a zero byte: PostgreSQL's names have none"),
            // With `standard_conforming_strings = off` it would escape a quote.
            name if name.contains('\\') => {
                invalid("has a backslash, which some databases read as an escape: name another one")
            }
            // Among them `pg_temp`, where each session would have tables of its own.
            name if name.starts_with("pg_") || name == "information_schema" => {
                invalid("is one of PostgreSQL's own schemas: name another one")
            }
            _ => Ok(schema),
        }
    }

    /// A statement that was written for the schema `public`.
    pub(super) fn sql(&self, statement: &str) -> String {
        let statement = statement.replace("$$", &self.delimiter());
        let statement = statement.replace("lockattr_schema_", &self.channel(""));
        let mut parts = statement.split("public.lockattr_");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let name = match text.ends_with('\'') {
                true => self.quoted().replace('\'', "''"),
                false => self.quoted(),
            };
            // Writing to a string cannot fail.
            let _never = write!(text, "{name}.lockattr_{part}");
        }
        text
    }

    /// Around the body of a function, which must not end within the name.
    fn delimiter(&self) -> String {
        let mut delimiters = (0..=LONGEST).map(|nth| format!("$body{nth}$"));
        delimiters.find(|it| !self.name.contains(&**it)).unwrap_or_default()
    }

    /// The name of a channel, which has less than 64 bytes, as the name of the schema itself may have.
    pub(super) fn channel(&self, purpose: &str) -> String {
        format!("lockattr_{:016x}_{purpose}", fnv(&self.name))
    }

    /// Creates everything that the store needs; also the schema, if the program has named it.
    pub(super) fn migration(&self) -> String {
        let objects = self.sql(OBJECTS);
        if !self.is_named {
            return objects;
        }
        let (delimiter, name) = (self.delimiter(), self.quoted());
        let literal = name.replace('\'', "''");
        format!(
            // Without the condition, a user without the right to create schemas could not run it.
            "do {delimiter} begin
  if to_regnamespace('{literal}') is null then
    create schema {name};
  end if;
end {delimiter};\n\n{objects}"
        )
    }

    /// Selects whether the functions of this version are there: the one that was added last. Reads the
    /// table, because `to_regproc` may not see what was committed since the transaction began.
    pub(super) fn is_installed(&self) -> String {
        format!(
            "select exists (
                select from pg_proc join pg_namespace on pg_namespace.oid = pronamespace
                where proname = 'lockattr_sweep_3' and nspname = {})",
            self.literal()
        )
    }

    /// Selects the schemas on the search path that have tables of ours, but not this one; none if the
    /// program has named this one. Whatever the search path is, it finds the server's operators.
    pub(super) fn others(&self) -> String {
        let (name, is_named) = (self.literal(), self.is_named);
        format!(
            "select nspname from pg_catalog.pg_class join pg_catalog.pg_namespace
                on pg_namespace.oid operator(pg_catalog.=) relnamespace
            where relname operator(pg_catalog.=) 'lockattr_locks'
                and nspname operator(pg_catalog.=) any (pg_catalog.current_schemas(false))
                and nspname operator(pg_catalog.<>) {name} and not {is_named}"
        )
    }

    /// The error for a store that would lock apart from those that use the tables in `other`.
    pub(super) fn refuse(&self, address: &str, other: &str) -> StoreError {
        let name = &self.name;
        StoreError::new(format!(
            "{address}: lockattr has tables in the schema `{other}`, which is on this user's search \
             path, and would lock in `{name}`: two schemas are two sets of locks; add \
             `schema={other}` to the URL to lock in that one, or `schema={name}` to lock apart from it"
        ))
        .not_sent()
    }

    fn literal(&self) -> String {
        format!("'{}'", self.name.replace('\'', "''"))
    }

    /// The name as an identifier.
    fn quoted(&self) -> String {
        format!("\"{}\"", self.name.replace('"', "\"\""))
    }
}

/// The hash FNV-1a. Two schemas with the same one would only wake each other's waiters in vain.
fn fnv(name: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}
