//! A team's own attribute: `#[distributed_lock]` with shared defaults.

use proc_macro::TokenStream;
use quote::quote;

/// The defaults of all order services: the manager `orders`, a lease of half a minute, and a wait
/// no longer than a customer's. Options at the function override them.
#[proc_macro_attribute]
pub fn orders_lock(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = proc_macro2::TokenStream::from(options);
    let item = proc_macro2::TokenStream::from(item);
    quote! {
        #[::lockattr::distributed_lock(
            defaults(ttl = "30s", wait = "2s", manager = "orders"),
            #options
        )]
        #item
    }
    .into()
}
