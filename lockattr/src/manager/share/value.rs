//! The value of a shared result, in serde's data model: nothing of it is lost between two processes.
//!
//! Formats that describe themselves merge what serde tells apart (`Some(None)` and `None`, a newtype and what
//! it wraps), and formats that do not cannot read `untagged` or `flatten`. So a value becomes a tree that has
//! a node for each notion of serde's, and the tree becomes text. serde's formats for people are used for types
//! that have two: the parts of `flatten` and `untagged` are always read so.

mod read;
mod text;
mod write;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::Error;

/// How deep a value may be nested: less than the stack of a thread can bear.
const MAX_DEPTH: usize = 256;

/// One notion of serde's data model. Floats are their bits: a `NaN` equals itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    Unit,
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    I128(i128),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    U128(u128),
    F32(u32),
    F64(u64),
    Char(char),
    Str(String),
    Bytes(Vec<u8>),
    None,
    Some(Box<Node>),
    Newtype(Box<Node>),
    Seq(Vec<Node>),
    Tuple(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// The fields of a struct. A type may leave some out, so they have names.
    Fields(Vec<(Node, Node)>),
    /// A variant of an enum: its name, and `Unit`, `Newtype`, `Tuple` or `Fields`.
    Variant(String, Box<Node>),
    /// What a type is called, and which of its variants this is. Compared, but not sent.
    Named(&'static str, u32, Box<Node>),
}

/// Writes `value`, if what a reader will get equals it.
///
/// Elements of a sequence and entries of a map may change places: those of a `HashSet` do.
pub(super) fn written<T: Serialize + DeserializeOwned>(value: &T) -> Result<String, Error> {
    let node = Node::of(value)?;
    let text = node.to_text();
    if node.sorted() != Node::of(&read::<T>(&text)?)?.sorted() {
        return Err(serde::de::Error::custom(
            "the value that other callers would read would not be equal to this one",
        ));
    }
    Ok(text)
}

/// Reads what [`written`] wrote, or says what is wrong with it.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let node = Node::from_text(text);
    T::deserialize(node.ok_or_else(|| serde::de::Error::custom("not the text of a value"))?)
}

/// The text of what is read from `text`, for the fuzzer.
#[cfg(fuzzing)]
pub fn read_again(text: &str) -> Option<String> {
    Node::from_text(text).map(|node| node.to_text())
}

impl Node {
    fn of<T: Serialize>(value: &T) -> Result<Self, Error> {
        value.serialize(write::Writer { depth: MAX_DEPTH })
    }

