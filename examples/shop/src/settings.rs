//! The settings from environment variables.

use std::env::{self, VarError};
use std::time::Duration;

pub(crate) struct Settings {
    pub(crate) database: String,
    pub(crate) locks: String,
    pub(crate) listen: String,
    pub(crate) log: String,
    pub(crate) packing: Duration,
}

impl Settings {
    pub(crate) fn from_env() -> Result<Self, String> {
        let database = read("DATABASE_URL")?
            .ok_or("set DATABASE_URL, like postgres://postgres@127.0.0.1/postgres")?;
        let packing = read("SHOP_PACKING")?.unwrap_or_else(|| "20".into());
        let packing = packing.parse().map_err(|_| "SHOP_PACKING is a number of milliseconds")?;
        Ok(Self {
            locks: read("LOCKATTR_URL")?.unwrap_or_else(|| database.clone()),
            database,
            listen: read("SHOP_LISTEN")?.unwrap_or_else(|| "127.0.0.1:3000".into()),
            log: read("SHOP_LOG")?.unwrap_or_else(|| "info".into()),
            packing: Duration::from_millis(packing),
        })
    }
}

fn read(name: &str) -> Result<Option<String>, String> {
    match env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("{name} is not UTF-8")),
    }
}
