//! Lock-order checking: records the order in which locks are acquired inside each other, as
//! FreeBSD's `witness` and Linux's lockdep do in kernels.
//!
//! Two calls that acquire two locks in opposite orders deadlock only if they run at the same time.
//! The two orders reveal it beforehand, even if they occur on different days. So the order is
//! recorded by template and not by key: `order:<id>` inside `product:<id>`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::LockManager;
use crate::hold::chain;
use crate::lock::options::ResolvedOptions;
use crate::lock::site::Site;
use crate::platform::sync::{Mutex, MutexGuard};

/// Two lock orders that may end in a deadlock, with their code locations.
///
/// See [`LockManager::inversions`](crate::LockManager::inversions).
///
/// ```
/// use lockattr::{LockManager, LockOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lockattr::Error> {
/// let manager = LockManager::builder().url("memory://").check_lock_order(true).build()?;
/// let product = LockOptions::new().template("product:<id>");
/// let order = LockOptions::new().template("order:<id>");
///
/// let outer = manager.acquire("product:1", product.clone()).await?;
/// drop(outer.scope(manager.acquire("order:1", order.clone())).await?);
/// drop(outer);
/// let outer = manager.acquire("order:2", order).await?;
/// drop(outer.scope(manager.acquire("product:2", product)).await?);
///
/// let inversions = manager.inversions();
/// assert_eq!(inversions.len(), 1);
/// assert!(inversions[0].to_string().contains("`product:<id>` at "));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LockInversion {
    /// The order seen last, and then the orders that lead back from its inner lock to its outer
    /// one.
    orders: Vec<Nested>,
}

impl LockManager {
    /// Records the order in which this call chain is about to acquire locks inside those that it
    /// holds.
    pub(super) fn check_lock_order(&self, options: &ResolvedOptions, inner: Site) {
        if self.shared.settings.check_lock_order && !options.wait_budget.is_once() {
            let now = Instant::now();
            let around = chain::entries().filter(|entry| {
                let is_ours = Arc::ptr_eq(entry.core(), &self.shared.core);
                is_ours && entry.ensure_held(now).is_ok()
            });
            self.shared.lock_order.record(inner, around.filter_map(|entry| entry.site()));
        }
    }
}

impl LockInversion {
    /// The templates of the cycle, each acquired inside the next, the last inside the first.
    pub fn templates(&self) -> impl Iterator<Item = &'static str> {
        self.orders.iter().map(|order| order.outer.template)
    }
}

/// One sentence: which lock is acquired inside which, where, and what to do.
impl fmt::Display for LockInversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, rest @ ..] = &self.orders[..] else { return Ok(()) };
        if first.outer.template == first.inner.template {
            return write!(
                f,
                "{} is acquired inside {}: two calls that lock two such keys in opposite orders \
                 wait for each other; acquire the keys together with `keys`, or give the inner \
                 lock its own template if the keys always have one order",
                first.inner, first.outer
            );
        }
        write!(
            f,
            "{} is acquired inside {}, and in the opposite order ",
            first.inner, first.outer
        )?;
        for (nth, order) in rest.iter().enumerate() {
            let and = if nth == 0 { "" } else { ", and " };
            write!(f, "{and}{} inside {}", order.inner, order.outer)?;
        }
        f.write_str(
            ": two such calls may wait for each other; acquire these locks in one order, or \
             together with `keys`",
        )
    }
}

#[derive(Clone, Copy, Debug)]
struct Nested {
    outer: Site,
    inner: Site,
}

#[derive(Debug, Default)]
pub(crate) struct LockOrder(Mutex<ObservedOrders>);

#[derive(Debug, Default)]
struct ObservedOrders {
    /// By the template of the outer lock.
    orders: HashMap<&'static str, Vec<Nested>>,
    inversions: Vec<LockInversion>,
}

