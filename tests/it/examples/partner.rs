//! The example `partner`: the whole fleet respects the partner's limit.

use super::{Store, count};

/// Red without: `permits` in the attribute. The rate needs `hold_at_least`.
#[tokio::test]
async fn the_partner_refuses_no_request_made_under_a_permit() {
    for store in Store::all().await {
        let said = store.run(env!("CARGO_BIN_EXE_partner")).await;
        // It would have refused a fourth at once.
        let words = ["with permits: 24 calls, ", " at once, 0 refused, "];
        assert_eq!(count(&said, &words), 1, "{said:#?}");
        assert_eq!(count(&said, &["without permits: 24 calls, "]), 1, "{said:#?}");
        // Eight calls use each permit, and each of the first seven keeps it for 100 ms.
        let last = said.last().and_then(|line| line.split(", ").last());
        let took = last.and_then(|took| took.strip_suffix(" ms")?.parse::<u32>().ok());
        assert!(took.is_some_and(|took| took >= 600), "{said:#?}");
        store.assert_nothing_left().await;
    }
}
