//! All promises, each with its check. A test of one of them:
//!
//! ```
//! # use lockattr::store::{AnyStore, MemoryStore};
//! # struct OnMyStore;
//! # impl lockattr_contract::Fleet for OnMyStore {
//! #     async fn start() -> Self {
//! #         Self
//! #     }
//! #     fn node(&self) -> AnyStore {
//! #         AnyStore::new(MemoryStore::new())
//! #     }
//! # }
//! use lockattr_contract::promises;
//!
//! promises::a_renewal_never_shortens().check::<OnMyStore>();
//! ```

use crate::checks;
use crate::promise::Promise;

/// Defines a function for each promise of a group.
macro_rules! define {
    ($($list:ident: $group:ident as $constant:ident;)*) => {
        $(crate::$list! { $group __define ($constant) })*

        /// All promises, in the order of the groups.
        ///
        /// ```
        /// let all = lockattr_contract::promises::all();
        /// assert!(all.iter().any(|promise| promise.name() == "a_free_lock_is_acquired"));
        /// ```
        pub fn all() -> Vec<Promise> {
            [$($constant),*].concat()
        }
    };
}

/// The callback of the list that defines the functions.
#[doc(hidden)]
#[macro_export]
macro_rules! __define {
    (($constant:ident) $group:ident $($name:ident [$($need:ident)*] $sentence:literal;)*) => {
        $(
            #[doc = $sentence]
            pub const fn $name() -> Promise {
                Promise {
                    name: stringify!($name),
                    sentence: $sentence,
                    group: stringify!($group),
                    needs: &[$(stringify!($need)),*],
                    check: |subject| Box::pin(checks::$name(subject)),
                }
            }
        )*

        const $constant: &[Promise] = &[$($name()),*];
    };
}

define! {
    __group: lease as LEASE;
    __group: tokens as TOKENS;
    __group: processes as PROCESSES;
    __group: wait_queue as WAIT_QUEUE;
    __group: kept as KEPT;
    __group: shared as SHARED;
    __group: permits as PERMITS;
    __group: several_keys as SEVERAL_KEYS;
    __group: deadlocks as DEADLOCKS;
    __group: listing as LISTING;
    __group: force_release as FORCE_RELEASE;
    __group: companions as COMPANIONS;
    __group: downgrade as DOWNGRADE;
    __group: done as DONE;
    __group: overtaking as OVERTAKING;
    __group: quorum_node as QUORUM_NODE;
    __group: connection_locks as CONNECTION_LOCKS;
    __absent: wait_queue as NO_WAIT_QUEUE;
    __absent: shared as NO_SHARED;
    __absent: permits as NO_PERMITS;
    __absent: several_keys as NO_SEVERAL_KEYS;
    __absent: listing as NO_LISTING;
    __absent: force_release as NO_FORCE_RELEASE;
    __absent: companions as NO_COMPANIONS;
    __absent: downgrade as NO_DOWNGRADE;
    __absent: done as NO_DONE;
}

#[cfg(test)]
mod tests {
    use super::all;

    /// Red without: any of the groups' rows in the crate's docs, or of the abilities'.
    #[test]
    fn the_docs_of_the_crate_have_all_groups_and_abilities() {
        let docs = include_str!("lib.rs");
        let groups = all().into_iter().map(|promise| promise.group()).filter(|it| *it != "absent");
        for group in groups {
            assert!(docs.contains(&format!("//! | `{group}` |")), "{group}");
        }
        for need in all().iter().flat_map(crate::Promise::needs) {
            assert!(docs.contains(&format!(" | `{need}` |\n")), "{need}");
        }
    }

    /// Red without: the full stop of any sentence.
    #[test]
    fn each_promise_is_a_sentence() {
        for promise in all() {
            let sentence = promise.sentence();
            let begins = sentence.starts_with(|first: char| first.is_uppercase() || first == '`');
            assert!(begins && sentence.ends_with('.'), "{}: {sentence}", promise.name());
        }
    }
}
