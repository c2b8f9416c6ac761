//! The migration for PostgreSQL.

use super::Migration;
use super::identifier::Dialect::Postgres;

/// The trigger's name. Triggers belong to their table, so each table can have this one.
const TRIGGER: &str = "lockattr_fence";

pub(super) fn up(migration: &Migration<'_>) -> String {
    let table = Postgres.table(migration.table);
    let function = Postgres.beside(migration.table, &migration.name);
    let column = Postgres.quoted(migration.column.as_str());
    let unfenced = if migration.allow_unfenced { allowed(&column) } else { REFUSED.into() };
    let body = format!(
        "
DECLARE
  -- Ends with the transaction. Afterwards it is '', and before the first one NULL.
  token bigint := nullif(current_setting('lockattr.fence', true), '')::bigint;
BEGIN
{unfenced}  IF TG_OP <> 'INSERT' AND token < OLD.{column} THEN
    RAISE EXCEPTION 'fencing token % is too old: token % has written this row of %',
      token, OLD.{column}, TG_RELID::regclass
      USING ERRCODE = 'LKF01', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
      HINT = 'Roll back: another holder has acquired the lock since.';
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  NEW.{column} := token;
  RETURN NEW;
END
"
    );
    let body = dollar_quoted(&body);
    let trigger = dollar_quoted(&format!(
        "
BEGIN
  DROP TRIGGER IF EXISTS {TRIGGER} ON {table};
  CREATE TRIGGER {TRIGGER} BEFORE INSERT OR UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION {function}();
END
"
    ));
    format!(
        "-- Made by `lockattr fence sql`. Needs PostgreSQL 12 or later.
ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column} bigint NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS {body};

-- In one statement, so that the table is never without its trigger.
DO {trigger};
"
    )
}

const REFUSED: &str = "  IF token IS NULL THEN
    RAISE EXCEPTION 'a write to % has no fencing token', TG_RELID::regclass
      USING ERRCODE = 'LKF02', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
      HINT = 'Set it in the same transaction: select set_config(''lockattr.fence'', TOKEN, true).';
  END IF;
";

/// A write without a token may carry one itself, as code that compares tokens in its statements does.
fn allowed(column: &str) -> String {
    format!(
        "  IF token IS NULL THEN
    IF TG_OP = 'DELETE' THEN
      RETURN OLD;
    END IF;
    -- Such a write may set the column itself, and cannot lower it.
    IF TG_OP = 'INSERT' OR NEW.{column} >= OLD.{column} THEN
      RETURN NEW;
    END IF;
    token := NEW.{column};
  END IF;
"
    )
}

pub(super) fn down(migration: &Migration<'_>) -> String {
    let table = Postgres.table(migration.table);
    let function = Postgres.beside(migration.table, &migration.name);
    let column = Postgres.quoted(migration.column.as_str());
    format!(
        "-- Made by `lockattr fence sql --down`.
DROP TRIGGER IF EXISTS {TRIGGER} ON {table};
DROP FUNCTION IF EXISTS {function}();
-- Leave this out if the column is older than the trigger.
ALTER TABLE IF EXISTS {table} DROP COLUMN IF EXISTS {column};
"
    )
}

/// The text between dollar quotes that it does not contain.
fn dollar_quoted(text: &str) -> String {
    let mut tag = "$lockattr$".to_owned();
    let mut number = 0;
    while text.contains(&tag) {
        number += 1;
        tag = format!("$lockattr{number}$");
    }
    format!("{tag}{text}{tag}")
}

#[cfg(test)]
mod tests {
    use super::dollar_quoted;

    #[test]
    fn a_name_cannot_end_the_dollar_quotes() {
        assert_eq!(dollar_quoted("a"), "$lockattr$a$lockattr$");
        let quoted = dollar_quoted("$lockattr$ $lockattr1$");
        assert_eq!(quoted, "$lockattr2$$lockattr$ $lockattr1$$lockattr2$");
    }
}
