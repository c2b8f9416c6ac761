//! Fencing tokens over HTTP: a service refuses the late request of a former holder of the lock.
//!
//! The client sends its token in the header `Lock-Fencing-Token`. The service keeps the greatest one
//! with each document, and answers 409 to a smaller one, and 428 to a request without one. The service
//! knows nothing of locks, and needs no part of lockattr.
//!
//! ```text
//! cargo run --example fenced_http
//! cargo test -p lockattr-examples --example fenced_http
//! ```
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use lockattr::{FencingToken, LockManager, LockOptions};
use reqwest::Client;
use tokio::net::TcpListener;

type Anything = Box<dyn Error + Send + Sync>;

const HEADER: &str = "Lock-Fencing-Token";

/// A document, and the greatest token that has written it. A real service stores both together, in one
/// transaction.
#[derive(Default)]
struct Document {
    token: u64,
    text: String,
}

type Documents = Arc<Mutex<HashMap<String, Document>>>;

/// The service.
fn service() -> Router {
    Router::new().route("/documents/{name}", get(show).put(store)).with_state(Documents::default())
}

async fn show(
    State(documents): State<Documents>,
    Path(name): Path<String>,
) -> Result<String, StatusCode> {
    let documents = documents.lock().unwrap_or_else(PoisonError::into_inner);
    documents.get(&name).map(|it| it.text.clone()).ok_or(StatusCode::NOT_FOUND)
}

async fn store(
    State(documents): State<Documents>,
    Path(name): Path<String>,
    headers: HeaderMap,
    text: String,
) -> Result<StatusCode, (StatusCode, String)> {
    let Some(sent) = headers.get(HEADER) else {
        let why = format!("a write needs the header {HEADER}");
        return Err((StatusCode::PRECONDITION_REQUIRED, why));
    };
    let token: u64 = sent.to_str().ok().and_then(|sent| sent.parse().ok()).ok_or_else(|| {
        (StatusCode::BAD_REQUEST, format!("the header {HEADER} has to be a number"))
    })?;
    // Compares and writes without a gap in between.
    let mut documents = documents.lock().unwrap_or_else(PoisonError::into_inner);
    let document = documents.entry(name).or_default();
    if token < document.token {
        let last = document.token;
        return Err((
            StatusCode::CONFLICT,
            format!("token {token} is too old: {last} has written"),
        ));
    }
    // The same token may write again: the holder may repeat a request without an answer.
    *document = Document { token, text };
    Ok(StatusCode::NO_CONTENT)
}

/// Sends a write under `token`. Returns whether the service accepted it.
async fn write(
    client: &Client,
    url: &str,
    token: FencingToken,
    text: &str,
) -> Result<bool, Anything> {
    let request = client.put(url).header(HEADER, token.get()).body(text.to_owned());
    let answer = request.send().await?;
    if answer.status().as_u16() == StatusCode::CONFLICT.as_u16() {
        // This holder has lost the lock. Repeating the request would not help.
        return Ok(false);
    }
    answer.error_for_status()?;
    Ok(true)
}

/// Starts the service on a free port.
async fn serve() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, service()).await });
    Ok(addr)
}

#[tokio::main]
async fn main() -> Result<(), Anything> {
    let store = std::env::var("LOCKATTR_URL").unwrap_or_else(|_| "memory://".into());
    let manager = LockManager::connect(&store).await?;
    let url = format!("http://{}/documents/plan", serve().await?);
    let client = Client::new();

    let former = manager.acquire("document:plan", LockOptions::new()).await?;
    // The holder stops for longer than its lease lasts; here an operator takes the lock.
    if let Some(seen) = manager.holder("document:plan").await? {
        manager.force_release("document:plan", &seen).await?;
    }
    let holder = manager.acquire("document:plan", LockOptions::new()).await?;
    if !write(&client, &url, holder.fencing_token(), "by the holder").await? {
        return Err("the service refused the holder".into());
    }
    // The former holder continues, and does not know yet.
    match write(&client, &url, former.fencing_token(), "too late").await? {
        true => println!("the late write was accepted"),
        false => println!("the late write was REFUSED: 409"),
    }
    println!("the plan: {}", client.get(&url).send().await?.text().await?);
    holder.release().await?;
    manager.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u64) -> FencingToken {
        FencingToken::try_from(number).unwrap()
    }

    #[tokio::test]
    async fn a_smaller_token_is_refused_and_the_document_stays() {
        let url = format!("http://{}/documents/plan", serve().await.unwrap());
        let client = Client::new();
        for (number, text, accepted) in
            [(5, "first", true), (5, "again", true), (7, "next", true), (6, "late", false)]
        {
            assert_eq!(
                write(&client, &url, token(number), text).await.unwrap(),
                accepted,
                "{text}"
            );
        }
        let text = client.get(&url).send().await.unwrap().text().await.unwrap();
        assert_eq!(text, "next");
        // Each document has its own greatest token.
        let other = url.replace("plan", "other");
        assert!(write(&client, &other, token(1), "first").await.unwrap());
    }

    #[tokio::test]
    async fn a_request_without_a_number_is_refused() {
        let url = format!("http://{}/documents/plan", serve().await.unwrap());
        let client = Client::new();
        let forgot = client.put(&url).body("text").send().await.unwrap();
        assert_eq!(forgot.status().as_u16(), 428);
        assert!(forgot.text().await.unwrap().contains(HEADER));
        for sent in ["", "-1", "five", "99999999999999999999"] {
            let answer = client.put(&url).header(HEADER, sent).body("text").send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 400, "{sent}");
        }
        assert_eq!(client.get(&url).send().await.unwrap().status().as_u16(), 404);
    }

    #[tokio::test]
    async fn the_former_holder_of_a_lock_is_refused() {
        let url = format!("http://{}/documents/plan", serve().await.unwrap());
        let (manager, client) = (LockManager::connect("memory://").await.unwrap(), Client::new());
        let former = manager.acquire("plan", LockOptions::new()).await.unwrap();
        assert!(write(&client, &url, former.fencing_token(), "first").await.unwrap());
        let seen = manager.holder("plan").await.unwrap().expect("it is held");
        assert!(manager.force_release("plan", &seen).await.unwrap());
        let holder = manager.acquire("plan", LockOptions::new()).await.unwrap();
        assert!(write(&client, &url, holder.fencing_token(), "next").await.unwrap());
        assert!(!write(&client, &url, former.fencing_token(), "late").await.unwrap());
    }
}
