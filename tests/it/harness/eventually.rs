//! Waiting ends when it is so, or when it is time.

use std::time::Duration;

use lockattr_tests::eventually;

#[tokio::test]
async fn it_asks_until_it_is_so() {
    let mut asked = 0;
    eventually(Duration::from_secs(5), "the fourth time", async || {
        asked += 1;
        asked == 4
    })
    .await;
    assert_eq!(asked, 4);
}

#[tokio::test]
#[should_panic(expected = ":5: not within 30ms: pigs fly")]
async fn it_gives_up_and_says_what_and_where() {
    eventually(Duration::from_millis(30), "pigs fly", async || false).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "not within 3600s: an answer")]
async fn a_look_that_hangs_is_a_no_also_on_a_paused_clock() {
    eventually(Duration::from_secs(3600), "an answer", std::future::pending).await;
}
