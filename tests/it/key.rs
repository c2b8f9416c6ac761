//! How a key template renders its values, whatever the values are.
//!
//! The templates and the values are random: short, and mostly of characters that have a meaning in
//! a key or in the template.

use std::collections::HashMap;
use std::fmt::{self, Display, Write};
use std::ops::Range;

use lockattr::__private::{Call, KeyBuilder, run};
use lockattr::{Error, LockManager, LockOptions, distributed_lock};
use lockattr_history::seed;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use tokio::runtime::Runtime;

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Value,
}

use Part::{Text, Value};

/// Parses a template as a user reads it. Its placeholders are plain names here.
fn parts(template: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        let doubled = rest.starts_with("<<");
        if first == '<' && !doubled {
            parts.push(Value);
            rest = &rest[rest.find('>').unwrap() + 1..];
            continue;
        }
        match parts.last_mut() {
            Some(Text(text)) => text.push(first),
            _ => parts.push(Text(first.into())),
        }
        rest = &rest[if doubled { 2 } else { first.len_utf8() }..];
    }
    parts
}

/// Returns the character that follows the part at `index`.
fn next(parts: &[Part], index: usize) -> Option<char> {
    match parts.get(index + 1)? {
        Text(text) => text.chars().next(),
        Value => unreachable!("two values without text between them"),
    }
}

fn text_of(parts: &[Part]) -> String {
    parts.iter().map(|part| if let Text(text) = part { text } else { "" }).collect()
}

/// Splits a key into its values, given only the template.
fn decode(parts: &[Part], key: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut rest = key;
    for (index, part) in parts.iter().enumerate() {
        match part {
            Text(text) => rest = rest.strip_prefix(text.as_str()).expect("the template's text"),
            Value => {
                let (value, after) = decode_value(&parts[index + 1..], rest);
                values.push(value);
                rest = after;
            }
        }
    }
    assert_eq!(rest, "", "left over of {key:?}");
    values
}

/// Splits off the value at the start of `key`. An escape never ends it.
fn decode_value<'a>(following: &[Part], key: &'a str) -> (String, &'a str) {
    let end = match following {
        [] => key.len(),
        [Text(text)] => key.len() - text.len(),
        [Text(text), ..] => {
            let mut escape = 0..0;
            let ends = |&(at, character): &(usize, char)| {
                if character == '%' {
                    escape = at..at + 3;
                }
                !escape.contains(&at) && text.starts_with(character)
            };
            key.char_indices().find(ends).expect("the character after the value").0
        }
        [Value, ..] => unreachable!("two values without text between them"),
    };
    let mut bytes = Vec::new();
    let mut rest = key[..end].bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
        } else {
            byte
        });
    }
    (String::from_utf8(bytes).unwrap(), &key[end..])
}

/// Returns the range of the key's hash tag in Redis Cluster: between the first `{` and the first
/// `}` after it, unless that is empty.
fn hash_tag(key: &str) -> Option<Range<usize>> {
    let start = key.find('{')? + 1;
    let end = start + key[start..].find('}')?;
    (start < end).then_some(start..end)
}

/// Returns the characters of `text` that have a meaning in a key, and those that must not be in
/// one.
fn special(text: &str) -> String {
    let special = |character: &char| matches!(character, '{' | '}' | ':') || character.is_control();
    text.chars().filter(special).collect()
}

/// One manager for all cases of a property.
struct Rig {
    runtime: Runtime,
    manager: LockManager,
}

impl Rig {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let manager = runtime.block_on(LockManager::connect("memory://")).unwrap();
        Self { runtime, manager }
    }

    fn run<F: Future>(&self, call: F) -> F::Output {
        self.runtime.block_on(self.manager.scope(call))
    }

    /// Returns the key that an annotated function with this template would lock.
    fn render(&self, parts: &[Part], values: &[impl Display]) -> String {
        let mut key = KeyBuilder::new();
        let mut values = values.iter();
        for (index, part) in parts.iter().enumerate() {
            key = match part {
                Text(text) => key.verbatim(text),
                Value => key.placeholder(values.next().unwrap(), next(parts, index)),
            };
        }
        self.run(async {
            let call = Call::new("key", key, &LockOptions::new());
            run(call.begin(), async { Ok(current_key()) }, Err).await.unwrap()
        })
    }
}

