#![deny(warnings)]

use lockattr::{Error, LockManager, distributed_lock};

#[distributed_lock(key = "words:<word>")]
async fn longer<'text, 'word: 'text>(
    text: &'text mut &'word str,
    word: &'word str,
) -> Result<&'text str, Error> {
    assert_eq!(lockattr::current().unwrap().key(), "words:longest");
    if word.len() > text.len() {
        *text = word;
    }
    Ok(text)
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let mut text = "long";
    let word = String::from("longest");
    assert_eq!(manager.scope(longer(&mut text, &word)).await.unwrap(), "longest");
    assert_eq!(text, "longest");
}
