//! The engines that keep locks, each in a folder of its own. All of them implement
//! [`Store`](crate::store::Store).

#[cfg(any(feature = "redis", feature = "postgres", feature = "mysql"))]
mod contended;
#[cfg(any(all(feature = "mysql", unix), all(feature = "postgres", feature = "tls")))]
mod der;
#[cfg(any(
    feature = "redis",
    feature = "postgres",
    feature = "mysql",
    feature = "zookeeper",
    feature = "etcd"
))]
#[cfg_attr(
    not(all(feature = "redis", feature = "postgres", feature = "mysql", feature = "tls")),
    allow(dead_code, unused_imports, reason = "each engine uses a part of it")
)]
mod dial;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub mod fence;
#[cfg(fuzzing)]
pub mod fuzzing;
pub(crate) mod memory;
#[cfg(feature = "mysql")]
pub(crate) mod mysql;
#[cfg(any(
    feature = "redis",
    feature = "postgres",
    feature = "mysql",
    feature = "zookeeper",
    feature = "etcd"
))]
mod plaintext;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "redis")]
pub(crate) mod redis;
pub(crate) mod redlock;
#[cfg(any(all(feature = "mysql", unix), all(feature = "zookeeper", feature = "tls")))]
mod relay;
#[cfg(any(feature = "zookeeper", feature = "etcd"))]
mod sequenced;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod sql;
#[cfg(any(
    feature = "redis",
    feature = "postgres",
    feature = "mysql",
    feature = "zookeeper",
    feature = "etcd"
))]
#[cfg_attr(
    not(all(
        feature = "redis",
        feature = "postgres",
        feature = "zookeeper",
        feature = "etcd",
        feature = "tls"
    )),
    allow(dead_code, unused_imports, reason = "each engine uses a part of it")
)]
mod tls;
#[cfg(any(feature = "redis", feature = "postgres"))]
mod unproven;
#[cfg(feature = "zookeeper")]
pub(crate) mod zookeeper;
