//! The migration for MySQL and MariaDB.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Migration;
use super::identifier::Dialect::Mysql;
use super::identifier::Table;

/// The table with the tokens of the open transactions. `lockattr::fence::FencedTransaction` writes it.
const TOKENS: &str = "lockattr_fence_tokens";

/// What each of our triggers does, and no other one.
const READS: &str = "tokens.id = @lockattr_fence";

/// Ends a statement in a file with `DELIMITER`.
const SEPARATOR: &str = ";;";

/// The part of a trigger that differs from event to event.
struct Event {
    name: &'static str,
    has_old: bool,
    has_new: bool,
}

const EVENTS: [Event; 3] = [
    Event { name: "INSERT", has_old: false, has_new: true },
    Event { name: "UPDATE", has_old: true, has_new: true },
    Event { name: "DELETE", has_old: true, has_new: false },
];

pub(super) fn up(migration: &Migration<'_>, with_delimiter: bool) -> String {
    let (ours, names) = (ours(migration), names(migration));
    let mut statements = start();
    statements.extend(refusals(migration));
    statements.push(format!(
        "-- One row for each open transaction that has a token; none of them is ever committed.
CREATE TABLE IF NOT EXISTS {} (
  id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
  token bigint NOT NULL
) ENGINE=InnoDB",
        Mysql.beside(migration.table, TOKENS)
    ));
    // Invisible, so that an `INSERT` without a list of columns needs no value for it.
    let add = format!(
        "ALTER TABLE {} ADD COLUMN {} bigint NOT NULL DEFAULT 0 INVISIBLE",
        Mysql.table(migration.table),
        Mysql.quoted(migration.column.as_str())
    );
    statements.extend(either(&has_column(migration, ""), "DO 0", &add));
    for event in &EVENTS {
        let body = body(migration, event);
        let (first, second) = (trigger(migration, event), stand_in(migration, event, &body));
        let create = |name: &str, unless: &str| {
            let (event, table) = (event.name, Mysql.table(migration.table));
            format!("CREATE TRIGGER {unless}{name} BEFORE {event} ON {table} FOR EACH ROW\n{body}")
        };
        statements.push(format!(
            "-- Guards the table while the other trigger is replaced.\n{}",
            create(&second, "IF NOT EXISTS ")
        ));
        statements.push(format!("DROP TRIGGER IF EXISTS {first}"));
        statements.push(create(&first, ""));
        statements.push(format!("DROP TRIGGER {second}"));
    }
    let others = format!("{ours} AND trigger_name NOT IN ({names})");
    statements.extend(remove(migration, &others));
    statements.push(END.into());
    file("lockattr fence sql", &statements, with_delimiter)
}

pub(super) fn down(migration: &Migration<'_>, with_delimiter: bool) -> String {
    let table = Mysql.table(migration.table);
    let column = Mysql.quoted(migration.column.as_str());
    let (ours, names) = (ours(migration), names(migration));
    let mut statements = start();
    statements.push(foreign_names(migration));
    statements.extend(remove(migration, &format!("{ours} AND trigger_name NOT IN ({names})")));
    for event in &EVENTS {
        statements.push(format!("DROP TRIGGER IF EXISTS {}", trigger(migration, event)));
    }
    let drop = format!("ALTER TABLE {table} DROP COLUMN {column}");
    let [first, rest @ ..] =
        either(&has_column(migration, "AND data_type = 'bigint'"), &drop, "DO 0");
    statements.push(format!(
        "-- Leave out these four if the column is older than the triggers.\n{first}"
    ));
    statements.extend(rest);
    let schema = schema(migration.table);
    let used = format!(
        "EXISTS (SELECT 1 FROM information_schema.triggers WHERE trigger_schema = {schema}
  AND action_statement LIKE '%{TOKENS}%')"
    );
    let drop = format!("DROP TABLE IF EXISTS {}", Mysql.beside(migration.table, TOKENS));
    let [first, rest @ ..] = either(&used, "DO 0", &drop);
    statements
        .push(format!("-- Other tables of this database may still need the tokens.\n{first}"));
    statements.extend(rest);
    statements.push(END.into());
    file("lockattr fence sql --down", &statements, with_delimiter)
}

/// The triggers keep the mode with which they are created. A statement that waits for the table makes
/// all others wait behind it.
fn start() -> Vec<String> {
    vec![
        "SET @lockattr_mode = @@SESSION.sql_mode, @lockattr_wait = @@SESSION.lock_wait_timeout"
            .into(),
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES', SESSION lock_wait_timeout = 3".into(),
    ]
}

const END: &str =
    "SET SESSION sql_mode = @lockattr_mode, SESSION lock_wait_timeout = @lockattr_wait";

