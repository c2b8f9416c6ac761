//! Tests of `eventually` and `in_time`: they end when what they wait for happens, or when it never does.

use lockattr_tests::{eventually, in_time};

#[tokio::test]
async fn it_repeats_the_check_until_it_holds() {
    let mut checks = 0;
    eventually("the fourth time", async || {
        checks += 1;
        checks == 4
    })
    .await;
    assert_eq!(checks, 4);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = ":5: not within 120s: pigs fly")]
async fn its_panic_names_the_check_and_the_caller() {
    eventually("pigs fly", async || false).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "not within 120s: a reply")]
async fn a_check_that_hangs_counts_as_false_also_on_a_paused_clock() {
    eventually("a reply", std::future::pending).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = ":5: not within 120s")]
async fn a_future_that_hangs_is_named_by_its_caller() {
    in_time(std::future::pending::<()>()).await;
}
