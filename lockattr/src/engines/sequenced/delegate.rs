//! The `Store` implementation that the public stores over an ensemble share.

/// Implements `Store` for a store by the [`SequencedStore`](super::SequencedStore) in its field
/// `store`.
macro_rules! sequenced_store {
    ($store:ty) => {
        impl $crate::store::Store for $store {
            async fn acquire(
                &self,
                request: &$crate::store::AcquireRequest,
            ) -> Result<$crate::store::AcquireOutcome, $crate::store::StoreError> {
                self.store.acquire(request).await
            }

            fn subscribe(&self, subscriber: &std::sync::Arc<$crate::store::Subscriber>) {
                self.store.subscribe(subscriber);
            }

            async fn renew(
                &self,
                renewals: &[$crate::store::RenewRequest],
            ) -> Vec<Result<$crate::store::RenewOutcome, $crate::store::StoreError>> {
                self.store.renew(renewals).await
            }

            async fn release(
                &self,
                releases: &[$crate::store::ReleaseRequest],
            ) -> Vec<Result<$crate::store::ReleaseOutcome, $crate::store::StoreError>> {
                self.store.release(releases).await
            }

            async fn holder(
                &self,
                key: &$crate::store::LockKey,
            ) -> Result<Option<$crate::Holder>, $crate::store::StoreError> {
                self.store.holder(key).await
            }

            async fn held_locks(
                &self,
                prefix: &str,
            ) -> Result<Vec<$crate::HeldLock>, $crate::store::StoreError> {
                self.store.held_locks(prefix).await
            }

            async fn list_held_locks(
                &self,
                prefix: &str,
            ) -> Result<$crate::HeldLocks, $crate::store::StoreError> {
                self.store.list_held_locks(prefix).await
            }

            async fn force_release(
                &self,
                key: &$crate::store::LockKey,
                holder: &$crate::HolderId,
            ) -> Result<bool, $crate::store::StoreError> {
                self.store.force_release(key, holder).await
            }

            async fn ping(&self) -> Result<(), $crate::store::StoreError> {
                self.store.ping().await
            }

            fn address(&self) -> Option<String> {
                Some(self.config.address.clone())
            }

            fn notes_departures(&self) -> bool {
                self.store.notes_departures()
            }

            fn entry_lifetime(&self, ttl: std::time::Duration) -> std::time::Duration {
                self.store.entry_lifetime(ttl)
            }

            fn longest_ttl(&self) -> std::time::Duration {
                self.store.longest_ttl()
            }

            fn refuses_done(&self) -> Option<String> {
                self.store.refuses_done()
            }

            fn refuses_claim(&self, claim: &$crate::store::Claim) -> Option<String> {
                self.store.refuses_claim(claim)
            }
        }
    };
}
pub(crate) use sequenced_store;
