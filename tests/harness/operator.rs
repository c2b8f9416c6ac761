//! An operator, who takes a lock from the holder that it has just seen.

use lockattr::{Error, HolderId, LockManager};

/// Takes the lock from its holder. A store that cannot tell the holder is asked all the same.
pub async fn force_release(manager: &LockManager, key: &str) -> Result<bool, Error> {
    let id = manager.holder(key).await.ok().flatten().map_or(HolderId::default(), |it| it.id);
    manager.force_release(key, id).await
}