impl LockOrder {
    /// Records that a call is about to wait for `inner` inside each of these; reports new
    /// inversions.
    pub(crate) fn record(&self, inner: Site, outer: impl IntoIterator<Item = Site>) {
        for outer in outer {
            // After the mutex is unlocked: a subscriber of the event may call `inversions`.
            let inversion = self.observed().insert(Nested { outer, inner });
            if let Some(inversion) = inversion {
                tracing::warn!(lockattr.inversion = %inversion, "locks are acquired in two orders");
            }
        }
    }

    pub(crate) fn inversions(&self) -> Vec<LockInversion> {
        self.observed().inversions.clone()
    }

    fn observed(&self) -> MutexGuard<'_, ObservedOrders> {
        // No code inside can panic half-way.
        self.0.lock()
    }
}

impl ObservedOrders {
    /// Records an order, and returns the inversion that it completes, if any; each only once.
    fn insert(&mut self, new: Nested) -> Option<LockInversion> {
        let known = self.orders.entry(new.outer.template).or_default();
        if known.iter().any(|order| order.inner.template == new.inner.template) {
            return None;
        }
        known.push(new);
        let mut orders = vec![new];
        if new.outer.template != new.inner.template {
            orders.extend(self.path(new.inner.template, new.outer.template)?);
        }
        let inversion = LockInversion { orders };
        self.inversions.push(inversion.clone());
        Some(inversion)
    }

    /// The shortest path of nested orders from one template to another.
    fn path(&self, from: &'static str, to: &str) -> Option<Vec<Nested>> {
        let (mut seen, mut paths) = (HashSet::from([from]), vec![(from, Vec::new())]);
        while !paths.is_empty() {
            let mut longer = Vec::new();
            for (end, path) in paths {
                for order in self.orders.get(end).into_iter().flatten() {
                    let path: Vec<_> = [&path[..], &[*order]].concat();
                    let inner = order.inner.template;
                    if inner == to {
                        return Some(path);
                    }
                    if seen.insert(inner) {
                        longer.push((inner, path));
                    }
                }
            }
            paths = longer;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::{LockOrder, Site};

    #[track_caller]
    fn site(template: &'static str) -> Site {
        Site { template, location: Location::caller() }
    }

    /// The inversions reported after these locks were acquired, each pair as outer and inner.
    fn inversions_of(nested: &[[&'static str; 2]]) -> Vec<String> {
        let order = LockOrder::default();
        for [outer, inner] in nested {
            order.record(site(inner), [site(outer)]);
        }
        order.inversions().iter().map(ToString::to_string).collect()
    }

    /// Red without: `path`.
    #[test]
    fn two_orders_are_notified_once_with_all_places() {
        let inversions = inversions_of(&[["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]]);
        let [inversions] = &inversions[..] else { panic!("{inversions:?}") };
        assert_eq!(inversions.matches("lock_order.rs:").count(), 4, "{inversions}");
        assert!(inversions.starts_with("`a` at "), "{inversions}");
    }

    #[test]
    fn one_order_is_fine_whatever_is_left_out_of_it() {
        assert_eq!(
            inversions_of(&[["a", "b"], ["b", "c"], ["a", "c"], ["a", "d"], ["d", "c"]]),
            [""; 0]
        );
    }

    /// Red without: `longer`.
    #[test]
    fn a_deadlock_of_three_is_found() {
        let inversions = inversions_of(&[["a", "b"], ["b", "c"], ["c", "a"]]);
        assert_eq!(inversions.len(), 1, "{inversions:?}");
        for template in ["`a`", "`b`", "`c`"] {
            assert!(inversions[0].contains(template), "{inversions:?}");
        }
    }

    /// Red without: `new.outer.template != new.inner.template` and its sentence.
    #[test]
    fn two_keys_of_one_template_have_no_order() {
        let inversions = inversions_of(&[["account:<id>", "account:<id>"]]);
        assert!(inversions[0].contains("acquire the keys together with `keys`"), "{inversions:?}");
    }
}
