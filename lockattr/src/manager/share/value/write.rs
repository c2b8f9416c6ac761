//! Writes a value as its tree.

use serde::de::value::Error;
use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::Node;

/// Writes one node, and what it holds.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    /// How many nodes more may be nested.
    pub(super) depth: usize,
}

impl Writer {
    fn inner<T: Serialize + ?Sized>(self, value: &T) -> Result<Node, Error> {
        let depth = self.depth.checked_sub(2);
        let depth = depth.ok_or_else(|| Error::custom("the value is nested too deep"))?;
        value.serialize(Self { depth })
    }

    fn parts(self, kind: Kind) -> Parts {
        Parts { writer: self, kind, nodes: Vec::new(), keys: Vec::new() }
    }
}

fn named(name: &'static str, node: Node) -> Node {
    Node::Named(name, 0, Box::new(node))
}

macro_rules! leaves {
    ($($method:ident($type:ty) => $node:expr,)*) => {$(
        fn $method(self, value: $type) -> Result<Node, Error> {
            Ok($node(value))
        }
    )*};
}

impl Serializer for Writer {
    type Ok = Node;
    type Error = Error;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    leaves! {
        serialize_bool(bool) => Node::Bool,
        serialize_i8(i8) => Node::I8,
        serialize_i16(i16) => Node::I16,
        serialize_i32(i32) => Node::I32,
        serialize_i64(i64) => Node::I64,
        serialize_i128(i128) => Node::I128,
        serialize_u8(u8) => Node::U8,
        serialize_u16(u16) => Node::U16,
        serialize_u32(u32) => Node::U32,
        serialize_u64(u64) => Node::U64,
        serialize_u128(u128) => Node::U128,
        serialize_f32(f32) => |n: f32| Node::F32(n.to_bits()),
        serialize_f64(f64) => |n: f64| Node::F64(n.to_bits()),
        serialize_char(char) => Node::Char,
        serialize_str(&str) => |text: &str| Node::Str(text.to_owned()),
        serialize_bytes(&[u8]) => |bytes: &[u8]| Node::Bytes(bytes.to_owned()),
        serialize_unit_struct(&'static str) => |name| named(name, Node::Unit),
    }

    fn serialize_unit(self) -> Result<Node, Error> {
        Ok(Node::Unit)
    }

    fn serialize_none(self) -> Result<Node, Error> {
        Ok(Node::None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Node, Error> {
        Ok(Node::Some(Box::new(self.inner(value)?)))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Node, Error> {
        Ok(named(name, Node::Newtype(Box::new(self.inner(value)?))))
    }

    fn serialize_unit_variant(
        self,
        of: &'static str,
        index: u32,
        name: &'static str,
    ) -> Result<Node, Error> {
        Ok(variant(of, index, name, Node::Unit))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        of: &'static str,
        index: u32,
        name: &'static str,
        value: &T,
    ) -> Result<Node, Error> {
        Ok(variant(of, index, name, Node::Newtype(Box::new(self.inner(value)?))))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts, Error> {
        Ok(self.parts(Kind::Seq))
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts, Error> {
        Ok(self.parts(Kind::Tuple))
    }

    fn serialize_tuple_struct(self, name: &'static str, _: usize) -> Result<Parts, Error> {
        Ok(self.parts(Kind::TupleStruct(name)))
    }

    fn serialize_tuple_variant(
        self,
        of: &'static str,
        index: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Parts, Error> {
        Ok(self.parts(Kind::TupleVariant(of, index, name)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts, Error> {
        Ok(self.parts(Kind::Map))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Parts, Error> {
        Ok(self.parts(Kind::Struct(name)))
    }

    fn serialize_struct_variant(
        self,
        of: &'static str,
        index: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Parts, Error> {
        Ok(self.parts(Kind::StructVariant(of, index, name)))
    }
}

fn variant(of: &'static str, index: u32, name: &'static str, node: Node) -> Node {
    Node::Named(of, index, Box::new(Node::Variant(name.to_owned(), Box::new(node))))
}

/// What a node of several parts will be.
enum Kind {
    Seq,
    Tuple,
    TupleStruct(&'static str),
    TupleVariant(&'static str, u32, &'static str),
    Map,
    Struct(&'static str),
    StructVariant(&'static str, u32, &'static str),
}

/// The parts of a node that were written so far.
pub(super) struct Parts {
    writer: Writer,
    kind: Kind,
    nodes: Vec<Node>,
    /// Of a map or a struct.
    keys: Vec<Node>,
}

impl Parts {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.nodes.push(self.writer.inner(value)?);
        Ok(())
    }

    fn push_field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        self.keys.push(Node::Str(name.to_owned()));
        self.push(value)
    }

    fn node(self) -> Result<Node, Error> {
        let Self { kind, nodes, keys, .. } = self;
        let pairs = |nodes: Vec<Node>| keys.into_iter().zip(nodes).collect();
        Ok(match kind {
            Kind::Seq => Node::Seq(nodes),
            Kind::Tuple => Node::Tuple(nodes),
            Kind::TupleStruct(name) => named(name, Node::Tuple(nodes)),
            Kind::TupleVariant(of, index, name) => variant(of, index, name, Node::Tuple(nodes)),
            Kind::Map => Node::Map(pairs(nodes)),
            Kind::Struct(name) => named(name, Node::Fields(pairs(nodes))),
            Kind::StructVariant(of, index, name) => {
                variant(of, index, name, Node::Fields(pairs(nodes)))
            }
        })
    }
}

impl SerializeMap for Parts {
    type Ok = Node;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.keys.push(self.writer.inner(key)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.push(value)
    }

    fn end(self) -> Result<Node, Error> {
        self.node()
    }
}

macro_rules! parts {
    ($($trait:ident: $method:ident($($name:ident)?) => $push:ident;)*) => {$(
        impl $trait for Parts {
            type Ok = Node;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($name: &'static str,)?
                value: &T,
            ) -> Result<(), Error> {
                self.$push($($name,)? value)
            }

            fn end(self) -> Result<Node, Error> {
                self.node()
            }
        }
    )*};
}

parts! {
    SerializeSeq: serialize_element() => push;
    SerializeTuple: serialize_element() => push;
    SerializeTupleStruct: serialize_field() => push;
    SerializeTupleVariant: serialize_field() => push;
    SerializeStruct: serialize_field(name) => push_field;
    SerializeStructVariant: serialize_field(name) => push_field;
}
