//! The example `scheduler`: one node of three leads, and each of the others when the leader before it has stopped.

use std::collections::BTreeMap;

use super::{Store, count};

const PROGRAM: &str = env!("CARGO_BIN_EXE_scheduler");

/// Red without: `lead = true` in the attribute.
#[tokio::test]
async fn each_node_leads_in_a_term_of_its_own_and_starts_all_jobs_of_that_term() {
    for store in Store::all().await {
        let said = store.run(PROGRAM).await;
        assert_eq!(said.len(), 15, "{said:#?}");
        assert_eq!(count(&said, &["stops, and"]), 3, "{said:#?}");
        let mut jobs = BTreeMap::<u64, Vec<&str>>::new();
        for line in said.iter().filter(|line| !line.contains("stops")) {
            let (line, term) = line.split_once(" term ").unwrap();
            jobs.entry(term.parse().unwrap()).or_default().push(line);
        }
        assert_eq!(jobs.len(), 3, "{said:#?}");
        let mut led = Vec::new();
        for lines in jobs.values() {
            let node = lines[0].split(':').next().unwrap();
            let job = |job| format!("{node}: starts job {job} of");
            assert_eq!(*lines, [format!("{node}: leads in"), job(1), job(2), job(3)]);
            led.push(node);
        }
        led.sort_unstable();
        assert_eq!(led, ["node-1", "node-2", "node-3"]);
        store.assert_nothing_left().await;
    }
}
