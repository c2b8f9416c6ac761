//! `node echo prefix=… times=…`: answers every line with the line itself. The harness' own tests
//! use it.

use std::error::Error;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, stdin, stdout};

use crate::arguments::Arguments;

pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let prefix = arguments.get_or("prefix", String::new())?;
    let times = arguments.get_or("times", 1_usize)?;
    let mut orders = BufReader::new(stdin()).lines();
    while let Some(order) = orders.next_line().await? {
        for _ in 0..times {
            stdout().write_all(format!("{prefix}{order}\n").as_bytes()).await?;
        }
        stdout().flush().await?;
    }
    Ok(())
}
