//! The shop's log and its metrics.

use serde_json::Value;

use crate::customer::{count, get, order};
use crate::running::{Servers, line};

#[tokio::test]
async fn each_log_line_is_json_and_lock_events_are_inside_their_request_span() {
    let servers = Servers::start().await;
    let url = servers.redis.url();
    let variables = [("LOCKATTR_URL", url.as_str()), ("SHOP_LOG", "info,lockattr=debug")];
    let mut shop = servers.shop_with(0, &variables).await;
    count(&shop.address, 7, 20).await;
    order(&shop.address, 7).await;
    let mut said: Vec<Value> = Vec::new();
    while said.last().is_none_or(|last| last["message"] != "order taken") {
        said.push(line(&shop.process.line().await));
    }
    let of =
        |message: &str| said.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    let (acquired, released) = (of("lock acquired"), of("lock released"));
    assert_eq!((acquired.len(), released.len()), (2, 2), "{said:#?}");
    for (lock, method) in acquired.iter().chain(&released).zip(["PUT", "POST", "PUT", "POST"]) {
        assert_eq!(lock["lockattr.key"], "product:7", "{lock:#}");
        assert_eq!(lock["lockattr.template"], "product:<product>", "{lock:#}");
        assert_eq!(lock["spans"][0]["name"], "request", "{lock:#}");
        assert_eq!(lock["spans"][0]["method"], method, "{lock:#}");
        assert_eq!(lock["spans"][1]["name"], "lock", "{lock:#}");
    }
    assert_eq!(acquired[1]["lockattr.fencing_token"], released[1]["lockattr.fencing_token"]);
    let taken = of("order taken")[0];
    assert_eq!(taken["fence"], acquired[1]["lockattr.fencing_token"], "{taken:#}");
}

/// Red without: the template as the label, instead of the key.
#[tokio::test]
async fn metrics_count_by_template_and_never_by_key() {
    let servers = Servers::start().await;
    let shop = servers.shop(0).await;
    for product in [7, 8] {
        count(&shop.address, product, 20).await;
        order(&shop.address, product).await;
    }
    let metrics = get(&shop.address, "/metrics").await;
    assert_eq!(metrics.status, 200);
    let of = r#"manager="default",store="redis""#;
    let labels = format!(r#"{{{of},template="product:<product>",outcome="acquired"}}"#);
    let there = |words: &str| {
        assert!(metrics.text.lines().any(|line| line == words), "{words}\n{}", metrics.text);
    };
    there(&format!("lockattr_acquisitions_total{labels} 4"));
    there(&format!("lockattr_wait_duration_seconds_count{labels} 4"));
    there("# TYPE lockattr_wait_duration_seconds histogram");
    there("# TYPE lockattr_hold_duration_seconds histogram");
    there(&format!(r#"lockattr_held{{{of},template="product:<product>"}} 0"#));
    there(&format!(r#"lockattr_waiting{{{of},template="product:<product>"}} 0"#));
    there(&format!(r#"lockattr_releases_total{{{of},outcome="released"}} 4"#));
    assert!(!metrics.text.contains("product:7"), "{}", metrics.text);
}
