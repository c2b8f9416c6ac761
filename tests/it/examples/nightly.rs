//! The example `nightly`: one node of three runs the job, and the others name that node.

use lockattr_tests::{Cli, assert_nothing_left_within};

use super::{SOON, Store, count};

const PROGRAM: &str = env!("CARGO_BIN_EXE_nightly");

/// Red without: `hold_at_least` in the attribute. The job is over before the second node asks.
#[tokio::test]
async fn the_nightly_job_runs_on_one_node_of_three_and_the_others_name_it() {
    for store in Store::all().await {
        let said = store.run(PROGRAM).await;
        assert_eq!(said.len(), 5, "{said:#?}");
        assert_eq!(said[0], "02:00 on 3 nodes");
        assert_eq!(count(&said, &["1200 invoices sent"]), 1, "{said:#?}");
        let ran = said[1].split(':').next().unwrap();
        assert_eq!(said[1], format!("{ran}: sends the invoices of 2026-11-20"));
        let named = format!("this night is that of {ran} on ");
        assert_eq!(count(&said, &[&named, "nightly::send_invoices"]), 2, "{said:#?}");
        store.assert_kept_and_then_nothing_left().await;
    }
}

impl Store {
    /// Checks that the lock outlives the processes and then expires.
    async fn assert_kept_and_then_nothing_left(&self) {
        let Self::Redis(server) = self else { return self.assert_nothing_left().await };
        let cli: Cli = server.cli().await;
        let night = "lock:nightly:invoices:2026-11-20";
        assert_eq!(cli.keys("lock:*").await, [night], "for those whose clock is late");
        assert_nothing_left_within(server, SOON).await;
    }
}
