//! The migration for MySQL and MariaDB.

use super::Migration;
use super::identifier::Dialect::Mysql;
use super::identifier::Table;

/// The table with the tokens of the open transactions. `lockattr::fence::FencedTransaction` writes it.
const TOKENS: &str = "lockattr_fence_tokens";

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
    let table = Mysql.table(migration.table);
    let column = Mysql.quoted(migration.column.as_str());
    let tokens = Mysql.beside(migration.table, TOKENS);
    let add = format!("ALTER TABLE {table} ADD COLUMN {column} bigint NOT NULL DEFAULT 0");
    let mut statements = start();
    statements.push(format!(
        "-- One row for each open transaction that has a token; none of them is ever committed.
CREATE TABLE IF NOT EXISTS {tokens} (
  id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY,
  token bigint NOT NULL
) ENGINE=InnoDB"
    ));
    statements.extend(either(&has_column(migration), "DO 0", &add));
    statements
        .push(format!("-- Nothing writes while a trigger is replaced.\nLOCK TABLES {table} WRITE"));
    for event in &EVENTS {
        statements.push(format!("DROP TRIGGER IF EXISTS {}", trigger(migration, event)));
        statements.push(create(migration, event));
    }
    statements.push("UNLOCK TABLES".into());
    statements.push(END.into());
    file("lockattr fence sql", &statements, with_delimiter)
}

pub(super) fn down(migration: &Migration<'_>, with_delimiter: bool) -> String {
    let table = Mysql.table(migration.table);
    let column = Mysql.quoted(migration.column.as_str());
    let mut statements = start();
    for event in &EVENTS {
        statements.push(format!("DROP TRIGGER IF EXISTS {}", trigger(migration, event)));
    }
    let drop = format!("ALTER TABLE {table} DROP COLUMN {column}");
    let [first, rest @ ..] = either(&has_column(migration), &drop, "DO 0");
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

/// The triggers keep the mode with which they are created.
fn start() -> Vec<String> {
    vec![
        "SET @lockattr_mode = @@SESSION.sql_mode".into(),
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES'".into(),
    ]
}

const END: &str = "SET SESSION sql_mode = @lockattr_mode";

fn trigger(migration: &Migration<'_>, event: &Event) -> String {
    let name = format!("{}_{}", migration.name, event.name.to_lowercase());
    Mysql.beside(migration.table, &name)
}

fn create(migration: &Migration<'_>, event: &Event) -> String {
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
    let set =
        if event.has_new { format!("  SET NEW.{column} = fence_token;\n") } else { String::new() };
    format!(
        "CREATE TRIGGER {} BEFORE {} ON {} FOR EACH ROW
BEGIN
  DECLARE message varchar(128) CHARACTER SET utf8mb4;
  -- The row ends with the transaction, the variable names it in this session only.
  DECLARE fence_token bigint DEFAULT
    (SELECT tokens.token FROM {} AS tokens WHERE tokens.id = @lockattr_fence);
{unfenced}{compare}{set}END",
        trigger(migration, event),
        event.name,
        Mysql.table(migration.table),
        Mysql.beside(migration.table, TOKENS),
    )
}

/// Runs one of two statements. MySQL has no `IF NOT EXISTS` for columns.
fn either(condition: &str, then: &str, otherwise: &str) -> [String; 4] {
    let (then, otherwise) = (literal(then), literal(otherwise));
    [
        format!("SET @lockattr_statement = IF({condition},\n  {then},\n  {otherwise})"),
        "PREPARE lockattr_statement FROM @lockattr_statement".into(),
        "EXECUTE lockattr_statement".into(),
        "DEALLOCATE PREPARE lockattr_statement".into(),
    ]
}

fn has_column(migration: &Migration<'_>) -> String {
    let (schema, table) = (schema(migration.table), literal(migration.table.name()));
    let column = literal(migration.column.as_str());
    format!(
        "EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = {schema}
  AND table_name = {table} AND column_name = {column})"
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
