//! The URL chooses the store and configures the manager: the only module that names the engines.

use url::Url;

use crate::Error;
#[cfg(feature = "postgres")]
use crate::engines::postgres;
use crate::lock::settings::Settings;
#[cfg(feature = "etcd")]
use crate::store::EtcdStore;
#[cfg(feature = "mysql")]
use crate::store::MysqlStore;
#[cfg(feature = "zookeeper")]
use crate::store::ZookeeperStore;
use crate::store::url::{StoreUrl, unknown_setting};
use crate::store::{AnyStore, MemoryStore};
#[cfg(feature = "redis")]
use crate::store::{RedisStore, RedlockStore};

/// Opens the store that `text` names, without contacting it, and writes the query's settings to
/// `settings`.
pub(crate) fn open(text: &str, settings: &mut Settings) -> Result<AnyStore, Error> {
    let StoreUrl { urls, query } = StoreUrl::parse(text)?;
    let mut rest = Vec::new();
    for (name, value) in query {
        if !settings.set(&name, &value)? {
            rest.push((name, value));
        }
    }
    match urls[0].scheme() {
        "memory" => memory(&urls[0], &rest),
        scheme @ "rediss" if cfg!(all(feature = "redis", not(feature = "tls"))) => {
            Err(missing_feature(scheme, "tls"))
        }
        #[cfg(feature = "redis")]
        "redis" | "redis+unix" | "rediss" | "redis+sentinel" | "redis+cluster" => {
            let store = RedisStore::at(urls, &rest, settings.server.clone())?;
            Ok(AnyStore::new(store))
        }
        #[cfg(feature = "redis")]
        "redlock" => Ok(AnyStore::new(RedlockStore::at(urls, rest, &settings.server)?)),
        #[cfg(feature = "zookeeper")]
        "zookeeper" => Ok(AnyStore::new(ZookeeperStore::at(&urls, &rest, &settings.server)?)),
        #[cfg(not(feature = "zookeeper"))]
        scheme @ "zookeeper" => Err(missing_feature(scheme, "zookeeper")),
        #[cfg(feature = "etcd")]
        "etcd" => Ok(AnyStore::new(EtcdStore::at(&urls, &rest, settings.server.clone())?)),
        #[cfg(not(feature = "etcd"))]
        scheme @ "etcd" => Err(missing_feature(scheme, "etcd")),
        #[cfg(not(feature = "redis"))]
        scheme @ ("redis" | "redis+unix" | "rediss" | "redis+sentinel" | "redis+cluster"
        | "redlock") => Err(missing_feature(scheme, "redis")),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => postgres::open(&urls, rest, settings.server.clone()),
        #[cfg(not(feature = "postgres"))]
        scheme @ ("postgres" | "postgresql") => Err(missing_feature(scheme, "postgres")),
        #[cfg(feature = "mysql")]
        "mysql" => Ok(AnyStore::new(MysqlStore::at(urls, &rest, settings.server.clone())?)),
        #[cfg(not(feature = "mysql"))]
        scheme @ "mysql" => Err(missing_feature(scheme, "mysql")),
        other => Err(Error::InvalidOptions(format!(
            "no store is called `{other}://`: there are `memory://`, `redis://`, `rediss://`, \
             `redis+unix://`, `redis+sentinel://`, `redis+cluster://`, `redlock://`, \
             `postgres://`, `mysql://`, `zookeeper://` and `etcd://`"
        ))),
    }
}

fn memory(url: &Url, rest: &[(String, String)]) -> Result<AnyStore, Error> {
    if url.has_host() || !matches!(url.path(), "" | "/") {
        return Err(Error::InvalidOptions("`memory://` has neither host nor path".into()));
    }
    match rest.first() {
        Some((name, _)) => Err(unknown_setting(rest, name, "")),
        None => Ok(AnyStore::new(MemoryStore::new())),
    }
}

fn missing_feature(scheme: &str, feature: &str) -> Error {
    Error::InvalidOptions(format!(
        "`{scheme}://` needs lockattr's feature `{feature}`: add it in Cargo.toml"
    ))
}