fn current_key() -> String {
    lockattr::current().expect("inside a hold").key().to_owned()
}

fn config() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(seed()),
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    }
}

const POOL: [char; 20] = [
    '%', ':', '{', '}', '<', '>', '/', '-', '2', '5', 'A', 'F', 'x', ' ', '\0', '\n', '\u{85}',
    'é', '\u{301}', '🔒',
];

fn character() -> impl Strategy<Value = char> {
    prop_oneof![9 => select(&POOL[..]), 1 => any::<char>()]
}

fn value() -> impl Strategy<Value = String> {
    prop::collection::vec(character(), 0..8).prop_map(String::from_iter)
}

/// Text that may be between two values.
fn separator() -> impl Strategy<Value = String> {
    let text = prop::collection::vec(character(), 1..4).prop_map(String::from_iter);
    text.prop_filter("refused by the attribute", |text| !text.starts_with('%'))
}

fn outer_text() -> impl Strategy<Value = String> {
    prop::collection::vec(character(), 0..4).prop_map(String::from_iter)
}

/// A template with `values` placeholders.
fn template(values: usize) -> impl Strategy<Value = Vec<Part>> {
    let separators = prop::collection::vec(separator(), values - 1);
    (outer_text(), separators, outer_text()).prop_map(|(before, separators, after)| {
        let mut parts = vec![Text(before), Value];
        parts.extend(separators.into_iter().flat_map(|separator| [Text(separator), Value]));
        parts.push(Text(after));
        parts.retain(|part| *part != Text(String::new()));
        parts
    })
}

/// A template and its values. The key is never empty, since that would be refused.
fn rendering() -> impl Strategy<Value = (Vec<Part>, Vec<String>)> {
    let rendering =
        (1..5usize).prop_flat_map(|count| (template(count), prop::collection::vec(value(), count)));
    rendering.prop_filter("an empty key", |(parts, values)| {
        parts.len() > 1 || values.iter().any(|value| !value.is_empty())
    })
}

#[test]
fn key_and_template_determine_the_values() {
    let rig = Rig::new();
    proptest!(config(), |((parts, values) in rendering())| {
        let key = rig.render(&parts, &values);
        prop_assert_eq!(decode(&parts, &key), values, "from {:?}", key);
    });
}

#[test]
fn no_two_value_lists_render_the_same_key() {
    let rig = Rig::new();
    proptest!(config(), |(parts in template(2), any in character())| {
        let first = parts.iter().position(|part| *part == Value).unwrap();
        let separator = next(&parts, first).unwrap().to_string();
        let escaped: String = separator.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let alphabet = [separator, escaped, any.to_string()];
        let mut values = vec![String::new()];
        values.extend(alphabet.clone());
        for first in &alphabet {
            values.extend(alphabet.iter().map(|second| first.clone() + second));
        }
        values.sort();
        values.dedup();
        let mut met = HashMap::new();
        for first in &values {
            for second in &values {
                let key = rig.render(&parts, &[first, second]);
                if let Some(others) = met.insert(key, (first, second)) {
                    prop_assert!(false, "{others:?} and {:?} meet in {parts:?}", (first, second));
                }
            }
        }
    });
}

#[test]
fn special_characters_in_a_key_come_from_the_template_alone() {
    let rig = Rig::new();
    proptest!(config(), |((parts, values) in rendering())| {
        let key = rig.render(&parts, &values);
        prop_assert_eq!(special(&key), special(&text_of(&parts)), "in {:?}", key);
    });
}

