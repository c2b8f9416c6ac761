//! The attribute of `lockattr`. Depend on that crate; this one only knows the names of its items.

mod args;
mod duration;
mod expand;
mod future_shape;
mod key;
mod key_template;
mod locked_fn;
mod mistakes;
mod options;
mod params;
mod suggest;
mod tokio_entry;
mod valid;
mod value;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Runs the body of an `async fn` only while this call holds a distributed lock, as in
/// `#[distributed_lock(key = "product:<id>", ttl = "10s", retry = 10)]`.
///
/// It goes on free functions and on methods, in an `impl` or a trait, generic or not; on the
/// methods of `#[async_trait]`; on functions that return a boxed future or an `impl Future`.
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
/// | `retry_delay` | `"100ms"` | 100 ms | longest pause between two attempts; who stands in line is handed the lock at once |
/// | `wait` | `"3s"` | 10 s | deadline for acquiring; with `retry` too, whichever ends first; `"0s"` asks once |
/// | `renew` | `false` | `true` | renew the lease while the body runs; without, its end is the body's deadline |
/// | `max_hold` | `"5m"` | – | longest time to hold the lock, however often it is renewed; then it is lost |
/// | `hold_at_least` | `"1m"` | – | shortest time that the lock stays taken: after a shorter body, until this has passed |
/// | `on_busy` | `skip`, `return(Ok(0))` | `error` | still held by another after the last attempt |
/// | `on_lost` | `error`, `ignore` | `cancel` | the lease is lost while the body runs |
/// | `on_unavailable` | `run_unlocked` | `error` | the store could not be asked |
/// | `reentrant` | `false` | `true` | a nested call with the same key enters again |
/// | `mode` | `shared` | `exclusive` | a read/write lock: many `shared` holders or one `exclusive` |
/// | `permits` | `3`, `self.slots` | – | a semaphore: at most this many holders, a `u32` from 1 on |
/// | `release` | `background` | `await` | return as soon as the release is sent |
/// | `when` | `quantity > 0` | `true` | `false`: run without taking the lock |
/// | `manager` | `&self.locks`, `"orders"` | the default | a `&LockManager`, or the name one was installed under |
/// | `lease` | `lease` | – | a name under which the body has its `&Lease` |
/// | `crate` | `::my_crate::lockattr` | `::lockattr` | where a re-export of the runtime lives |
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
/// other for ever.
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
/// where `renew = false`.
///
/// **`mode`** and **`permits`** cannot stand together. All who lock one key should say the same of
/// it: `shared` readers and `exclusive` writers, or one number of `permits`.
///
/// **`lease`** cannot stand beside `when` or `on_unavailable = run_unlocked`, where there may be no
/// lease; `lockattr::current()` asks for it there.
///
/// # Return type
///
/// A refusal needs room: any `Result<_, E>` with `E: From<lockattr::Error>`, under any name, or
/// else `on_busy = skip`.
///
/// # Beside other attributes
///
/// Attributes are expanded from the top, so that of two that wrap the body the lower one is
/// outside. This attribute above `#[tracing::instrument]` takes the lock inside of the span, below
/// it outside. Of two `#[distributed_lock]` the lower one locks first. With `#[tokio::main]` and
/// `#[tokio::test]` either order will do.
#[proc_macro_attribute]
pub fn distributed_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    expand::distributed_lock(args.into(), &item.into()).into()
}
