//! The options between the attribute's parentheses.

use std::collections::VecDeque;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::buffer::Cursor;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Expr, Ident, LitStr, Path, Token, parenthesized, token};

use crate::duration::Time;
use crate::key::{self, Key, Locked};
use crate::mistakes::Mistakes;
use crate::options::{self, Spec};
use crate::value::{Manager, OnBusy};
use crate::written::written;

/// The options as written; absent ones have the runtime's default.
#[derive(Default)]
pub(crate) struct Args {
    /// The options named so far and where, even if their values are invalid.
    named: Vec<(&'static str, Span)>,
    /// The values that could be read, as written.
    written: Vec<(&'static str, String)>,
    /// The options probably meant by unknown names.
    meant: Vec<&'static str>,
    /// The content of each `defaults(…)`, not yet read.
    defaults: VecDeque<TokenStream>,
    pub(crate) key: Option<Key>,
    pub(crate) keys: Option<Vec<Key>>,
    pub(crate) ttl: Option<Time>,
    pub(crate) retry: Option<Expr>,
    pub(crate) retry_delay: Option<Time>,
    pub(crate) wait: Option<Time>,
    pub(crate) renew: Option<Expr>,
    pub(crate) max_hold: Option<Time>,
    pub(crate) hold_at_least: Option<Time>,
    pub(crate) once_per: Option<Time>,
    pub(crate) once_for: Option<Key>,
    pub(crate) share_result: Option<bool>,
    pub(crate) lead: Option<bool>,
    pub(crate) progress_within: Option<Time>,
    pub(crate) on_busy: Option<OnBusy>,
    pub(crate) on_lost: Option<&'static str>,
    pub(crate) on_unavailable: Option<&'static str>,
    pub(crate) reentrant: Option<Expr>,
    pub(crate) mode: Option<&'static str>,
    pub(crate) permits: Option<Expr>,
    pub(crate) release: Option<&'static str>,
    pub(crate) when: Option<Expr>,
    pub(crate) manager: Option<Manager>,
    pub(crate) lease: Option<Ident>,
    pub(crate) term: Option<Ident>,
    pub(crate) krate: Option<Path>,
}

impl Args {
    pub(crate) fn parse(tokens: TokenStream, mistakes: &mut Mistakes) -> Self {
        let args = Self::parse_some(tokens, mistakes);
        if !args.mentions("key") && !args.mentions("keys") {
            let sentence = "missing `key` or `keys`: write what to lock, as in \
                            `key = \"product:<id>\"` or \
                            `keys = [\"account:<from>\", \"account:<to>\"]`";
            mistakes.push(Error::new(Span::call_site(), sentence));
        }
        args
    }

    /// The same, if `key` or `keys` may be given elsewhere.
    pub(crate) fn parse_some(tokens: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut args = Self::default();
        let mut next = Some(tokens);
        while let Some(tokens) = next {
            let level = Level { named_before: args.named.len(), overridden: Vec::new() };
            args.read_level(level, tokens, mistakes);
            next = args.defaults.pop_front();
        }
        args
    }

    fn read_level(&mut self, mut level: Level, tokens: TokenStream, mistakes: &mut Mistakes) {
        let read = |input: ParseStream<'_>| self.read(&mut level, input, mistakes);
        if let Err(mistake) = read.parse2(tokens) {
            mistakes.push(mistake);
        }
    }

    /// What to lock, if that could be read.
    pub(crate) fn locked(&self) -> Option<Locked<'_>> {
        let all = || self.keys.as_deref().map(Locked::All);
        self.key.as_ref().map(Locked::One).or_else(all)
    }

    /// All options except `key` and `keys`, with their values as written.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let options = self.written.iter().map(|(option, value)| (*option, value.as_str()));
        options.filter(|(option, _)| !matches!(*option, "key" | "keys"))
    }

    /// The text of all expressions in the options and in the `locked` keys.
    pub(crate) fn expressions(&self, locked: Locked<'_>) -> String {
        let keys = match locked {
            Locked::One(key) => std::slice::from_ref(key),
            Locked::All(keys) => keys,
        };
        let mut texts: Vec<_> = self.written().map(|(_, value)| value.to_owned()).collect();
        texts.extend(keys.iter().map(Key::expressions));
        texts.join(" ")
    }

    /// Whether all that becomes a `LockOptions` is known at compile time.
    pub(crate) fn has_constant_options(&self) -> bool {
        let times = [
            &self.ttl,
            &self.retry_delay,
            &self.wait,
            &self.max_hold,
            &self.hold_at_least,
            &self.progress_within,
        ];
        let others = [&self.retry, &self.renew, &self.reentrant, &self.permits];
        times.into_iter().flatten().all(|time| matches!(time, Time::Literal(..)))
            && others.into_iter().flatten().all(|value| matches!(value, Expr::Lit(_)))
    }

    /// Whether its work is done once in a period, or for a value.
    pub(crate) fn runs_once(&self) -> bool {
        self.once_per.is_some() || self.once_for.is_some()
    }

    /// Whether callers that wait get the result of the body that ran.
    pub(crate) fn shares_result(&self) -> bool {
        self.share_result == Some(true)
    }

    /// Whether the function leads: its body is a term.
    pub(crate) fn leads(&self) -> bool {
        self.lead == Some(true)
    }

