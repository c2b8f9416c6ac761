//! The migration for PostgreSQL.

use super::Migration;
use super::identifier::Dialect::Postgres;

/// The trigger's name. Triggers belong to their table, so each table can have this one.
const TRIGGER: &str = "lockattr_fence";

/// What each of our functions does, and no other one.
const READS: &str = "current_setting('lockattr.fence', true)";

pub(super) fn up(migration: &Migration<'_>) -> String {
    let table = Postgres.table(migration.table);
    let function = format!("{}()", Postgres.beside(migration.table, &migration.name));
    let column = Postgres.quoted(migration.column.as_str());
    let body = dollar_quoted(&body(migration));
    let (refusals, ours, family) = (refusals(migration, &body), ours(), family(migration));
    let (set, function_text) = (dollar_quoted(&set(&column)), dollar_quoted(&function));
    let removal = removal();
    let statement = dollar_quoted(&format!(
        "
{DECLARE}BEGIN
{START}  LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE;
{refusals}  IF EXISTS (SELECT 1 FROM pg_trigger t JOIN pg_proc f ON f.oid = t.tgfoid
      WHERE t.tgrelid IN ({family}) AND {ours} AND strpos(f.prosrc, {set}) = 0) THEN
    RAISE EXCEPTION 'the trigger of the table uses another column'
      USING HINT = 'Name that column with --column, or remove the trigger with --down first.';
  END IF;
  ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column} bigint NOT NULL DEFAULT 0;
  CREATE OR REPLACE FUNCTION {function} RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS {body};
  -- Tables that inherit have triggers of their own, and partitions those of their table.
  FOR target IN {family} LOOP
{removal}    EXECUTE format('CREATE TRIGGER {TRIGGER} BEFORE INSERT OR UPDATE OR DELETE ON %s
      FOR EACH ROW EXECUTE FUNCTION %s', target, {function_text});
  END LOOP;
{SWEEP}{END}END
"
    ));
    format!(
        "-- Made by `lockattr fence sql`. Needs PostgreSQL 12 or later.
-- One statement, so that it is applied as a whole or not at all.
DO {statement};
"
    )
}

const DECLARE: &str = "DECLARE
  waits text := current_setting('lock_timeout');
  target regclass;
  name name;
  function oid;
  functions oid[] := '{}';
";

const START: &str = "  -- A statement that waits for the table makes all others wait behind it.
  PERFORM set_config('lock_timeout', '3s', true);
";

const END: &str = "  PERFORM set_config('lock_timeout', waits, true);
";

/// The table, and those that inherit from it.
fn family(migration: &Migration<'_>) -> String {
    let table = dollar_quoted(&Postgres.table(migration.table));
    format!(
        "WITH RECURSIVE family(id) AS (
      SELECT to_regclass({table})::oid UNION
      SELECT i.inhrelid FROM pg_inherits i JOIN family ON i.inhparent = family.id
        JOIN pg_class c ON c.oid = i.inhrelid AND NOT c.relispartition
    ) SELECT id FROM family WHERE id IS NOT NULL"
    )
}

/// A trigger `t` with the function `f` that is ours, by what it does. Those of partitions belong to the
/// trigger of their table; PostgreSQL 12 has none of them, nor the column that marks them.
fn ours() -> String {
    let reads = dollar_quoted(READS);
    format!(
        "strpos(f.prosrc, {reads}) > 0
      AND coalesce(to_jsonb(t) ->> 'tgparentid', '0') = '0'"
    )
}

/// Drops our triggers of `target`, whatever their names are.
fn removal() -> String {
    let ours = ours();
    format!(
        "    FOR name, function IN SELECT t.tgname, f.oid FROM pg_trigger t
        JOIN pg_proc f ON f.oid = t.tgfoid
        WHERE t.tgrelid = target AND {ours} LOOP
      EXECUTE format('DROP TRIGGER %I ON %s', name, target);
      functions := functions || function;
    END LOOP;
"
    )
}

/// Drops the functions of these triggers, but those that other triggers call.
const SWEEP: &str = "  FOR function IN SELECT DISTINCT f FROM unnest(functions) f
      WHERE NOT EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgfoid = f) LOOP
    EXECUTE format('DROP FUNCTION %s', function::regprocedure);
  END LOOP;
";

/// What would make a table that refuses every write.
fn refusals(migration: &Migration<'_>, body: &str) -> String {
    let column = dollar_quoted(migration.column.as_str());
    let schema = migration.table.schema().map_or_else(|| "current_schema()".into(), dollar_quoted);
    let name = dollar_quoted(&migration.name);
    let (ours, family) = (ours(), family(migration));
    let reads = dollar_quoted(READS);
    format!(
        "  FOR target, name IN SELECT a.attrelid, format_type(a.atttypid, a.atttypmod)
      FROM pg_attribute a WHERE a.attrelid IN ({family}) AND a.attname = {column}
      AND (a.atttypid <> 'bigint'::regtype OR a.attgenerated <> '') LOOP
    RAISE EXCEPTION 'the column % of % has the type %, or is generated, and a token needs a bigint',
      {column}, target, name USING HINT = 'Name another column with --column.';
  END LOOP;
  IF EXISTS (SELECT 1 FROM pg_proc f WHERE f.proname = {name} AND f.pronargs = 0
      AND f.pronamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = {schema})
      AND f.prosrc <> {body} AND (strpos(f.prosrc, {reads}) = 0
      OR EXISTS (SELECT 1 FROM pg_trigger t
      WHERE t.tgfoid = f.oid AND {ours} AND t.tgrelid NOT IN ({family})))) THEN
    RAISE EXCEPTION 'the function % belongs to another table, with another column or other options', {name}
      USING HINT = 'Choose another name with --name.';
  END IF;
"
    )
}

fn set(column: &str) -> String {
    format!("NEW.{column} := token;\n  RETURN NEW;")
}

fn body(migration: &Migration<'_>) -> String {
    let column = Postgres.quoted(migration.column.as_str());
    let unfenced = if migration.allow_unfenced { allowed(&column) } else { REFUSED.into() };
    let set = set(&column);
    format!(
        "
DECLARE
  -- Ends with the transaction. Afterwards it is '', and before the first one NULL.
  token bigint := nullif({READS}, '')::bigint;
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
  {set}
END
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
    token := coalesce(NEW.{column}, 0);
  END IF;
"
    )
}

pub(super) fn down(migration: &Migration<'_>) -> String {
    let table = Postgres.table(migration.table);
    let column = Postgres.quoted(migration.column.as_str());
    let column_text = dollar_quoted(migration.column.as_str());
    let table_text = dollar_quoted(&table);
    let (family, removal) = (family(migration), removal());
    let statement = dollar_quoted(&format!(
        "
{DECLARE}BEGIN
{START}  FOR target IN {family} LOOP
{removal}  END LOOP;
{SWEEP}  -- Leave this out if the column is older than the triggers.
  IF EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = to_regclass({table_text})
      AND a.attname = {column_text} AND a.atttypid = 'bigint'::regtype) THEN
    ALTER TABLE {table} DROP COLUMN {column};
  END IF;
{END}END
"
    ));
    format!("-- Made by `lockattr fence sql --down`.\nDO {statement};\n")
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