/// What would make a table that refuses every write, or none, or that forgets its tokens.
fn refusals(migration: &Migration<'_>) -> [String; 3] {
    let column = migration.column.as_str();
    let unsuitable = has_column(
        migration,
        "AND (data_type <> 'bigint' OR COALESCE(generation_expression, '') <> '')",
    );
    let set = literal(&set(migration));
    // MySQL 9.7 shows the text of a trigger wrongly if a name in it has a backtick.
    let readable = if column.contains('`') { "FALSE" } else { "TRUE" };
    let ours = ours(migration);
    let other_column = format!(
        "EXISTS (SELECT 1 FROM information_schema.triggers WHERE {ours}
  AND event_manipulation <> 'DELETE' AND INSTR(action_statement, {set}) = 0) AND {readable}"
    );
    [
        refuse(
            &unsuitable,
            &literal(&format!(
                "the column {column} is no plain bigint as a token needs - name another one with --column"
            )),
        ),
        refuse(
            &other_column,
            &literal(&format!(
                "the triggers of the table use another column than {column} - name that with --column \
                 or remove them first with --down"
            )),
        ),
        foreign_names(migration),
    ]
}

/// Refuses to replace or remove the triggers of another table.
fn foreign_names(migration: &Migration<'_>) -> String {
    let (schema, table) = (schema(migration.table), literal(migration.table.name()));
    let foreign = format!(
        "EXISTS (SELECT 1 FROM information_schema.triggers WHERE trigger_schema = {schema}
  AND trigger_name IN ({}) AND event_object_table <> {table})",
        names(migration)
    );
    let why = format!(
        "triggers of another table are named {}_insert or alike - choose another name with --name",
        migration.name
    );
    refuse(&foreign, &literal(&why))
}

/// Ends the script with this sentence if the condition is met: a statement outside of procedures has no
/// other way to do so. A comma would end the sentence.
fn refuse(condition: &str, why: &str) -> String {
    format!(
        "SET SESSION sql_mode = IF({condition},\n  CONCAT('lockattr - ', {why}), @@SESSION.sql_mode)"
    )
}

/// Drops triggers whose names are known only to the database. MySQL drops none whose name is not part
/// of the script: there, the script names them, and ends before it takes anything away.
fn remove(migration: &Migration<'_>, which: &str) -> Vec<String> {
    let quoted = |column: &str| format!("'`', REPLACE({column}, '`', '``'), '`'");
    let mut name = quoted("trigger_name");
    if migration.table.schema().is_some() {
        name = format!("{}, '.', {name}", quoted("trigger_schema"));
    }
    let all = |before: &str, separator: &str, after: &str| {
        format!(
            "(SELECT CONCAT('{before}', GROUP_CONCAT('DROP TRIGGER ', {name}
  SEPARATOR '{separator}'), '{after}') FROM information_schema.triggers WHERE {which})"
        )
    };
    let exists = format!("EXISTS (SELECT 1 FROM information_schema.triggers WHERE {which})");
    let drop = all("BEGIN NOT ATOMIC ", "; ", "; END");
    let mut statements = vec![format!(
        "-- Triggers with other names, as after a renaming. MySQL can only name them.
SET @lockattr_statement = COALESCE(IF(VERSION() LIKE '%MariaDB%', {drop}, NULL), 'DO 0')"
    )];
    statements.extend(PREPARED.map(String::from));
    statements.push(format!(
        "SELECT CONCAT('DROP TRIGGER ', {name}, ';') AS `run these first`\n  \
         FROM information_schema.triggers WHERE {which}"
    ));
    statements.push(refuse(&exists, &all("run this first and then the whole again - ", "; ", "")));
    statements
}

/// Our triggers of this table, by what they do.
fn ours(migration: &Migration<'_>) -> String {
    let (schema, table) = (schema(migration.table), literal(migration.table.name()));
    format!(
        "event_object_schema = {schema} AND event_object_table = {table}
  AND INSTR(action_statement, '{READS}') > 0"
    )
}

/// The triggers' names, as strings.
fn names(migration: &Migration<'_>) -> String {
    let name = |event: &Event| literal(&name(migration, event));
    EVENTS.each_ref().map(name).join(", ")
}

fn name(migration: &Migration<'_>, event: &Event) -> String {
    format!("{}_{}", migration.name, event.name.to_lowercase())
}

fn trigger(migration: &Migration<'_>, event: &Event) -> String {
    Mysql.beside(migration.table, &name(migration, event))
}

/// The trigger that guards the table meanwhile. What it does is a part of its name, so one that an
/// interrupted run has left is the same, or has another name.
fn stand_in(migration: &Migration<'_>, event: &Event, body: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (migration.table.name(), event.name, body).hash(&mut hasher);
    Mysql.beside(migration.table, &format!("lockattr_fence_{:016x}", hasher.finish()))
}

fn set(migration: &Migration<'_>) -> String {
    format!("SET NEW.{} = fence_token;", Mysql.quoted(migration.column.as_str()))
}