#[test]
fn no_value_moves_the_hash_tag_of_redis_cluster() {
    let rig = Rig::new();
    // The tag, given by the number of braces before each of its ends.
    let braces = |key: &str| {
        let tag = hash_tag(key)?;
        let before = |end: usize| key[..end].matches(['{', '}']).count();
        Some((before(tag.start), before(tag.end)))
    };
    proptest!(config(), |((parts, values) in rendering())| {
        // An empty value may leave no tag, as the text `{}` does.
        let values: Vec<_> = values.into_iter().map(|value| value + "x").collect();
        let plain = vec!["x"; values.len()];
        let (key, plain_key) = (rig.render(&parts, &values), rig.render(&parts, &plain));
        prop_assert_eq!(braces(&key), braces(&plain_key), "{:?} and {:?}", key, plain_key);
    });
}

/// Formats its text one character at a time.
struct InPieces<'a>(&'a str);

impl Display for InPieces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| f.write_char(character))
    }
}

#[test]
fn a_value_printed_in_pieces_is_the_same_value() {
    let rig = Rig::new();
    proptest!(config(), |((parts, values) in rendering())| {
        let pieces: Vec<_> = values.iter().map(|value| InPieces(value)).collect();
        prop_assert_eq!(rig.render(&parts, &pieces), rig.render(&parts, &values));
    });
}

macro_rules! locked {
    ($($function:ident($first:ident, $second:ident): $template:literal;)*) => {
        $(
            #[distributed_lock(key = $template)]
            async fn $function($first: &str, $second: &str) -> Result<String, Error> {
                Ok(current_key())
            }
        )*

        const TEMPLATES: &[&str] = &[$($template),*];

        async fn call(template: &str, first: &str, second: &str) -> Result<String, Error> {
            match template {
                $($template => $function(first, second).await,)*
                _ => unreachable!("one of the templates above"),
            }
        }
    };
}

locked! {
    colon(shop, id): "<shop>:<id>";
    tagged(tenant, cart): "{<tenant>}:cart:<cart>";
    tagged_after(id, tenant): "a}<id>{<tenant>}{b}";
    brackets(a, b): "<<<a>><b><<";
    unicode(größe, é): "größe:<größe>é🔒<é>🔒";
    digit(a, b): "2<a>2<b>2";
    percent_at_the_end(a, b): "%<a>/%<b>%";
    control(a, b): "<a>\n<b>\0";
}

#[test]
fn annotated_functions_lock_what_their_template_says() {
    let rig = Rig::new();
    proptest!(config(), |(template in select(TEMPLATES), first in value(), second in value())| {
        let key = rig.run(call(template, &first, &second)).unwrap();
        let parts = parts(template);
        prop_assert_eq!(&key, &rig.render(&parts, &[&first, &second]));
        prop_assert_eq!(decode(&parts, &key), [first, second]);
    });
}

#[distributed_lock(key = "{<tenant>}:order:<order>")]
async fn order(tenant: &str, order: &str) -> Result<String, Error> {
    Ok(current_key())
}

#[test]
fn keys_of_one_tenant_share_a_hash_tag_whatever_else_is_in_them() {
    let rig = Rig::new();
    proptest!(config(), |(tenant in value(), cart in value(), number in value())| {
        let tenant = tenant + "x";
        let cart = rig.run(tagged(&tenant, &cart)).unwrap();
        let order = rig.run(order(&tenant, &number)).unwrap();
        let tag = hash_tag(&cart).map(|tag| &cart[tag]);
        prop_assert!(tag.is_some());
        prop_assert_eq!(tag, hash_tag(&order).map(|tag| &order[tag]));
    });
}

#[distributed_lock(key = key)]
async fn as_it_is(key: &str) -> Result<String, Error> {
    Ok(current_key())
}

#[test]
fn an_expression_is_the_key_as_it_is() {
    let rig = Rig::new();
    proptest!(config(), |(key in value())| {
        match rig.run(as_it_is(&key)) {
            Ok(locked) => prop_assert_eq!(locked, key),
            Err(error) => {
                prop_assert!(matches!(error, Error::InvalidKey(_)));
                prop_assert_eq!(key, "");
            }
        }
    });
}