    /// With the elements of sequences and the entries of maps in an order that depends on nothing else.
    fn sorted(self) -> Self {
        let all = |nodes: Vec<Self>| nodes.into_iter().map(Self::sorted).collect::<Vec<_>>();
        let pairs = |pairs: Vec<(Self, Self)>| {
            pairs.into_iter().map(|(key, value)| (key.sorted(), value.sorted())).collect::<Vec<_>>()
        };
        match self {
            Self::Some(node) => Self::Some(Box::new(node.sorted())),
            Self::Newtype(node) => Self::Newtype(Box::new(node.sorted())),
            Self::Variant(name, node) => Self::Variant(name, Box::new(node.sorted())),
            Self::Named(name, index, node) => Self::Named(name, index, Box::new(node.sorted())),
            Self::Tuple(nodes) => Self::Tuple(all(nodes)),
            Self::Fields(fields) => Self::Fields(pairs(fields)),
            Self::Seq(nodes) => {
                let mut nodes = all(nodes);
                nodes.sort();
                Self::Seq(nodes)
            }
            Self::Map(entries) => {
                let mut entries = pairs(entries);
                entries.sort();
                Self::Map(entries)
            }
            leaf => leaf,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::entropy::random_bits;

    /// A tree of every kind of node, by chance.
    fn random_node(depth: usize) -> Node {
        let bits = random_bits();
        let some = || (0..random_bits() % 4).map(|_| random_node(depth - 1)).collect::<Vec<_>>();
        let pairs = || some().into_iter().map(|node| (node.clone(), node)).collect::<Vec<_>>();
        let text = || {
            let chars = [';', '"', 'ß', '\u{0}', ' ', '%', '/', '9', '\u{1f600}'];
            (0..bits % 5).map(|at| chars[((bits >> (8 * at)) % 9) as usize]).collect::<String>()
        };
        let fields = || some().into_iter().map(|node| (Node::Str(text()), node)).collect();
        match if depth == 0 { bits % 18 } else { bits % 26 } {
            0 => Node::Unit,
            1 => Node::None,
            2 => Node::Bool(bits > u64::MAX / 2),
            3 => Node::I8(bits as i8),
            4 => Node::I16(bits as i16),
            5 => Node::I32(bits as i32),
            6 => Node::I64(bits as i64),
            7 => Node::I128(i128::from(bits as i64) << 60),
            8 => Node::U8(bits as u8),
            9 => Node::U16(bits as u16),
            10 => Node::U32(bits as u32),
            11 => Node::U64(bits),
            12 => Node::U128(u128::MAX - u128::from(bits)),
            13 => Node::F32(bits as u32),
            14 => Node::F64(bits),
            15 => Node::Char(text().chars().next().unwrap_or('a')),
            16 => Node::Str(text()),
            17 => Node::Bytes(text().into_bytes()),
            18 => Node::Some(Box::new(random_node(depth - 1))),
            19 => Node::Newtype(Box::new(random_node(depth - 1))),
            20 => Node::Seq(some()),
            21 => Node::Tuple(some()),
            22 => Node::Map(pairs()),
            23 => Node::Fields(fields()),
            24 => Node::Variant(text(), Box::new(Node::Unit)),
            _ => Node::Variant(text(), Box::new(Node::Tuple(some()))),
        }
    }

    /// Red without: a tag of its own for each kind of node.
    #[test]
    fn the_text_of_any_tree_is_read_as_that_tree() {
        for _ in 0..20_000 {
            let node = random_node(4);
            assert_eq!(Node::from_text(&node.to_text()).as_ref(), Some(&node));
        }
    }

    /// Red without: a check that the length is within the text, or at the end of a character.
    #[test]
    fn text_that_was_changed_is_read_or_refused_without_a_panic() {
        for _ in 0..20_000 {
            let mut text: Vec<char> = random_node(3).to_text().chars().collect();
            for _ in 0..=random_bits() % 3 {
                let at = (random_bits() as usize) % text.len();
                let letters = ['[', ']', '{', 's', '9', ';', 'ß', 'o', 'v', '<'];
                text[at] = letters[(random_bits() % 10) as usize];
            }
            text.truncate(1 + (random_bits() as usize) % (2 * text.len()));
            let text: String = text.into_iter().collect();
            if let Some(node) = Node::from_text(&text) {
                drop(<Vec<Option<String>> as serde::Deserialize>::deserialize(node.clone()));
                drop(<std::net::IpAddr as serde::Deserialize>::deserialize(node.clone()));
                drop(<(u8, char, f64) as serde::Deserialize>::deserialize(node));
            }
        }
    }

    /// Red without: the limits of the depth.
    #[test]
    fn what_is_nested_too_deep_is_neither_read_nor_written() {
        for open in ["[", "o", "w", "(", "{", "v1;a"] {
            assert_eq!(Node::from_text(&open.repeat(64 * 1024)), None, "{open}");
        }
        assert_eq!(Node::from_text("s99999999999999999999;a"), None);
        assert_eq!(Node::from_text("s18446744073709551615;a"), None);
        #[derive(Serialize)]
        struct Deep(Option<Box<Deep>>);
        let deep = (0..1000).fold(Deep(None), |deep, _| Deep(Some(Box::new(deep))));
        assert!(Node::of(&deep).unwrap_err().to_string().contains("nested"));
    }
}
