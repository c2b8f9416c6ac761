//! Which characters of a key or a label are printed, and which are replaced.

use std::borrow::Cow;

/// Replaces each character that would move the text around it, or that cannot be seen, by `�`.
///
/// Any program may write keys and labels. Printed as they are, they could clear a terminal, begin a
/// line of their own in a log, or show `evil` as `live`. The replaced characters are all control
/// characters (ESC, line feeds), the separators of lines and paragraphs, the marks that change the
/// direction of text (U+200E, U+202E, U+2066 and the like), and other invisible format
/// characters (the zero-width space, tags). The joiners U+200C and U+200D stay: words in Persian and
/// many emoji need them.
///
/// [`Holder`](crate::Holder) and the command `lockattr` print by this rule.
///
/// ```
/// use lockattr::printable;
///
/// assert_eq!(printable("product:42"), "product:42");
/// assert_eq!(printable("a\u{1b}[2Jb\nc"), "a�[2Jb�c");
/// assert_eq!(printable("user:\u{202e}nimda"), "user:�nimda");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    match text.contains(is_replaced) {
        true => text.replace(is_replaced, "\u{fffd}").into(),
        false => text.into(),
    }
}

fn is_replaced(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}' // the soft hyphen
            | '\u{61c}' // the mark of Arabic letters
            | '\u{180e}' | '\u{200b}' // separators without a width
            | '\u{200e}'..='\u{200f}' // marks of direction
            | '\u{2028}'..='\u{2029}' // separators of lines and paragraphs
            | '\u{202a}'..='\u{202e}' // embeddings and overrides of direction
            | '\u{2060}'..='\u{206f}' // joiners, isolates of direction, invisible operators
            | '\u{feff}' // the byte-order mark
            | '\u{fff9}'..='\u{fffb}' // annotations between lines
            | '\u{1bca0}'..='\u{1bca3}' // controls of shorthand
            | '\u{1d173}'..='\u{1d17a}' // controls of music
            | '\u{e0000}'..='\u{e007f}' // tags: a whole invisible alphabet
        )
}

#[cfg(test)]
mod tests {
    use super::printable;

    /// Red without: any of the ranges in `is_replaced`.
    #[test]
    fn nothing_is_printed_that_moves_other_text() {
        let named = "\u{ad}\u{61c}\u{180e}\u{200b}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\
                     \u{202c}\u{202d}\u{202e}\u{2060}\u{2066}\u{2067}\u{2068}\u{2069}\u{feff}\
                     \u{fff9}\u{fffb}\u{1bca0}\u{1d173}\u{e0001}\u{e0061}\0\t\n\r\u{1b}\u{7f}\u{85}\
                     \u{9b}";
        for char in named.chars() {
            assert_eq!(printable(&format!("a{char}b")), "a\u{fffd}b", "{char:?}");
        }
    }

    /// Red without: an end of a range in `is_replaced`.
    #[test]
    fn what_people_write_is_printed_as_it_is() {
        let written = "product:42 <a|b> 库存 كتاب می‌خواهم हिन्दी 👩‍🚀 ñ n\u{303} ﷺ \u{2027}\u{202f}\u{205f}\
                       \u{2070}\u{fffd}";
        assert_eq!(printable(written), written);
    }
}