fn body(migration: &Migration<'_>, event: &Event) -> String {
    let column = Mysql.quoted(migration.column.as_str());
    let table = literal(migration.table.name());
    let old = format!("COALESCE(OLD.{column}, 0)");
    let unfenced = match (migration.allow_unfenced, event.name) {
        (false, _) => format!(
            "  IF fence_token IS NULL THEN
    SET message = LEFT(CONCAT('no fencing token for a write to table ', {table}), 128);
    SIGNAL SQLSTATE 'LKF02' SET MESSAGE_TEXT = message;
  END IF;
"
        ),
        // Such a write may set the column itself, and cannot lower it.
        (true, "UPDATE") => {
            format!("  SET fence_token = COALESCE(fence_token, NEW.{column}, 0);\n")
        }
        (true, "INSERT") => format!("  SET fence_token = COALESCE(fence_token, NEW.{column});\n"),
        (true, _) => String::new(),
    };
    let compare = format!(
        "  IF fence_token < {old} THEN
    SET message = LEFT(CONCAT('fencing token ', fence_token, ' is too old: ', {old}, ' has written this row of ', {table}), 128);
    SIGNAL SQLSTATE 'LKF01' SET MESSAGE_TEXT = message;
  END IF;
"
    );
    let compare = if event.has_old { compare } else { String::new() };
    let set = if event.has_new { format!("  {}\n", set(migration)) } else { String::new() };
    format!(
        "BEGIN
  DECLARE message varchar(128) CHARACTER SET utf8mb4;
  DECLARE fence_token bigint;
  -- With a binary log the query may lock what it reads, so a write without a token makes none.
  IF @lockattr_fence IS NOT NULL THEN
    -- The row ends with the transaction, the variable names it in this session only.
    SELECT MAX(tokens.token) INTO fence_token FROM {} AS tokens WHERE {READS};
    IF fence_token IS NULL THEN
      SET @lockattr_fence = NULL;
    END IF;
  END IF;
{unfenced}{compare}{set}END",
        Mysql.beside(migration.table, TOKENS),
    )
}

/// Runs one of two statements. MySQL has no `IF NOT EXISTS` for columns.
fn either(condition: &str, then: &str, otherwise: &str) -> [String; 4] {
    let (then, otherwise) = (literal(then), literal(otherwise));
    let [prepare, execute, deallocate] = PREPARED.map(String::from);
    let choose = format!("SET @lockattr_statement = IF({condition},\n  {then},\n  {otherwise})");
    [choose, prepare, execute, deallocate]
}

const PREPARED: [&str; 3] = [
    "PREPARE lockattr_statement FROM @lockattr_statement",
    "EXECUTE lockattr_statement",
    "DEALLOCATE PREPARE lockattr_statement",
];

/// Whether the column exists, and is like that.
fn has_column(migration: &Migration<'_>, like: &str) -> String {
    let (schema, table) = (schema(migration.table), literal(migration.table.name()));
    let column = literal(migration.column.as_str());
    format!(
        "EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = {schema}
  AND table_name = {table} AND column_name = {column} {like})"
    )
}

fn schema(table: &Table) -> String {
    table.schema().map_or_else(|| "DATABASE()".into(), literal)
}

/// A string. Whether a backslash escapes depends on the server's settings, so a text with unusual
/// characters is written in hexadecimal.
fn literal(text: &str) -> String {
    if text.chars().all(|char| char.is_alphanumeric() || " _-.$`(),".contains(char)) {
        return format!("'{text}'");
    }
    let digits: String = text.bytes().map(|byte| format!("{byte:02X}")).collect();
    format!("_utf8mb4 0x{digits}")
}

fn file(command: &str, statements: &[String], with_delimiter: bool) -> String {
    let end = if with_delimiter { SEPARATOR } else { ";" };
    let statements: String = statements.iter().map(|it| format!("{it}{end}\n")).collect();
    // Another character set could read a closing quote as a part of the letter before. The clients
    // `mysql` and `mariadb` read quotes too, so they have a command for it.
    let charset = match (statements.is_ascii(), with_delimiter) {
        (true, _) => "",
        (false, true) => "charset utf8mb4\n",
        (false, false) => "SET NAMES utf8mb4;\n",
    };
    let head = format!("-- Made by `{command}`. Needs MySQL 8.0.29, or MariaDB 10.6, or later.\n");
    match with_delimiter {
        true => format!("{head}{charset}DELIMITER {SEPARATOR}\n{statements}DELIMITER ;\n"),
        false => format!("{head}{charset}{statements}"),
    }
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn a_name_cannot_end_a_string() {
        assert_eq!(literal("stock_1"), "'stock_1'");
        assert_eq!(literal("a'b"), "_utf8mb4 0x612762");
        assert_eq!(literal("\\"), "_utf8mb4 0x5C");
    }
}
