//! What stands between the attribute's parentheses, option by option.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Expr, Ident, LitStr, Path, Token};

use crate::duration::Time;
use crate::key::Key;
use crate::mistakes::Mistakes;
use crate::options::{self, Spec};
use crate::value::{Manager, OnBusy};

/// The options as they are written; what is not there has the runtime's default.
#[derive(Default)]
pub(crate) struct Args {
    /// Named so far, whatever became of the values.
    named: Vec<&'static str>,
    /// Probably meant by names that are no options.
    meant: Vec<&'static str>,
    pub(crate) key: Option<Key>,
    pub(crate) ttl: Option<Time>,
    pub(crate) retry: Option<Expr>,
    pub(crate) retry_delay: Option<Time>,
    pub(crate) wait: Option<Time>,
    pub(crate) renew: Option<Expr>,
    pub(crate) max_hold: Option<Time>,
    pub(crate) on_busy: Option<OnBusy>,
    pub(crate) on_lost: Option<&'static str>,
    pub(crate) on_unavailable: Option<&'static str>,
    pub(crate) reentrant: Option<Expr>,
    pub(crate) release: Option<&'static str>,
    pub(crate) when: Option<Expr>,
    pub(crate) manager: Option<Manager>,
    pub(crate) lease: Option<Ident>,
    pub(crate) krate: Option<Path>,
}

impl Args {
    /// Reads every option that can be read.
    pub(crate) fn parse(tokens: TokenStream, mistakes: &mut Mistakes) -> Self {
        let mut args = Self::default();
        let read = |input: ParseStream<'_>| args.read(input, mistakes);
        if let Err(mistake) = read.parse2(tokens) {
            mistakes.push(mistake);
        }
        if !args.mentions("key") {
            let sentence = "missing `key`: write what to lock, as in `key = \"product:<id>\"`";
            mistakes.push(Error::new(Span::call_site(), sentence));
        }
        args
    }

    /// Whether the option is there under its name, or under one that may have been meant for it.
    pub(crate) fn mentions(&self, option: &str) -> bool {
        self.named.iter().chain(&self.meant).any(|mentioned| *mentioned == option)
    }

    fn read(&mut self, input: ParseStream<'_>, mistakes: &mut Mistakes) -> syn::Result<()> {
        while !input.is_empty() {
            if let Err(mistake) = self.read_option(input) {
                mistakes.push(mistake);
                skip_to_comma(input)?;
            } else if !input.is_empty() && !input.peek(Token![,]) {
                mistakes.push(input.error("expected `,` before the next option"));
                let next_option = input.peek(Ident::peek_any) && input.peek2(Token![=]);
                if next_option {
                    continue;
                }
                skip_to_comma(input)?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    }

    fn read_option(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            self.named.push("key");
            let sentence = format!("the key has to be named: write `key = {:?}`", text.value());
            return Err(Error::new(text.span(), sentence));
        }
        if !input.peek(Ident::peek_any) {
            return Err(input.error(format!("expected an option: {}", options::expected())));
        }
        let name = input.call(Ident::parse_any)?;
        let Some(option) = Spec::named(&name.to_string()) else {
            self.meant.extend(options::meant(&name.to_string()));
            return Err(Error::new(name.span(), options::unknown(&name.to_string())));
        };
        if self.named.contains(&option.name) {
            let sentence = format!("`{name}` is given twice: leave one of them out");
            return Err(Error::new(name.span(), sentence));
        }
        self.named.push(option.name);
        if !input.peek(Token![=]) {
            let sentence = format!("`{name}` needs a value: write {}", option.example());
            return Err(Error::new(name.span(), sentence));
        }
        let equals: Token![=] = input.parse()?;
        if input.is_empty() || input.peek(Token![,]) {
            let sentence = format!("`{name}` needs a value: write {}", option.example());
            return Err(Error::new(equals.span, sentence));
        }
        (option.read)(self, option.name, input)
    }
}

/// A bad option ends at the next comma, and the one after it is read again.
pub(crate) fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut skipped = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        skipped.extend([input.parse::<TokenTree>()?]);
    }
    Ok(skipped)
}
