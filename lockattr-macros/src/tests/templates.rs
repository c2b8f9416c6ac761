//! Key templates: their parts, and the mistakes in them.

use std::fmt::Write;

use syn::Signature;

use crate::key_template::{Part, Template};
use crate::params::Params;

fn params() -> Params {
    let signature = "async fn f(&self, id: u64, order: Order, names: &[&str], (left, right): (u8, u8), r#type: u8)";
    Params::of(&syn::parse_str::<Signature>(signature).expect("a signature"))
}

/// `"product:" <id>':'` for a text and a placeholder that a colon follows; or all mistakes.
fn describe(source: &str) -> String {
    let (template, mut faults) = Template::parse(source);
    faults.extend(template.faults_against(&params()));
    if !faults.is_empty() {
        let sentences: Vec<_> = faults.into_iter().map(|fault| fault.sentence).collect();
        return sentences.join("\n");
    }
    assert_eq!(template.to_string(), source, "the parts give back the template");
    let mut description = String::new();
    for (index, part) in template.parts.iter().enumerate() {
        match part {
            Part::Text { text, .. } => write!(description, " {text:?}"),
            Part::Placeholder { source, .. } => match template.follower(index) {
                Some(follower) => write!(description, " <{source}>{follower:?}"),
                None => write!(description, " <{source}>"),
            },
        }
        .expect("a string takes everything");
    }
    description.trim_start().to_owned()
}

#[track_caller]
fn check(source: &str, expected: &str) {
    assert_eq!(describe(source), expected, "of {source:?}");
}

