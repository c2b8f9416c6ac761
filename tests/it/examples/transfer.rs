//! The example `transfer`: with the locks no cent is lost or gained, and no process waits forever.

use super::{Store, count};

/// Red without: the attribute on `transfer`, or one of its two keys.
#[tokio::test]
async fn transfers_in_both_directions_conserve_the_money() {
    for store in Store::all().await {
        let said = store.run(env!("CARGO_BIN_EXE_transfer")).await;
        assert_eq!(said[0], "4 × 50 transfers between 5 accounts", "{said:#?}");
        let exact = "with the lock: 50000 cents before, 50000 after: exact";
        assert_eq!(count(&said, &[exact]), 1, "{said:#?}");
        assert_eq!(count(&said, &["without the lock: 50000 cents before, "]), 1, "{said:#?}");
        store.assert_nothing_left().await;
    }
}
