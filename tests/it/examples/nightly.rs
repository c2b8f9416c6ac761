//! The example `nightly`: one node of three runs the job, and the others name that node.

use lockattr::LockManager;

use super::{Store, count};
use lockattr_tests::force_release;

const PROGRAM: &str = env!("CARGO_BIN_EXE_nightly");

/// Red without: `once_for` in the attribute. The job is over before the second node asks.
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
        store.assert_done().await;
    }
}

impl Store {
    /// Checks that the night outlives the processes as done, and can be reopened.
    async fn assert_done(&self) {
        let url = match self {
            Self::Memory => return,
            Self::Redis(server) => server.url(),
            Self::Postgres { url, .. } => url.clone(),
        };
        let manager = LockManager::connect(url).await.unwrap();
        let key = "nightly:invoices:2026-11-20";
        let holder = manager.holder(key).await.unwrap().expect("for those whose clock is late");
        assert!(holder.done, "{holder}");
        assert!(force_release(&manager, key).await.unwrap());
        self.assert_nothing_left().await;
    }
}
