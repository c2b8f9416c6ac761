//! The same tests in memory, where two managers over one store act as two processes.

use std::sync::Arc;

use lockattr::store::MemoryStore;

use super::*;

fn managers() -> [LockManager; 2] {
    let store = Arc::new(MemoryStore::new());
    [(); 2].map(|()| LockManager::builder().store(store.clone()).build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn callers_whose_wait_ends_together_are_all_contended() {
    let [first, next] = managers();
    crowd::all_are_contended(&first, &next, "a", || {}).await;
    assert_eq!(first.held_locks().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn readers_of_one_process_enter_together_when_the_writer_has_gone() {
    let [first, next] = managers();
    let queued = eventually("a reader is queued", async || {
        first.held_locks().await.unwrap().iter().any(|held| held.waiting > 0)
    });
    let writer = first.acquire("a", LockOptions::new()).await.unwrap();
    crowd::readers_enter_together(writer, &next, "a", queued).await;
    assert_eq!(first.held_locks().await.unwrap(), []);
}
