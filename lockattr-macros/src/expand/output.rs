//! The output type of a function, in a form that is valid in its body.

use syn::visit_mut::{self, VisitMut};
use syn::{ReturnType, Signature, Token, Type, TypeInfer, parse_quote_spanned, spanned::Spanned};

/// The return type; without one, `()` at the function's name.
pub(super) fn output(sig: &Signature) -> Type {
    match &sig.output {
        ReturnType::Type(_, output) => Type::clone(output),
        ReturnType::Default => parse_quote_spanned! {sig.ident.span()=> () },
    }
}

/// The type with `_` for each `impl Trait`, which is only valid in signatures.
pub(super) fn erase_impl_trait(mut ty: Type) -> Type {
    ImplTraitEraser::default().visit_type_mut(&mut ty);
    ty
}

pub(super) fn has_impl_trait(mut ty: Type) -> bool {
    let mut eraser = ImplTraitEraser::default();
    eraser.visit_type_mut(&mut ty);
    eraser.erased
}

#[derive(Default)]
struct ImplTraitEraser {
    erased: bool,
}

impl VisitMut for ImplTraitEraser {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::ImplTrait(_) = ty {
            self.erased = true;
            *ty = Type::Infer(TypeInfer {
                attrs: Vec::new(),
                underscore_token: Token![_](ty.span()),
            });
        } else {
            visit_mut::visit_type_mut(self, ty);
        }
    }
}
