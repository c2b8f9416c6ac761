//! Names of tables and columns, quoted so that no name can end its quotes.

use std::str::FromStr;

/// A table, with its schema if it was named with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    schema: Option<String>,
    name: String,
}

/// The name of a column, a function or a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column(String);

/// How a database quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dialect {
    Postgres,
    Mysql,
}

impl Table {
    pub(crate) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Column {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Dialect {
    /// The name between quotes.
    pub(crate) fn quoted(self, name: &str) -> String {
        match self {
            Self::Postgres => format!("\"{}\"", name.replace('"', "\"\"")),
            Self::Mysql => format!("`{}`", name.replace('`', "``")),
        }
    }

    /// `name` in the schema of `table`, if that has one.
    pub(crate) fn beside(self, table: &Table, name: &str) -> String {
        match table.schema() {
            Some(schema) => format!("{}.{}", self.quoted(schema), self.quoted(name)),
            None => self.quoted(name),
        }
    }

    pub(crate) fn table(self, table: &Table) -> String {
        self.beside(table, table.name())
    }

    pub(crate) fn check_table(self, table: &Table) -> Result<(), String> {
        if let Some(schema) = table.schema() {
            self.check("schema", schema)?;
        }
        self.check("table", table.name())
    }

    /// Refuses a name that the database would cut, and so confuse with another. And one with which
    /// the `mysql` client would not find the closing backtick: there too, it reads a backslash as an
    /// escape.
    pub(crate) fn check(self, what: &str, name: &str) -> Result<(), String> {
        if matches!(self, Self::Mysql) && name.contains('\\') {
            return Err(format!(
                "the name of the {what} has a backslash, which the `mysql` client misreads"
            ));
        }
        match self.excess(name) {
            Some(limit) => Err(format!("the name of the {what} has more than {limit}")),
            None => Ok(()),
        }
    }

    /// The same for the name that function and triggers begin with.
    pub(crate) fn check_derived(self, name: &str) -> Result<(), String> {
        let longest = match self {
            Self::Postgres => name.to_owned(),
            Self::Mysql => format!("{name}_update"),
        };
        match self.excess(&longest) {
            Some(limit) => Err(format!(
                "`{longest}`, the name of a function or trigger, would have more than {limit}: choose \
                 a shorter one with `--name`"
            )),
            None => Ok(()),
        }
    }

    fn excess(self, name: &str) -> Option<&'static str> {
        match self {
            Self::Postgres => (name.len() > 63).then_some("63 bytes"),
            Self::Mysql => (name.chars().count() > 64).then_some("64 characters"),
        }
    }
}

/// The parts between the dots. A part in double quotes or backticks may contain dots; its quote is
/// written twice inside.
fn parts(text: &str) -> Result<Vec<String>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, after) = match rest.chars().next() {
            Some(quote @ ('"' | '`')) => quoted_part(&rest[1..], quote)?,
            _ => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        parts.push(part);
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(parts),
            None => return Err("there must be a dot, or nothing, after a closing quote".into()),
        }
    }
}

fn quoted_part(text: &str, quote: char) -> Result<(String, &str), String> {
    let mut part = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        if char != quote {
            part.push(char);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            part.push(quote);
        } else {
            return Ok((part, &text[at + 1..]));
        }
    }
    Err(format!("the closing {quote} is missing"))
}

fn check_name(name: String) -> Result<String, String> {
    if name.is_empty() {
        return Err("a name is empty".into());
    }
    if name.chars().any(char::is_control) {
        return Err("a name contains a control character".into());
    }
    Ok(name)
}

impl FromStr for Table {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = parts(text)?.into_iter().map(check_name).collect::<Result<Vec<_>, _>>()?;
        let name = parts.pop().ok_or("a name is empty")?;
        let schema = parts.pop();
        if !parts.is_empty() {
            return Err(
                "there are more than a schema and a table: put a name that contains a dot \
                        into double quotes"
                    .into(),
            );
        }
        Ok(Self { schema, name })
    }
}

/// Taken as it is, dots and quotes included.
impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        check_name(text.to_owned()).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, postgres: &str, mysql: &str) {
        let table: Table = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(Dialect::Postgres.table(&table), postgres);
        assert_eq!(Dialect::Mysql.table(&table), mysql);
    }

    #[test]
    fn a_name_cannot_end_its_quotes() {
        check("stock", r#""stock""#, "`stock`");
        check("shop.stock", r#""shop"."stock""#, "`shop`.`stock`");
        check("Stock; drop table x", r#""Stock; drop table x""#, "`Stock; drop table x`");
        check(r#""a.b"."c""d`""#, r#""a.b"."c""d`""#, "`a.b`.`c\"d```");
        check("`a``\"`.b", r#""a`"""."b""#, "`a``\"`.`b`");
        check("a\"b", r#""a""b""#, "`a\"b`");
        check(r#"a"."b""#, r#""a"""."b""#, "`a\"`.`b`");
        check("a'\\", r#""a'\""#, "`a'\\`");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let invalid = [
            "", ".", "a.", ".a", "a..b", "a.b.c", "\"\"", "\"a", "\"a\"b", "a\0b", "`a`.\"\"",
            "a\".\"b", "a\nb", "a\u{1b}",
        ];
        for text in invalid {
            text.parse::<Table>().expect_err(text);
        }
        "".parse::<Column>().unwrap_err();
        "a\0".parse::<Column>().unwrap_err();
    }

    #[test]
    fn a_name_that_the_database_would_cut_is_refused() {
        let long = |count| Table { schema: None, name: "ä".repeat(count) };
        Dialect::Postgres.check_table(&long(31)).unwrap();
        Dialect::Postgres.check_table(&long(32)).unwrap_err();
        Dialect::Mysql.check_table(&long(64)).unwrap();
        Dialect::Mysql.check_table(&long(65)).unwrap_err();
        let backslash = "a\\".parse().unwrap();
        Dialect::Postgres.check_table(&backslash).unwrap();
        Dialect::Mysql.check_table(&backslash).unwrap_err();
        let refused = Dialect::Mysql.check_derived(&"a".repeat(58)).unwrap_err();
        assert!(refused.contains("--name"), "{refused}");
    }
}
