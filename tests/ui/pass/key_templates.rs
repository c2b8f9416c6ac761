#![deny(warnings)]

use std::collections::HashMap;

use lockattr::{Error, LockManager, distributed_lock};

fn here() -> Result<String, Error> {
    Ok(lockattr::current().unwrap().key().to_owned())
}

#[distributed_lock(key = "plain text, no placeholders")]
async fn plain() -> Result<String, Error> {
    here()
}

#[distributed_lock(key = "a << b >> c > d <<<id>")]
async fn literal_brackets(id: u64) -> Result<String, Error> {
    here()
}

#[distributed_lock(key = "{<tenant>}:{}:{cart}:{{<id>}}")]
async fn braces(tenant: &str, id: u64) -> Result<String, Error> {
    here()
}

#[distributed_lock(key = r#"<names["a>b"]>/<names[r"c"]>/"<'>'>""#)]
async fn quoted(names: &HashMap<&str, u64>) -> Result<String, Error> {
    here()
}

#[distributed_lock(key = "<text.parse::<u64>()?>,<a.max(b)>,<(a < b)>,<{ a + b }>,<-a>,<a as u8>")]
async fn expressions(text: &str, a: i64, b: i64) -> Result<String, Box<dyn std::error::Error>> {
    Ok(here()?)
}

#[distributed_lock(key = "<r#type>:<r#fn.0>:<_hidden>")]
async fn r#match(r#type: u8, r#fn: (u8,), _hidden: u8) -> Result<String, Error> {
    here()
}

#[distributed_lock(key = "größe:<größe>\t<größe>\u{1F512}")]
async fn unicode(größe: &str) -> Result<String, Error> {
    here()
}

#[tokio::test]
async fn compiles_and_runs() {
    let manager = LockManager::connect("memory://").await.unwrap();
    let calls = async {
        assert_eq!(plain().await.unwrap(), "plain text, no placeholders");
        assert_eq!(literal_brackets(7).await.unwrap(), "a < b >> c > d <7");
        assert_eq!(braces("a:{b}", 7).await.unwrap(), "{a%3A%7Bb%7D}:{}:{cart}:{{7}}");
        let names = HashMap::from([("a>b", 1), ("c", 2)]);
        assert_eq!(quoted(&names).await.unwrap(), "1/2/\">\"");
        assert_eq!(expressions("042", 1, 2).await.unwrap(), "42,2,true,3,-1,1");
        assert_eq!(r#match(1, (2,), 3).await.unwrap(), "1:2:3");
        assert_eq!(unicode("m\tü🔒").await.unwrap(), "größe:m%09ü🔒\tm%09ü%F0%9F%94%92🔒");
    };
    manager.scope(calls).await;
}
