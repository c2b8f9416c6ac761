//! The attribute of `lockattr`. Depend on that crate; this one only knows the names of its items.

mod args;
#[cfg(not(fuzzing))]
mod assert_held;
mod duration;
mod expand;
mod future_shape;
#[cfg(fuzzing)]
pub mod fuzzing;
mod impl_block;
mod key;
mod key_template;
mod locked_fn;
mod mistakes;
mod options;
mod params;
mod stream_shape;
mod suggest;
mod tokio_entry;
mod valid;
mod value;
mod written;

#[cfg(test)]
mod tests;

#[cfg(not(fuzzing))]
use proc_macro::TokenStream;

/// Runs the body of an `async fn` only while this call holds a distributed lock, as in
/// `#[distributed_lock(key = "product:<id>", ttl = "10s", retry = 10)]`.
///
/// It goes on free functions and on methods, in an `impl` or a trait, generic or not; on the
/// methods of `#[async_trait]`; on functions that return a boxed future or an `impl Future`; on
/// [plain functions](#plain-functions) and on those that return a [stream](#streams). Over an
/// [`impl` block](#impl-blocks) it says what those inside have in common.
/// The lock is taken before the body starts and given back however it ends. Every mistake is a
/// compile error at the guilty word, and all mistakes of one attribute come at once.
///
/// # Options
///
/// | option | for example | default | meaning |
/// |---|---|---|---|
/// | `key` | `"product:<id>"`, `order.key()` | this or `keys` | what to lock: a template, or any expression that is `Display` |
/// | `keys` | `["account:<from>", "account:<to>"]` | – | several keys, all or none; equal ones count once |
/// | `ttl` | `"10s"`, `"1m30s"`, `self.ttl` | 10 s | length of the lease: how long a crashed holder keeps others out. 10 ms to 30 days |
/// | `retry` | `10` | – | retries after the first attempt, a `u32` |
/// | `retry_delay` | `"100ms"` | 100 ms | longest pause between two attempts; a waiter in the queue is handed the lock at once |
/// | `wait` | `"3s"` | 10 s | deadline for acquiring; with `retry` too, whichever ends first; `"0s"` asks once |
/// | `renew` | `false` | `true` | renew the lease while the body runs; without, its end is the body's deadline |
/// | `max_hold` | `"5m"` | – | longest time to hold the lock, however often it is renewed; then it is lost |
/// | `hold_at_least` | `"1m"` | – | shortest time that the lock stays taken: after a shorter body, until this has passed |
/// | `on_busy` | `skip`, `return(Ok(0))` | `error` | still held by another after the last attempt |
/// | `on_lost` | `error`, `ignore` | `cancel`; in a plain function `error` | the lease is lost while the body runs |
/// | `on_unavailable` | `run_unlocked` | `error` | the store could not be asked |
/// | `reentrant` | `false` | `true` | a nested call with the same key enters again |
/// | `mode` | `shared` | `exclusive` | a read/write lock: many `shared` holders or one `exclusive` |
/// | `permits` | `3`, `self.slots` | – | a semaphore: at most this many holders, a `u32` from 1 on |
/// | `release` | `background` | `await` | return as soon as the release is sent |
/// | `when` | `quantity > 0` | `true` | `false`: run without taking the lock |
/// | `manager` | `&self.locks`, `"orders"` | the default | a `&LockManager`, or the name one was installed under |
/// | `lease` | `lease` | – | a name under which the body has its `&Lease`; a [stream](#streams) its `Lease` |
/// | `crate` | `::my_crate::lockattr` | `::lockattr` | where a re-export of the runtime lives |
/// | `defaults(…)` | `defaults(ttl = "30s")` | – | any of these options, where they are not said otherwise: for [attributes of one's own](#an-attribute-of-ones-own) |
///
/// Durations are strings, read at compile time to the nanosecond, or expressions of type
/// `Duration`. Expressions are evaluated once, before the lock is asked for, and may use the
/// parameters; that of `return(…)` only when it is needed.
///
/// **`key`**: a string is a template. `<` and `>` enclose an expression over the parameters that is
/// `Display`; it is taken by reference, and its value is escaped, so that two argument lists never
/// meet on one key. `<<` is a plain `<`, and braces are plain text. The placeholder ends at the
/// first `>` up to which it is an expression: `<user.get::<u64>()>` is one. Any other expression,
/// also a string in parentheses, is the key as it is.
///
/// **`keys`**: a list between brackets, each of it written as `key` would be. They are taken in one
/// order for everybody, so that two calls that name them in different orders do not wait for each
/// other forever.
///
/// **`on_busy`**: `skip` needs a function that returns `()`, `Option<T>` or `Result<Option<T>, E>`,
/// and yields `()`, `None` or `Ok(None)`; `return(…)` yields a value of the function's own return
/// type, and may use up the parameters.
///
/// **`on_lost`**: `cancel` drops the body at its next await point and returns `Error::Lost`,
/// `error` lets it finish and returns that, `ignore` lets it finish and returns its value.
///
/// **`hold_at_least`**: for jobs that every node starts by its own clock; the node whose clock is
/// late finds the lock taken, however short the job was. Not longer than `max_hold`, nor than `ttl`
/// where `renew = false`. It counts from the first line of the body.
///
/// **`when`**: where it is false, nothing else of the attribute is evaluated, so a key may be
/// `<items[0]>` beside `when = !items.is_empty()`.
///
/// **`mode`** and **`permits`** cannot stand together. All who lock one key should say the same of
/// it: `shared` readers and `exclusive` writers, or one number of `permits`.
///
/// **`lease`** cannot stand beside `when` or `on_unavailable = run_unlocked`, where there may be no
/// lease; `lockattr::current()` asks for it there.
///
/// # The body
///
/// The body begins only while the lease is good, whatever `on_lost` says. Where the lease has ended between
/// the grant and the first line, the lock is acquired again within the wait budget of the call; else the
/// call returns `Error::Lost`, and the body has not begun.
///
/// The arguments belong to the body, also those that it does not mention: they are dropped in Rust's order,
/// and then the lock is given back. There are two exceptions, which are dropped after the release: what `..`
/// leaves out of a parameter's pattern of which the attribute names a part, and what a pattern leaves out
/// where `#[tracing::instrument]` stands below, which records the parameters by their names.
///
/// # Return type
///
/// A refusal needs room: any `Result<_, E>` with `E: From<lockattr::Error>`, under any name, or
/// else `on_busy = skip`. What is only made by the call and runs later (a stream that an `async fn`
/// returns or a boxed future yields, a future in a plain function's `Result`) would run without the
/// lock, and is a mistake.
///
/// # Plain functions
///
/// A `fn` that is not `async` waits for its lock on the calling thread, and its body runs there: it may
/// borrow what it likes, and nothing has to be `Send`. The store is asked, and the lease renewed, on a
/// thread that the manager starts for the first such call; so the lease is kept however long the body
/// computes, and no tokio runtime is needed around it.
///
/// Nothing can stop plain code, so `on_lost = cancel` is a mistake there: a lost lease comes out after the
/// body, as `Error::Lost`, unless `ignore` is written. A long body asks
/// `lockattr::current()` for `ensure_held()` now and then.
///
/// In an async program it belongs into `tokio::task::spawn_blocking`. Called on a thread that runs tasks
/// it returns `Error::InvalidOptions`, which reports it, where it would have had to wait; a nested call that
/// enters its chain's hold again need not, and may stand anywhere. `lockattr::inherit_blocking` takes the
/// chain along into `spawn_blocking`.
///
/// A function counts as plain whose return type is not *written* as a future or a stream: not
/// `impl Future`, `Pin<Box<dyn Future>>` or a name that ends in `BoxFuture`. An alias under another name is a
/// value like any other, and is made under the lock, not run under it.
///
/// # Streams
///
/// A `fn` that returns `impl Stream<Item = …>`, `Pin<Box<dyn Stream<Item = …>>>` or a name that ends in
/// `BoxStream` takes its lock when the stream is first polled, builds the stream then, and holds the lock
/// until the stream has ended or is dropped. The items are `Result<_, E>` with `E: From<lockattr::Error>`: a
/// refusal is the only item; a lost lease is the next one and the last (`cancel`), or comes after the last
/// (`error`), or not at all (`ignore`). With `on_busy = skip` a busy stream is empty, and the items may be
/// anything; `return(…)` is another stream of such items. What is called while the stream is polled is
/// nested in it, and so is what its values do when they are dropped; what its consumer does between two
/// items is not.
///
/// The body is over before the stream that it makes is polled. So `lease = name` gives it a `Lease` of its
/// own there, and no reference, to be moved into the stream and cloned where that needs it more than once.
///
/// # `impl` blocks
///
/// Over an `impl` block the attribute locks nothing by itself. Its options are the defaults of the functions
/// inside that have the attribute too; a `key` or `keys` of their own goes before the block's, as any
/// option does, and functions without the attribute are left alone.
///
/// ```ignore
/// #[distributed_lock(key = "cart:<self.id>", ttl = "30s", manager = &self.locks)]
/// impl Cart {
///     #[distributed_lock] // the cart
///     async fn add(&mut self, item: Item) -> Result<(), Error> { Ok(self.items.push(item)) }
///
///     #[distributed_lock(key = "stock:<sku>")] // for half a minute as well
///     async fn reserve(&self, sku: u64) -> Result<(), Error> { self.stock.reserve(sku).await }
///
///     fn total(&self) -> u64 { self.items.iter().map(Item::price).sum() } // no lock
/// }
/// ```
///
/// # An attribute of one's own
///
/// `defaults(…)` takes options that hold where nothing else is said. An attribute with the house's defaults
/// is a function in a `proc-macro` crate (`examples/house` in the repository is one):
///
/// ```ignore
/// #[proc_macro_attribute]
/// pub fn orders_lock(options: TokenStream, item: TokenStream) -> TokenStream {
///     let (options, item) = (TokenStream2::from(options), TokenStream2::from(item));
///     quote! {
///         #[::lockattr::distributed_lock(defaults(ttl = "30s", manager = "orders"), #options)]
///         #item
///     }
///     .into()
/// }
/// ```
///
/// In one crate, `macro_rules!` around the function does the same.
///
/// # Beside other attributes
///
/// Attributes are expanded from the top, so that of two that wrap the body the lower one is
/// outside. This attribute above `#[tracing::instrument]` takes the lock inside of the span, below
/// it outside. Of two `#[distributed_lock]` the lower one locks first. With `#[tokio::main]` and
/// `#[tokio::test]` either order will do.
#[cfg(not(fuzzing))]
#[proc_macro_attribute]
pub fn distributed_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::distributed_lock(args.into(), &item.into()).into()
}

/// What `lockattr::assert_held!` expands to; that one says where the runtime is.
#[doc(hidden)]
#[cfg(not(fuzzing))]
#[proc_macro]
pub fn assert_held(input: TokenStream) -> TokenStream {
    assert_held::assert_held(input.into()).into()
}
