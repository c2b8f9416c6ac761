//! Tests of `eventually`: it ends when its check holds, or at its limit.

use std::time::Duration;

use lockattr_tests::eventually;

#[tokio::test]
async fn it_repeats_the_check_until_it_holds() {
    let mut checks = 0;
    eventually(Duration::from_secs(5), "the fourth time", async || {
        checks += 1;
        checks == 4
    })
    .await;
    assert_eq!(checks, 4);
}

#[tokio::test]
#[should_panic(expected = ":5: not within 30ms: pigs fly")]
async fn its_panic_names_the_check_and_the_caller() {
    eventually(Duration::from_millis(30), "pigs fly", async || false).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "not within 3600s: a reply")]
async fn a_check_that_hangs_counts_as_false_also_on_a_paused_clock() {
    eventually(Duration::from_secs(3600), "a reply", std::future::pending).await;
}
