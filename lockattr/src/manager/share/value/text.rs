//! A tree as text: a letter for each kind of node, and what it holds. Any text is read or refused: each node takes
//! a character at least, so a tree is bounded by its text, and its depth is limited.

use std::fmt::{Display, Write};
use std::str::FromStr;

use super::{MAX_DEPTH, Node};

impl Node {
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        self.append_to(&mut text);
        text
    }

    fn append_to(&self, text: &mut String) {
        let mut number = |kind: char, number: &dyn Display| {
            // Nothing is refused by a `String`.
            let _ = write!(text, "{kind}{number};");
        };
        match self {
            Self::I8(n) => number('a', n),
            Self::I16(n) => number('b', n),
            Self::I32(n) => number('c', n),
            Self::I64(n) => number('d', n),
            Self::I128(n) => number('e', n),
            Self::U8(n) => number('A', n),
            Self::U16(n) => number('B', n),
            Self::U32(n) => number('C', n),
            Self::U64(n) => number('D', n),
            Self::U128(n) => number('E', n),
            Self::F32(bits) => number('g', bits),
            Self::F64(bits) => number('h', bits),
            Self::Unit => text.push('u'),
            Self::None => text.push('n'),
            Self::Bool(is) => text.push(if *is { 't' } else { 'f' }),
            Self::Char(char) => text.extend(['\'', *char]),
            Self::Str(string) => append_string('s', string, text),
            Self::Bytes(bytes) => {
                // Half as many as the digits of their numbers.
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                append_string('x', &hex, text);
            }
            Self::Some(node) => node.append_after('o', text),
            Self::Newtype(node) => node.append_after('w', text),
            Self::Variant(name, node) => {
                append_string('v', name, text);
                node.append_to(text);
            }
            Self::Named(_, _, node) => node.append_to(text),
            Self::Seq(nodes) => append_all('[', nodes, text),
            Self::Tuple(nodes) => append_all('(', nodes, text),
            Self::Map(pairs) => append_pairs('{', pairs, text),
            Self::Fields(pairs) => append_pairs('<', pairs, text),
        }
    }

    fn append_after(&self, kind: char, text: &mut String) {
        text.push(kind);
        self.append_to(text);
    }

    /// The tree that a text is, to its end.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let mut rest = Rest(text);
        let node = rest.node(MAX_DEPTH)?;
        rest.0.is_empty().then_some(node)
    }
}

fn append_string(kind: char, string: &str, text: &mut String) {
    let _ = write!(text, "{kind}{};{string}", string.len());
}

fn append_all(kind: char, nodes: &[Node], text: &mut String) {
    text.push(kind);
    nodes.iter().for_each(|node| node.append_to(text));
    text.push(']');
}

fn append_pairs(kind: char, pairs: &[(Node, Node)], text: &mut String) {
    text.push(kind);
    for (key, value) in pairs {
        key.append_to(text);
        value.append_to(text);
    }
    text.push(']');
}

/// What is still to be read.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn char(&mut self) -> Option<char> {
        let mut chars = self.0.chars();
        let char = chars.next()?;
        self.0 = chars.as_str();
        Some(char)
    }

    fn number<N: FromStr>(&mut self) -> Option<N> {
        let (number, rest) = self.0.split_once(';')?;
        self.0 = rest;
        number.parse().ok()
    }

    fn string(&mut self) -> Option<&'a str> {
        let length = self.number()?;
        let (string, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(string)
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let hex = self.string()?.as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        hex.len().is_multiple_of(2).then(|| hex.chunks(2).map(byte).collect())?
    }

    fn all<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut all = Vec::new();
        loop {
            if let Some(rest) = self.0.strip_prefix(']') {
                self.0 = rest;
                return Some(all);
            }
            all.push(one(self)?);
        }
    }

    fn node(&mut self, depth: usize) -> Option<Node> {
        let depth = depth.checked_sub(1)?;
        Some(match self.char()? {
            'a' => Node::I8(self.number()?),
            'b' => Node::I16(self.number()?),
            'c' => Node::I32(self.number()?),
            'd' => Node::I64(self.number()?),
            'e' => Node::I128(self.number()?),
            'A' => Node::U8(self.number()?),
            'B' => Node::U16(self.number()?),
            'C' => Node::U32(self.number()?),
            'D' => Node::U64(self.number()?),
            'E' => Node::U128(self.number()?),
            'g' => Node::F32(self.number()?),
            'h' => Node::F64(self.number()?),
            'u' => Node::Unit,
            'n' => Node::None,
            't' => Node::Bool(true),
            'f' => Node::Bool(false),
            '\'' => Node::Char(self.char()?),
            's' => Node::Str(self.string()?.to_owned()),
            'x' => Node::Bytes(self.bytes()?),
            'o' => Node::Some(Box::new(self.node(depth)?)),
            'w' => Node::Newtype(Box::new(self.node(depth)?)),
            'v' => Node::Variant(self.string()?.to_owned(), Box::new(self.node(depth)?)),
            '[' => Node::Seq(self.all(|rest| rest.node(depth))?),
            '(' => Node::Tuple(self.all(|rest| rest.node(depth))?),
            '{' => Node::Map(self.all(|rest| Some((rest.node(depth)?, rest.node(depth)?)))?),
            '<' => Node::Fields(self.all(|rest| Some((rest.node(depth)?, rest.node(depth)?)))?),
            _ => return None,
        })
    }
}
