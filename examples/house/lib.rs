//! The house's own attribute: `#[distributed_lock]` with defaults that are decided in one place.

use proc_macro::TokenStream;
use quote::quote;

/// Locks as all order services do: by the manager `orders`, for half a minute, and not waiting longer
/// than a customer does. What is written at the function goes before.
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