#[test]
fn text_and_placeholders() {
    check("stock", r#""stock""#);
    check("product:<id>", r#""product:" <id>"#);
    check("<id>", "<id>");
    check("<id>:<order.id>!", r#"<id>':' ":" <order.id>'!' "!""#);
    check("{<self.region>}:cart", r#""{" <self.region>'}' "}:cart""#);
    check("ключ:<id>→", r#""ключ:" <id>'→' "→""#);
}

#[test]
fn doubled_opening_is_text() {
    check("a<<b", r#""a<b""#);
    check("<<<id>", r#""<" <id>"#);
    check("<id><<x", r#"<id>'<' "<x""#);
    check("<<id>", r#""<id>""#);
    check("a > b", r#""a > b""#);
    check("<id>>", r#"<id>'>' ">""#);
}

#[test]
fn placeholders_are_expressions() {
    for expr in [
        "names[0]",
        "order.customer.id()",
        "order.get::<u64>()",
        "names.iter().map(|name| name.len()).sum::<usize>()",
        r#"names.join(">")"#,
        r##"names.join(r#"">"#)"##,
        "names.contains(&'>')",
        r"names.contains(&'\'')",
        r#"names.join("\">")"#,
        "&*order.0",
        "left + right",
        "{ if id > 3 { 1 } else { 2 } }",
        "SHARD",
        "Shard::of(id)",
        "shard_of(other)",
        "config::shard",
        "self::shard",
        "(id > 3)",
        "r#type",
        "format!(\"{}\", nothing)",
        "(id)",
        " id ",
        "self.0 as u8",
    ] {
        check(&format!("<{expr}>"), &format!("<{expr}>"));
    }
}

#[test]
fn unfinished_placeholders() {
    check(
        "product:<id",
        "unclosed `<` in the key, at `<id`: end it with `>`, or write `<<` for a plain `<`",
    );
    check("product:<>", "empty placeholder `<>` in the key: write what to put there, as in `<id>`");
    check(
        "product:< >:<id>",
        "empty placeholder `< >` in the key: write what to put there, as in `<id>`",
    );
    for fragment in ["order id", "(id", "id)", "\"", "'", "`", "\\", "id // x", "/* id", "x\"y\""] {
        check(
            &format!("product:<{fragment}>"),
            &format!(
                "`<{fragment}>` in the key is not an expression: write one over the parameters, as \
                 in `<id>`, or `<<` for a plain `<`"
            ),
        );
    }
}

#[test]
fn neighbours_of_an_unreadable_placeholder_are_not_judged() {
    let empty = "empty placeholder `<>` in the key: write what to put there, as in `<id>`";
    for source in ["<id><>", "<><id>", "<>%<id>"] {
        check(source, empty);
    }
}

#[test]
fn ambiguous_keys() {
    check(
        "<id><order.id>",
        "nothing between `<id>` and `<order.id>`, so two different argument lists could meet on \
         one key: write `<id>:<order.id>`",
    );
    check(
        "<id>%<order.id>",
        "`%` directly after `<id>` reads like the value's own escapes, so two different argument \
         lists could meet on one key: write another character after `<id>`",
    );
    check("<id>%", r#"<id>'%' "%""#);
    check("%<id>:<order.id>", r#""%" <id>':' ":" <order.id>"#);
}

/// Red without: `ambiguous`.
#[test]
fn a_comparison_that_may_be_a_placeholder_before_a_text() {
    for (key, short) in
        [("id > left", "id "), ("id>left", "id"), ("id >> left", "id "), ("id>-1", "id")]
    {
        check(
            &format!("a:<{key}>"),
            &format!(
                "`<{key}>` in the key may be `<{short}>` before a text, or the comparison of two values: \
                 write `<({key})>` for the comparison, or a text without `>`"
            ),
        );
    }
    check("<id>:<left> > <right>", r#"<id>':' ":" <left>' ' " > " <right>"#);
}

/// Red without: `is_keyword`.
#[test]
fn a_keyword_is_a_parameter_after_its_mark() {
    check(
        "a:<type>",
        "`<type>` in the key is a keyword: write `<r#type>` for the parameter `r#type`",
    );
    check("a:{type}", "`{type}` in the key is plain text: write `<r#type>`");
}

#[test]
fn empty_and_endless_keys() {
    check("", "the key is empty: name what to lock, as in `\"product:<id>\"`");
    check(&"x".repeat(1024), &format!("{:?}", "x".repeat(1024)));
    check(
        &format!("{}<id>yy", "x".repeat(1023)),
        "the key's text alone has 1025 bytes, and a key has room for 1024: shorten it",
    );
}

#[test]
fn placeholders_begin_with_parameters() {
    const NAMES: &str =
        "its parameters are `self`, `id`, `order`, `names`, `left`, `right`, `r#type`";
    check(
        "product:<product>",
        &format!(
            "`<product>` in the key: `product` is not a parameter of this function; {NAMES}; for a constant \
             write its path, as in `<self::product>`"
        ),
    );
    for expr in ["oder.id", "&oder", "oder[0]", "(oder).id()", "*oder", "oder?", "oder as u8"] {
        check(
            &format!("product:<{expr}>"),
            &format!(
                "`<{expr}>` in the key: `oder` is not a parameter of this function; {NAMES}: did \
                 you mean `order`?"
            ),
        );
    }
}

#[test]
fn braces_around_a_parameter_were_meant_as_a_placeholder() {
    for (braced, expr) in [
        ("{id}", "id"),
        ("{ id }", "id"),
        ("{id:?}", "id"),
        ("{order.id}", "order.id"),
        ("{names[0]}", "names[0]"),
        ("{self.region}", "self.region"),
    ] {
        check(
            &format!("product:{braced}"),
            &format!("`{braced}` in the key is plain text: write `<{expr}>`"),
        );
    }
    check("{cart}:<id>", r#""{cart}:" <id>"#);
    check("{idle}", r#""{idle}""#);
    check("{id", r#""{id""#);
    check("{}", r#""{}""#);
    check("{<id>}", r#""{" <id>'}' "}""#);
}

#[test]
fn all_mistakes_at_once() {
    check(
        "{id}:<>:<it>:<order id>:<",
        "empty placeholder `<>` in the key: write what to put there, as in `<id>`\n\
         `<order id>` in the key is not an expression: write one over the parameters, as in \
         `<id>`, or `<<` for a plain `<`\n\
         unclosed `<` in the key, at `<`: end it with `>`, or write `<<` for a plain `<`\n\
         `{id}` in the key is plain text: write `<id>`\n\
         `<it>` in the key: `it` is not a parameter of this function; its parameters are `self`, \
         `id`, `order`, `names`, `left`, `right`, `r#type`; for a constant write its path, as in `<self::it>`",
    );
}
