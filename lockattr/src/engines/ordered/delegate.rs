//! What the public stores over an ensemble have in common.

/// Makes a store's `Store` that of the [`OrderedStore`](super::OrderedStore) in its field `store`.
macro_rules! ordered_store {
    ($store:ty) => {
        impl $crate::store::Store for $store {
            fn acquire<'a>(
                &'a self,
                asked: &'a $crate::store::AcquireRequest,
            ) -> $crate::store::StoreFuture<
                'a,
                Result<$crate::store::AcquireOutcome, $crate::store::StoreError>,
            > {
                self.store.acquire(asked)
            }

            fn subscribe(&self, subscriber: &std::sync::Arc<$crate::store::Subscriber>) {
                self.store.subscribe(subscriber);
            }

            fn renew<'a>(
                &'a self,
                renewals: &'a [$crate::store::RenewRequest],
            ) -> $crate::store::StoreFuture<
                'a,
                Vec<Result<$crate::store::RenewOutcome, $crate::store::StoreError>>,
            > {
                self.store.renew(renewals)
            }

            fn release<'a>(
                &'a self,
                releases: &'a [$crate::store::ReleaseRequest],
            ) -> $crate::store::StoreFuture<
                'a,
                Vec<Result<$crate::store::ReleaseOutcome, $crate::store::StoreError>>,
            > {
                self.store.release(releases)
            }

            fn holder<'a>(
                &'a self,
                key: &'a $crate::store::LockKey,
            ) -> $crate::store::StoreFuture<
                'a,
                Result<Option<$crate::Holder>, $crate::store::StoreError>,
            > {
                self.store.holder(key)
            }

            fn held_locks<'a>(
                &'a self,
                prefix: &'a str,
            ) -> $crate::store::StoreFuture<
                'a,
                Result<Vec<$crate::HeldLock>, $crate::store::StoreError>,
            > {
                self.store.held_locks(prefix)
            }

            fn force_release<'a>(
                &'a self,
                key: &'a $crate::store::LockKey,
            ) -> $crate::store::StoreFuture<'a, Result<bool, $crate::store::StoreError>> {
                self.store.force_release(key)
            }

            fn ping(
                &self,
            ) -> $crate::store::StoreFuture<'_, Result<(), $crate::store::StoreError>> {
                self.store.ping()
            }

            fn answered_since(
                &self,
                key: &$crate::store::LockKey,
                since: tokio::time::Instant,
            ) -> bool {
                self.store.answered_since(key, since)
            }

            fn entry_lifetime(&self, ttl: std::time::Duration) -> std::time::Duration {
                self.store.entry_lifetime(ttl)
            }

            fn longest_ttl(&self) -> std::time::Duration {
                self.store.longest_ttl()
            }

            fn refuses_claim(&self, claim: &$crate::store::Claim) -> Option<String> {
                self.store.refuses_claim(claim)
            }
        }
    };
}
pub(crate) use ordered_store;
