//! `node server`: starts a Redis, prints its process id and its socket, and keeps running. The
//! harness tests its leash with it.

use std::error::Error;

use lockattr_tests::RedisServer;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let server = RedisServer::start().await;
    let text = format!("{} {}\n", server.pid(), server.unix_path().display());
    stdout().write_all(text.as_bytes()).await?;
    stdout().flush().await?;
    BufReader::new(stdin()).lines().next_line().await?;
    Ok(())
}
