//! The names that a function's parameters bind: a key template can only begin with these.

use std::fmt::{self, Display};

use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{FnArg, PatIdent, Signature};

/// The names of the parameters, in order, `self` among them.
#[derive(Default)]
pub(crate) struct Params(Vec<String>);

impl Params {
    pub(crate) fn of(signature: &Signature) -> Self {
        let mut params = Self::default();
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(_) => params.0.push("self".to_owned()),
                FnArg::Typed(param) => params.visit_pat_mut(&mut param.pat.clone()),
            }
        }
        params
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|param| param == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(crate) fn lost_a_pattern(&self) -> bool {
        self.names().any(replaces_a_pattern)
    }
}

/// Whether `#[async_trait]` put this name in place of a pattern.
fn replaces_a_pattern(name: &str) -> bool {
    name.starts_with("__arg")
}

impl VisitMut for Params {
    fn visit_pat_ident_mut(&mut self, binding: &mut PatIdent) {
        self.0.push(binding.ident.unraw().to_string());
        visit_mut::visit_pat_ident_mut(self, binding);
    }
}

/// "its parameters are `id`, `quantity`", for the end of a sentence.
impl Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.names().filter(|name| !replaces_a_pattern(name)).collect();
        match names.as_slice() {
            [] if self.lost_a_pattern() => f.write_str("none of its parameters has a name"),
            [] => f.write_str("it has no parameters"),
            [name] => write!(f, "its parameter is `{name}`"),
            names => write!(f, "its parameters are `{}`", names.join("`, `")),
        }
    }
}
