//! Reads a value from its tree.

use serde::de::value::{
    Error, MapAccessDeserializer, MapDeserializer, SeqDeserializer, StringDeserializer,
};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::Node;

impl IntoDeserializer<'_> for Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Node {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Unit => visitor.visit_unit(),
            Self::Bool(is) => visitor.visit_bool(is),
            Self::I8(n) => visitor.visit_i8(n),
            Self::I16(n) => visitor.visit_i16(n),
            Self::I32(n) => visitor.visit_i32(n),
            Self::I64(n) => visitor.visit_i64(n),
            Self::I128(n) => visitor.visit_i128(n),
            Self::U8(n) => visitor.visit_u8(n),
            Self::U16(n) => visitor.visit_u16(n),
            Self::U32(n) => visitor.visit_u32(n),
            Self::U64(n) => visitor.visit_u64(n),
            Self::U128(n) => visitor.visit_u128(n),
            Self::F32(bits) => visitor.visit_f32(f32::from_bits(bits)),
            Self::F64(bits) => visitor.visit_f64(f64::from_bits(bits)),
            Self::Char(char) => visitor.visit_char(char),
            Self::Str(string) => visitor.visit_string(string),
            Self::Bytes(bytes) => visitor.visit_byte_buf(bytes),
            Self::None => visitor.visit_none(),
            Self::Some(node) => visitor.visit_some(*node),
            Self::Newtype(node) => visitor.visit_newtype_struct(*node),
            Self::Seq(nodes) | Self::Tuple(nodes) => {
                let mut nodes = SeqDeserializer::new(nodes.into_iter());
                let value = visitor.visit_seq(&mut nodes)?;
                nodes.end()?;
                Ok(value)
            }
            Self::Map(pairs) | Self::Fields(pairs) => {
                let mut pairs = MapDeserializer::new(pairs.into_iter());
                let value = visitor.visit_map(&mut pairs)?;
                pairs.end()?;
                Ok(value)
            }
            // As in JSON: what `untagged` and `flatten` keep meanwhile has no enums.
            Self::Variant(name, node) => match *node {
                Self::Unit => visitor.visit_string(name),
                Self::Newtype(node) => {
                    Self::Map(vec![(Self::Str(name), *node)]).deserialize_any(visitor)
                }
                node => Self::Map(vec![(Self::Str(name), node)]).deserialize_any(visitor),
            },
            Self::Named(_, _, node) => node.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Variant(name, node) => visitor.visit_enum(Variant(name, *node)),
            Self::Str(name) => visitor.visit_enum(StringDeserializer::new(name)),
            Self::Map(pairs) => {
                let pairs = MapDeserializer::new(pairs.into_iter());
                visitor.visit_enum(MapAccessDeserializer::new(pairs))
            }
            node => node.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Variant(String, Node);

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Node;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Node), Error> {
        Ok((seed.deserialize(StringDeserializer::new(self.0))?, self.1))
    }
}

impl<'de> VariantAccess<'de> for Node {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self {
            Self::Unit => Ok(()),
            _ => Err(Error::custom("a variant with content, where one without was expected")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        match self {
            Self::Newtype(node) => seed.deserialize(*node),
            _ => Err(Error::custom("another variant, where one of one value was expected")),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }
}
