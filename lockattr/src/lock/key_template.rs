//! Renders a key template: its text unchanged, the values of placeholders escaped.
//!
//! An escaped value can contain neither the character that ends it in the template nor any other
//! special character. So two different argument lists never give the same key, and no value moves a
//! key to another Redis Cluster slot with braces of its own.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

/// Capacity reserved for values, so that most keys are written without a reallocation.
const VALUES: usize = 40;

/// Builds one key from the parts of its template.
#[derive(Debug, Default)]
pub struct KeyBuilder {
    /// A text without values is borrowed.
    key: Cow<'static, str>,
    failed: bool,
}

impl KeyBuilder {
    /// An empty key.
    #[inline]
    pub fn new() -> Self {
        Self { key: Cow::Borrowed(""), failed: false }
    }

    /// Appends the template's own text.
    pub fn text(mut self, text: &'static str) -> Self {
        match &mut self.key {
            Cow::Borrowed("") => self.key = Cow::Borrowed(text),
            _ => self.written().push_str(text),
        }
        self
    }

    /// The key so far, as an owned string.
    fn written(&mut self) -> &mut String {
        if let Cow::Borrowed(text) = self.key {
            let mut key = String::with_capacity(text.len() + VALUES);
            key.push_str(text);
            self.key = Cow::Owned(key);
        }
        self.key.to_mut()
    }

    /// Appends a placeholder's value, escaped. `next` is the character that follows it in the
    /// template.
    pub fn placeholder<T: Display + ?Sized>(mut self, value: &T, next: Option<char>) -> Self {
        let mut escaped = Escaped { key: self.written(), next };
        self.failed |= write!(escaped, "{value}").is_err();
        self
    }

    /// Appends the value of `key = expression` as it is.
    pub fn verbatim<T: Display + ?Sized>(mut self, value: &T) -> Self {
        self.failed |= write!(self.written(), "{value}").is_err();
        self
    }

    /// The key, or `None` if the `Display` of a value failed: a partial value would be another key.
    #[inline]
    pub(crate) fn finish(self) -> Option<Cow<'static, str>> {
        (!self.failed).then_some(self.key)
    }
}

/// Percent-encodes the special characters of a value, without an intermediate string.
struct Escaped<'a> {
    key: &'a mut String,
    next: Option<char>,
}

impl Write for Escaped<'_> {
    fn write_str(&mut self, value: &str) -> fmt::Result {
        let is_special = |character: char| {
            matches!(character, '%' | ':' | '{' | '}')
                || character.is_control()
                || Some(character) == self.next
        };
        let mut rest = value;
        while let Some(at) = rest.find(is_special) {
            let (plain, tail) = rest.split_at(at);
            self.key.push_str(plain);
            let special = tail.chars().next().map_or(0, char::len_utf8);
            for byte in tail[..special].bytes() {
                write!(self.key, "%{byte:02X}")?;
            }
            rest = &tail[special..];
        }
        self.key.push_str(rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::fmt::{self, Display};

    use super::KeyBuilder;

    /// Its `Display` writes a part and then fails.
    struct Half;

    impl Display for Half {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("half")?;
            Err(fmt::Error)
        }
    }

    /// Red without: any of the characters in `is_special`.
    #[test]
    fn a_value_is_escaped_and_a_text_is_not() {
        let values = [
            ("a%b", None, "a%25b"),
            ("a:b", None, "a%3Ab"),
            ("{a}", None, "%7Ba%7D"),
            ("a\nb", None, "a%0Ab"),
            ("a/b", Some('/'), "a%2Fb"),
            ("aéb", Some('é'), "a%C3%A9b"),
            ("a/é", None, "a/é"),
        ];
        for (value, next, escaped) in values {
            let key = KeyBuilder::new().text("{a}:").placeholder(value, next).verbatim("{%}/");
            let expected = format!("{{a}}:{escaped}{{%}}/");
            assert_eq!(key.finish().as_deref(), Some(&*expected), "{value:?}");
        }
    }

    /// Red without: `Cow::Borrowed(text)` in `text`.
    #[test]
    fn a_key_without_placeholders_is_not_copied() {
        let key = KeyBuilder::new().text("nightly").finish();
        assert!(matches!(key, Some(Cow::Borrowed("nightly"))), "{key:?}");
        let key = KeyBuilder::new().text("a").text("b").finish();
        assert_eq!(key.as_deref(), Some("ab"));
    }

    /// Red without: `failed` set in either, or checked in `finish`.
    #[test]
    fn a_value_that_refuses_to_print_itself_makes_no_key() {
        let key = || KeyBuilder::new().text("a:");
        assert_eq!(key().placeholder(&Half, None).placeholder("b", None).finish(), None);
        assert_eq!(key().verbatim(&Half).verbatim("b").finish(), None);
    }
}
