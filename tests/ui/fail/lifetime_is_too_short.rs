use std::pin::Pin;

use lockattr::{Error, distributed_lock};

#[distributed_lock(key = "word")]
fn plain<'a>(_: &'a str, word: &str) -> Result<&'a str, Error> {
    Ok(word)
}

#[distributed_lock(key = "word")]
async fn returned<'a>(_: &'a str, word: &str) -> Result<&'a str, Error> {
    Ok(word)
}

#[distributed_lock(key = "word")]
fn boxed<'a>(_: &'a str, word: &str) -> Pin<Box<dyn Future<Output = Result<&'a str, Error>> + 'a>> {
    Box::pin(async move { Ok(word) })
}

fn main() {}
