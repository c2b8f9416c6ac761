//! The names that a function's parameters bind: a key template can only begin with these.

use std::fmt::{self, Display};

use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{FnArg, Pat, PatIdent, Signature};

use crate::async_trait;
use crate::key_template::is_keyword;

/// The names of the parameters, in order, `self` among them.
#[derive(Default)]
pub(crate) struct Params {
    names: Vec<String>,
    /// Those of them that `#[async_trait]` put in place of a pattern.
    replaced: Vec<String>,
}

impl Params {
    pub(crate) fn of(signature: &Signature) -> Self {
        let mut params = Self::default();
        let is_async_trait = async_trait::has_rewritten(signature);
        for (index, input) in signature.inputs.iter().enumerate() {
            match input {
                FnArg::Receiver(_) => params.names.push("self".to_owned()),
                FnArg::Typed(param) => {
                    params.visit_pat_mut(&mut param.pat.clone());
                    let replacement = async_trait::positional(index);
                    if is_async_trait
                        && matches!(&*param.pat, Pat::Ident(name) if name.ident == replacement)
                    {
                        params.replaced.push(replacement);
                    }
                }
            }
        }
        params
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().any(|param| param == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub(crate) fn lost_a_pattern(&self) -> bool {
        !self.replaced.is_empty()
    }
}

/// The name as a placeholder has it: `r#type`.
pub(crate) fn as_written(name: &str) -> String {
    if is_keyword(name) { format!("r#{name}") } else { name.to_owned() }
}

impl VisitMut for Params {
    fn visit_pat_ident_mut(&mut self, binding: &mut PatIdent) {
        self.names.push(binding.ident.unraw().to_string());
        visit_mut::visit_pat_ident_mut(self, binding);
    }
}

/// "its parameters are `id`, `quantity`", for the end of a sentence.
impl Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.names().filter(|name| !self.replaced.iter().any(|other| other == name));
        let names: Vec<_> = named.map(as_written).collect();
        match names.as_slice() {
            [] if self.lost_a_pattern() => f.write_str("none of its parameters has a name"),
            [] => f.write_str("it has no parameters"),
            [name] => write!(f, "its parameter is `{name}`"),
            names => write!(f, "its parameters are `{}`", names.join("`, `")),
        }
    }
}
