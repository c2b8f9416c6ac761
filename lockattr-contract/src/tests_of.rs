//! The macro that makes a test of each promise.

/// Makes a test of each promise of [`Store`](lockattr::store::Store).
///
/// It expands into `#[test]` functions, so call it in a module of a test program. Its first argument
/// is the [`Fleet`](crate::Fleet).
///
/// ```
/// # use std::sync::Arc;
/// # use lockattr::store::{AnyStore, MemoryStore};
/// # struct OnMyStore(Arc<MemoryStore>);
/// # impl lockattr_contract::Fleet for OnMyStore {
/// #     async fn start() -> Self {
/// #         Self(Arc::new(MemoryStore::new()))
/// #     }
/// #     fn node(&self) -> AnyStore {
/// #         self.0.clone().into()
/// #     }
/// # }
/// mod all {
///     lockattr_contract::store_contract!(super::OnMyStore);
/// }
///
/// mod what_it_has {
///     lockattr_contract::store_contract!(super::OnMyStore, without: {
///         wait_queue: "no process of it can notify another",
///         companions: "only of use with a wait queue",
///     });
/// }
/// ```
///
/// `without` names the optional abilities that the store does not have, each with the reason. The
/// promises that need them become ignored tests, which cargo lists with that reason. In their place
/// comes a test that the store says what it does not have: a store without shared locks has to
/// [refuse](lockattr::store::Store::refuses_claim) a shared claim, for example. The
/// [crate's docs](crate) list the abilities.
///
/// Two more forms choose promises by hand:
///
/// ```
/// # use std::sync::Arc;
/// # use lockattr::store::{AnyStore, MemoryStore};
/// # struct OnMyStore(Arc<MemoryStore>);
/// # impl lockattr_contract::Fleet for OnMyStore {
/// #     async fn start() -> Self {
/// #         Self(Arc::new(MemoryStore::new()))
/// #     }
/// #     fn node(&self) -> AnyStore {
/// #         self.0.clone().into()
/// #     }
/// # }
/// mod as_a_node_of_a_quorum {
///     lockattr_contract::store_contract!(super::OnMyStore, group: quorum_node);
/// }
///
/// mod at_first {
///     lockattr_contract::store_contract!(super::OnMyStore, only: [
///         a_free_lock_is_acquired,
///         a_released_lock_is_free,
///     ]);
/// }
/// ```
#[macro_export]
macro_rules! store_contract {
    ($fleet:ty $(,)?) => {
        $crate::store_contract!($fleet, without: {});
    };
    ($fleet:ty, without: { $($ability:ident: $why:literal),* $(,)? } $(,)?) => {
        $crate::__whole! { ($fleet, [$($ability: $why,)*]) }
        $($crate::__absent! { $ability __tests ($fleet, []) })*
    };
    ($fleet:ty, group: $group:ident $(,)?) => {
        $crate::__group! { $group __tests ($fleet, []) }
    };
    ($fleet:ty, only: [$($name:ident),* $(,)?] $(,)?) => {
        $($crate::__test! { $fleet, $name, [], [], [] })*
    };
}

/// All groups that a store keeps unless it leaves an ability out.
#[doc(hidden)]
#[macro_export]
macro_rules! __whole {
    ($arguments:tt) => {
        $crate::__group! { lease __tests $arguments }
        $crate::__group! { tokens __tests $arguments }
        $crate::__group! { processes __tests $arguments }
        $crate::__group! { wait_queue __tests $arguments }
        $crate::__group! { kept __tests $arguments }
        $crate::__group! { shared __tests $arguments }
        $crate::__group! { permits __tests $arguments }
        $crate::__group! { several_keys __tests $arguments }
        $crate::__group! { deadlocks __tests $arguments }
        $crate::__group! { listing __tests $arguments }
        $crate::__group! { force_release __tests $arguments }
        $crate::__group! { companions __tests $arguments }
        $crate::__group! { downgrade __tests $arguments }
        $crate::__group! { done __tests $arguments }
    };
}

/// A test of each promise of a group.
#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    (($fleet:ty, $without:tt) $group:ident $($name:ident $needs:tt $sentence:literal;)*) => {
        $($crate::__test! { $fleet, $name, $needs, $without, $without })*
    };
}

/// One test. It compares the first ability that the promise needs with those that are left out, one
/// by one, and then goes on with the next.
#[doc(hidden)]
#[macro_export]
macro_rules! __test {
    ($fleet:ty, $name:ident, [], $left:tt, $without:tt) => {
        #[test]
        fn $name() {
            $crate::promises::$name().check::<$fleet>();
        }
    };
    ($fleet:ty, $name:ident, [$need:ident $($needs:ident)*], [], $without:tt) => {
        $crate::__test! { $fleet, $name, [$($needs)*], $without, $without }
    };
    ($fleet:ty, $name:ident, [wait_queue $($needs:ident)*], [wait_queue: $why:literal, $($left:tt)*], $without:tt) => {
        $crate::__left_out! { $fleet, $name, $why }
    };
    ($fleet:ty, $name:ident, [shared $($needs:ident)*], [shared: $why:literal, $($left:tt)*], $without:tt) => {
        $crate::__left_out! { $fleet, $name, $why }
    };
    ($fleet:ty, $name:ident, [permits $($needs:ident)*], [permits: $why:literal, $($left:tt)*], $without:tt) => {
        $crate::__left_out! { $fleet, $name, $why }
    };
    ($fleet:ty, $name:ident, [several_keys $($needs:ident)*], [several_keys: $why:literal, $($left:tt)*], $without:tt) => {
        $crate::__left_out! { $fleet, $name, $why }
    };
    ($fleet:ty, $name:ident, [listing $($needs:ident)*], [listing: $why:literal, $($left:tt)*], $without:tt) => {
        $crate::__left_out! { $fleet, $name, $why }
    };
    ($fleet:ty, $name:ident, [force_release $($needs:ident)*], [force_release: $why:literal, $($left:tt)*], $without:tt) => {
        $crate::__left_out! { $fleet, $name, $why }
    };
    ($fleet:ty, $name:ident, [companions $($needs:ident)*], [companions: $why:literal, $($left:tt)*], $without:tt) => {
        $crate::__left_out! { $fleet, $name, $why }
    };
    ($fleet:ty, $name:ident, [downgrade $($needs:ident)*], [downgrade: $why:literal, $($left:tt)*], $without:tt) => {
        $crate::__left_out! { $fleet, $name, $why }
    };
    ($fleet:ty, $name:ident, [done $($needs:ident)*], [done: $why:literal, $($left:tt)*], $without:tt) => {
        $crate::__left_out! { $fleet, $name, $why }
    };
    ($fleet:ty, $name:ident, $needs:tt, [$other:ident: $why:literal, $($left:tt)*], $without:tt) => {
        $crate::__test! { $fleet, $name, $needs, [$($left)*], $without }
    };
}

/// A promise that the store does not make. The test can be run by hand, with `--ignored`.
#[doc(hidden)]
#[macro_export]
macro_rules! __left_out {
    ($fleet:ty, $name:ident, $why:literal) => {
        #[test]
        #[ignore = $why]
        fn $name() {
            $crate::promises::$name().check::<$fleet>();
        }
    };
}
