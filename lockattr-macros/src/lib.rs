//! The attribute of `lockattr`. Depend on that crate; this one only knows the names of its items.

mod args;
#[cfg(not(fuzzing))]
mod assert_held;
mod async_trait;
mod duration;
mod expand;
mod future_shape;
#[cfg(fuzzing)]
pub mod fuzzing;
mod impl_block;
mod key;
mod key_template;
mod lazy_output;
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
/// It applies to free functions and methods, in an `impl` or a trait, generic or not; to the
/// methods of `#[async_trait]`; to functions that return a boxed future or an `impl Future`; to
/// [plain functions](#plain-functions) and to functions that return a [stream](#streams). Over an
/// [`impl` block](#impl-blocks) it sets common options for the functions inside. The lock is
/// acquired before the body starts and released however the body ends. Every mistake is a compile
/// error at the word that causes it, and all mistakes of one attribute are reported at once.
///
/// # Options
///
/// | option | for example | default | meaning |
/// |---|---|---|---|
/// | `key` | `"product:<id>"`, `order.key()` | this or `keys` | what to lock: a template, or any expression that is `Display` |
/// | `keys` | `["account:<from>", "account:<to>"]` | – | several keys, all or none; equal ones count once |
/// | `ttl` | `"10s"`, `"1m30s"`, `self.ttl` | 10 s | length of the lease: how long a crashed holder keeps other callers out. 10 ms to 30 days |
/// | `retry` | `10` | – | retries after the first attempt, a `u32` |
/// | `retry_delay` | `"100ms"` | 100 ms | longest pause between two attempts; a queued waiter gets a released lock at once |
/// | `wait` | `"3s"` | 10 s | deadline for acquiring; with `retry` too, whichever ends first; `"0s"` asks once |
/// | `renew` | `false` | `true` | renew the lease while the body runs; if `false`, its end is the body's deadline |
/// | `max_hold` | `"5m"` | – | longest time to hold the lock, including renewals; then it is lost |
/// | `hold_at_least` | `"1m"` | – | shortest time that the lock stays held, even if the body is shorter |
/// | `once_per` | `"22h"` | – | if the body ends `Ok`, the key is done until this time after its acquisition, in the whole fleet |
/// | `once_for` | `"<date>"` | – | the same for each value, which is added to the key |
/// | `share_result` | `true` | `false` | callers that wait while the body runs get its `Ok` value; needs the feature `share` |
/// | `lead` | `true` | `false` | the function leads: its body runs once for each [term](#leaders), and the call returns only when a body returns |
/// | `progress_within` | `"30s"` | – | longest time without a report of progress; then the lock is lost |
/// | `on_busy` | `skip`, `return(Ok(0))` | `error` | another holder still has the lock after the last attempt, or the key is done |
/// | `on_lost` | `error`, `ignore` | `cancel`; in a plain function `error` | the lease is lost while the body runs |
/// | `on_unavailable` | `run_unlocked` | `error` | the store could not be reached |
/// | `reentrant` | `false` | `true` | a nested call with the same key re-enters the hold |
/// | `mode` | `shared` | `exclusive` | a read/write lock: many `shared` holders or one `exclusive` |
/// | `permits` | `3`, `self.slots` | – | a semaphore: at most this many holders, a `u32` from 1 on |
/// | `release` | `background` | `await` | return as soon as the release is sent |
/// | `when` | `quantity > 0` | `true` | `false`: run without taking the lock |
/// | `manager` | `&self.locks`, `"orders"` | the default | a `&LockManager`, or the name one was installed under |
/// | `lease` | `lease` | – | the name of the `&Lease` in the body; of the `Lease` in a [stream](#streams) |
/// | `term` | `term` | – | the name of the `&Term` in the body of a leader |
/// | `crate` | `::my_crate::lockattr` | `::lockattr` | where a re-export of the runtime lives |
/// | `defaults(…)` | `defaults(ttl = "30s")` | – | any of these options, if they are not set otherwise: for [your own attributes](#an-attribute-of-ones-own) |
///
/// Durations are strings, read at compile time to the nanosecond, or expressions of type
/// `Duration`. Expressions are evaluated once, before the lock is requested, and may use the
/// parameters; the one in `return(…)` is evaluated only if needed.
///
/// **`key`**: a string is a template. `<` and `>` enclose an expression over the parameters that is
/// `Display`. It is taken by reference, and its value is escaped, so that different arguments never
/// yield the same key. `<<` is a literal `<`, and braces are literal text. The placeholder ends at
/// the first `>` up to which it is an expression: `<user.get::<u64>()>` is one. Any other
/// expression, including a string in parentheses, is the key as it is.
///
/// **`keys`**: a list in brackets, each element written as for `key`. All callers acquire the keys
/// in the same order, so two calls that name them in different orders cannot deadlock.
///
/// **`on_busy`**: `skip` needs a function that returns `()`, `Option<T>` or `Result<Option<T>, E>`,
/// and returns `()`, `None` or `Ok(None)`; `return(…)` returns a value of the function's own return
/// type, and may consume the parameters.
///
/// **`on_lost`**: `cancel` drops the body at its next await point and returns `Error::Lost`,
/// `error` lets it finish and returns `Error::Lost`, `ignore` lets it finish and returns its value.
///
/// **`hold_at_least`**: for work that must not be repeated soon, however it ended; for a job that runs once
/// in a period, use `once_per`. A node whose clock is late finds the lock held, however short the job was. At most `max_hold`, and at most `ttl` if
/// `renew = false`. It counts from the first line of the body.
///
/// **`once_per`**: the period counts from the acquisition, by the store's clock. `Ok` of a `Result` makes the
/// key done, and so does the end of a function that returns `()` or an `Option`. A body that failed,
/// panicked, was dropped, lost its lease or took longer than the period leaves the key free. At most 366 days. A call that finds the
/// key done is treated as `on_busy` says; as an error it is `Error::Done`. **`once_for`** is a template
/// or an expression like `key`. `:` and its value are added to the key, which is then done for
/// `once_per`, or for 366 days.
///
/// **`share_result`**: the function is an `async fn` that returns a `Result<T, E>`, with `T: Serialize +
/// DeserializeOwned`. The key has to name everything on which the result depends. Callers that come
/// after the body has ended run it anew. Only calls of one function with the same generic arguments share,
/// also that of `Self`.
///
/// **`progress_within`**: the body calls `progress()` on its term, or `report_progress()` on its lease.
/// At least `ttl`, and for exclusive locks.
///
/// **`when`**: if it is false, nothing else of the attribute is evaluated, so a key may be
/// `<items[0]>` with `when = !items.is_empty()`.
///
/// **`mode`** and **`permits`** exclude each other. All callers that lock a key should use the same
/// kind: `shared` readers and `exclusive` writers, or one number of `permits`.
///
/// **`lease`** cannot be combined with `when` or `on_unavailable = run_unlocked`, where there may
/// be no lease; use `lockattr::current()` there.
///
/// # The body
///
/// The body begins only while the lease is valid, whatever `on_lost` says. If the lease ends
/// between the grant and the first line, the lock is acquired again within the wait budget of the
/// call; otherwise the call returns `Error::Lost`, and the body does not begin.
///
/// The body owns the arguments, even those that it does not mention: they are dropped in Rust's
/// order, and then the lock is released. Two exceptions are dropped after the release: what `..`
/// leaves out of a parameter's pattern if the attribute names a part of it, and what a pattern
/// leaves out if `#[tracing::instrument]` is below, which records the parameters by name.
///
/// # Return type
///
/// The return type has to be able to express a refusal: any `Result<_, E>` with `E:
/// From<lockattr::Error>`, under any name, or otherwise `on_busy = skip`. A value that the call
/// only makes and that runs later would run without the lock, and is a mistake: a future, a stream or
/// an iterator, written as `impl` or `dyn`, also in a `Result`, an `Option`, a `Vec` or a tuple.
///
/// # Plain functions
///
/// A `fn` that is not `async` waits for its lock on the calling thread, and its body runs there: it
/// may borrow local data, and nothing has to be `Send`. Requests to the store and renewals run on a
/// thread that the manager starts with the first such call. So the lease is kept however long the
/// body computes, and no tokio runtime is needed around it.
///
/// Plain code cannot be cancelled, so `on_lost = cancel` is a mistake there: unless `ignore` is
/// set, a lost lease is returned as `Error::Lost` after the body. A long body should call
/// `ensure_held()` on `lockattr::current()` from time to time.
///
/// In an async program, call it in `tokio::task::spawn_blocking`. On a thread that runs tasks it
/// returns `Error::InvalidOptions` if it would have to wait; a nested call that re-enters its
/// chain's hold does not wait, and may be called anywhere. `lockattr::inherit_blocking` carries the
/// chain into `spawn_blocking`.
///
/// `#[track_caller]` is a mistake there: lockattr calls the body.
///
/// A function counts as plain if its return type is not *written* as a future or a stream: `impl
/// Future`, `Pin<Box<dyn Future>>`, `BoxFuture` or `LocalBoxFuture`, as in the crate `futures`. Any
/// other name counts as a type of its own (`MyBoxFuture` too), whose value is made under the lock but
/// does not run under it. If it is an alias of a boxed future, the compiler asks to write it out.
///
/// # Streams
///
/// A `fn` that returns `impl Stream<Item = …>`, `Pin<Box<dyn Stream<Item = …>>>`, `BoxStream` or
/// `LocalBoxStream` acquires its lock when the stream is first polled, builds the stream then,
/// and holds the lock until the stream has ended or is dropped. The items are `Result<_, E>` with
/// `E: From<lockattr::Error>`. A refusal is the only item; a lost lease is the next and last item
/// (`cancel`), or follows the last item (`error`), or is not reported (`ignore`). With `on_busy =
/// skip` a busy stream is empty, and the items may have any type; `return(…)` is another stream of
/// such items. Calls made while the stream is polled, or while its values are dropped, are nested
/// in it; what its consumer does between two items is not.
///
/// The body has ended before the stream that it makes is polled. So `lease = name` is an owned
/// `Lease` there and not a reference: move it into the stream, and clone it if the stream needs it
/// more than once.
///
/// # Leaders
///
/// With `lead = true`, a call of an `async fn` campaigns for the lock without an end. Its body runs while
/// this process leads, is dropped at its next await point when it no longer does, and runs again in the
/// next term. The call returns when a body returns, or `Error::ShutDown` at the end of the manager.
///
/// Each term gets a clone of the arguments, so they are `Clone`, and a method takes `&self`. `max_hold` is
/// the longest term. `LockManager::lead` describes the rest.
///
/// ```ignore
/// #[distributed_lock(key = "scheduler", lead = true, progress_within = "30s", term = term)]
/// async fn schedule(&self) -> Result<(), Error> {
///     loop {
///         if let Err(error) = self.run_due_jobs(term.number()).await {
///             tracing::error!(%error, "a job failed"); // a body that returns ends the campaign
///         }
///         term.progress();
///     }
/// }
/// ```
///
/// # `impl` blocks
///
/// Over an `impl` block the attribute itself locks nothing. Its options are the defaults of the
/// functions inside that have the attribute too. An option of such a function overrides the
/// block's, and its own `key` or `keys` replaces the block's. Functions without the attribute are
/// unchanged.
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
/// `defaults(…)` takes options that apply unless they are set elsewhere. An attribute with your own
/// defaults is a function in a `proc-macro` crate (`examples/house` in the repository is one):
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
/// Attributes are expanded from the top, so if two of them wrap the body, the lower one is outside.
/// This attribute above `#[tracing::instrument]` acquires the lock inside the span, below it
/// outside. Of two `#[distributed_lock]` the lower one locks first. With `#[tokio::main]` and
/// `#[tokio::test]` either order works.
#[cfg(not(fuzzing))]
#[proc_macro_attribute]
pub fn distributed_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::distributed_lock(args.into(), &item.into()).into()
}

/// The expansion of `lockattr::assert_held!`, which passes the path of the runtime.
#[doc(hidden)]
#[cfg(not(fuzzing))]
#[proc_macro]
pub fn assert_held(input: TokenStream) -> TokenStream {
    assert_held::assert_held(input.into()).into()
}
