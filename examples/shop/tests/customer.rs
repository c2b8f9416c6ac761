//! An HTTP client of the shop: one request, one answer.

use lockattr_tests::in_time;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Seconds.
    pub(crate) retry_after: Option<u64>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The error code in a rejection.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) async fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path, "").await
}

/// Sets the stock of a product.
pub(crate) async fn count(address: &str, product: i64, quantity: i32) -> Answer {
    let body = json!({ "quantity": quantity }).to_string();
    loop {
        let answer = ask(address, "PUT", &format!("/products/{product}"), &body).await;
        if answer.retry_after.is_none() {
            return answer;
        }
    }
}

/// Orders one piece once.
pub(crate) async fn try_order(address: &str, product: i64) -> Answer {
    let body = json!({ "quantity": 1 }).to_string();
    ask(address, "POST", &format!("/products/{product}/orders"), &body).await
}

/// Orders one piece, and tries again as long as the shop asks for that: on a busy machine, the two seconds that it waits for a
/// lock may be over.
pub(crate) async fn order(address: &str, product: i64) -> Answer {
    loop {
        let answer = try_order(address, product).await;
        if answer.retry_after.is_none() {
            return answer;
        }
    }
}

async fn ask(address: &str, method: &str, path: &str, body: &str) -> Answer {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = in_time(exchange).await;
    let answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
    let (head, text) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let retry_after = lines.find_map(|line| line.strip_prefix("retry-after: ")?.parse().ok());
    Answer { status: status.expect("a status"), retry_after, text: text.to_owned() }
}