    /// Whether the option is named, or a misspelling of it.
    pub(crate) fn mentions(&self, option: &str) -> bool {
        self.position(option).is_some() || self.meant.contains(&option)
    }

    /// Where the later of two options is named, if both are.
    pub(crate) fn later_of(&self, option: &str, other: &str) -> Option<Span> {
        let (one, other) = (self.position(option)?, self.position(other)?);
        Some(self.named[one.max(other)].1)
    }

    pub(crate) fn span_of(&self, option: &str) -> Option<Span> {
        self.position(option).map(|position| self.named[position].1)
    }

    fn position(&self, option: &str) -> Option<usize> {
        self.named.iter().position(|(named, _)| *named == option)
    }

    fn read(
        &mut self,
        level: &mut Level,
        input: ParseStream<'_>,
        mistakes: &mut Mistakes,
    ) -> syn::Result<()> {
        while !input.is_empty() {
            if let Err(mistake) = self.read_option(level, input) {
                mistakes.push(mistake);
                skip_to_comma(input)?;
            } else if !input.is_empty() && !input.peek(Token![,]) {
                let next_option = input.peek(Ident::peek_any) && input.peek2(Token![=]);
                let at = input.span();
                let option = self.named.last().map(|(option, _)| *option);
                let skipped = if next_option { TokenStream::new() } else { skip_to_comma(input)? };
                // `key = product:<id>`, without quotes.
                let is_text = skipped.clone().into_iter().next().is_some_and(is_part_of_a_template);
                let sentence = match option.filter(|_| is_text) {
                    Some(option @ ("key" | "keys" | "once_for")) => key::quotes_missing(option),
                    _ => "expected `,` before the next option".to_owned(),
                };
                mistakes.push(Error::new(at, sentence));
                if next_option {
                    continue;
                }
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    }

    fn read_option(&mut self, level: &mut Level, input: ParseStream<'_>) -> syn::Result<()> {
        if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            self.named.push(("key", text.span()));
            let sentence = format!("the key has to be named: write `key = {:?}`", text.value());
            return Err(Error::new(text.span(), sentence));
        }
        if !input.peek(Ident::peek_any) {
            return Err(input.error(format!("expected an option: {}", options::expected())));
        }
        let name = input.call(Ident::parse_any)?;
        if name == "defaults" {
            return self.put_defaults_aside(&name, input);
        }
        let Some(option) = Spec::named(&name.to_string()) else {
            self.meant.extend(options::meant(&name.to_string()));
            return Err(Error::new(name.span(), options::unknown(&name.to_string())));
        };
        let position = self.position(option.name);
        let is_duplicate = position.is_some_and(|position| position >= level.named_before);
        if is_duplicate || level.overridden.contains(&option.name) {
            let sentence = format!("`{name}` is given twice: leave one of them out");
            return Err(Error::new(name.span(), sentence));
        }
        let overridden = position.is_some() || self.rules_out(option.name, level);
        if overridden {
            level.overridden.push(option.name);
        } else {
            self.named.push((option.name, name.span()));
        }
        if !input.peek(Token![=]) {
            let sentence = format!("`{name}` needs a value: write {}", option.example());
            return Err(Error::new(name.span(), sentence));
        }
        let equals: Token![=] = input.parse()?;
        if input.is_empty() || input.peek(Token![,]) {
            let sentence = format!("`{name}` needs a value: write {}", option.example());
            return Err(Error::new(equals.span, sentence));
        }
        if overridden {
            // Read anyway, to report its mistakes.
            return (option.read)(&mut Self::default(), option.name, input);
        }
        let value = input.cursor();
        (option.read)(self, option.name, input)?;
        let value = written(&tokens_between(value, input.cursor()));
        self.written.push((option.name, value));
        Ok(())
    }

    /// Whether an option outside of this level excludes a default.
    fn rules_out(&self, option: &str, level: &Level) -> bool {
        let is_named =
            |other| self.position(other).is_some_and(|position| position < level.named_before);
        match option {
            "key" => is_named("keys"),
            "keys" => is_named("key"),
            "mode" => is_named("permits"),
            "permits" => is_named("mode"),
            _ => false,
        }
    }

    fn put_defaults_aside(&mut self, name: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        if !input.peek(token::Paren) {
            let sentence =
                "`defaults` takes options in parentheses: write `defaults(ttl = \"30s\")`";
            return Err(Error::new(name.span(), sentence));
        }
        let content;
        parenthesized!(content in input);
        self.defaults.push_back(content.parse()?);
        Ok(())
    }
}

/// A mark that cannot follow an expression.
pub(crate) fn is_part_of_a_template(token: TokenTree) -> bool {
    matches!(token, TokenTree::Punct(mark) if matches!(mark.as_char(), ':' | '<' | '>' | '/' | '-' | '#' | '@'))
}

fn tokens_between(mut start: Cursor<'_>, end: Cursor<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    while start != end
        && let Some((token, next)) = start.token_tree()
    {
        tokens.extend([token]);
        start = next;
    }
    tokens
}

/// The options between one pair of parentheses: those of the attribute, or of its `defaults(…)`.
struct Level {
    /// The number of options named outside of it, which override it.
    named_before: usize,
    /// The options in it that are overridden.
    overridden: Vec<&'static str>,
}

/// Skips a bad option: parsing continues after the next comma.
pub(crate) fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut skipped = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        skipped.extend([input.parse::<TokenTree>()?]);
    }
    Ok(skipped)
}
