//! No password is ever shown: not by the `Debug` output of a manager, its builder, guards and
//! errors, and not by an event at any level, whatever the URL and however it is mistyped.
//!
//! A store with another kind of URL has a row in `never_logged!`, and a [`Form`] that starts its
//! servers.

use std::fmt::{Debug, Display};
use std::time::Duration;

use lockattr::store::RedisStore;
use lockattr::{Error, LockManager, LockOptions};
use lockattr_tests::{
    Cluster, Events, Independents, RedisServer, Sentinels, capture_events_from, eventually,
    in_time, with_query,
};
use tracing::Level;
use url::form_urlencoded::byte_serialize;

use crate::redis::RIGHTS;

/// The text that must never be shown. Only letters and digits, so it is the same in every encoding.
const HALVES: [&str; 2] = ["s3cr3t", "gehe1m"];

/// A password that a URL must encode.
const PASSWORD: &str = "s3cr3t /?#%@:,gehe1m";

/// One way to name a store.
struct Form {
    /// A working URL that contains both halves of [`PASSWORD`], with only the password's own
    /// characters between them.
    url: String,
    /// Stops the servers for good. It keeps them alive until then.
    fall: Box<dyn FnOnce()>,
}

macro_rules! never_logged {
    ($($name:ident: $form:expr),* $(,)?) => {
        $(#[tokio::test]
        async fn $name() {
            is_never_logged($form.await).await;
        })*
    };
}

never_logged! {
    of_the_default_user: default_user(),
    of_another_user: another_user(),
    over_tls: tls(),
    over_a_unix_socket: unix(),
    of_servers_behind_sentinels: behind_sentinels(),
    of_sentinels: sentinels(),
    of_a_quorum: quorum(),
    of_a_cluster: cluster(),
}

async fn default_user() -> Form {
    let server = RedisServer::builder().password(PASSWORD).start().await;
    Form { url: server.url_with("prefix=x:&connections=1"), fall: Box::new(move || server.kill()) }
}

async fn another_user() -> Form {
    let server = RedisServer::builder().user("locker", PASSWORD, RIGHTS).start().await;
    Form { url: server.url_as("locker", PASSWORD), fall: Box::new(move || server.kill()) }
}

async fn tls() -> Form {
    let server = RedisServer::builder().tls().password(PASSWORD).start().await;
    let ca = byte_serialize(server.ca_path().to_str().unwrap().as_bytes()).collect::<String>();
    let url = with_query(&server.tls_url(), &format!("ca={ca}"));
    Form { url, fall: Box::new(move || server.kill()) }
}

async fn unix() -> Form {
    let server = RedisServer::builder().password(PASSWORD).start().await;
    let password = byte_serialize(PASSWORD.as_bytes()).collect::<String>();
    let url = with_query(&server.unix_url(), &format!("user=default&pass={password}&db=1"));
    Form { url, fall: Box::new(move || server.kill()) }
}

async fn sentinels() -> Form {
    let fleet = Sentinels::builder().replicas(1).sentinel_password(PASSWORD).start().await;
    let password = byte_serialize(PASSWORD.as_bytes()).collect::<String>();
    let url = fleet.url_with(&format!("sentinel_pass={password}"));
    Form { url, fall: Box::new(move || drop(fleet)) }
}

async fn behind_sentinels() -> Form {
    let servers = RedisServer::builder().password(PASSWORD);
    let fleet = Sentinels::builder().replicas(1).servers(servers).start().await;
    Form { url: fleet.url(), fall: Box::new(move || drop(fleet)) }
}

async fn cluster() -> Form {
    let servers = RedisServer::builder().password(PASSWORD);
    let cluster = Cluster::builder().servers(servers).start().await;
    Form { url: cluster.url_with("prefix=x:"), fall: Box::new(move || drop(cluster)) }
}

async fn quorum() -> Form {
    let servers = RedisServer::builder().password(PASSWORD);
    let servers = Independents::builder().count(3).servers(servers).start().await;
    let url = servers.url_with("durable=true");
    Form { url, fall: Box::new(move || drop(servers)) }
}

/// Collects all that is shown, and checks that it contains no part of the password.
struct Watch {
    events: Events,
}

impl Watch {
    fn sees(&self, shown: impl Debug) {
        self.reads(&format!("{shown:?} {shown:#?}"));
    }

    fn reads(&self, shown: &str) {
        for half in HALVES {
            assert!(!shown.contains(half), "{shown}");
        }
    }

    /// Checks an error and all its sources.
    fn hears(&self, error: &(dyn std::error::Error + 'static)) {
        self.sees(error);
        self.reads(&(error as &dyn Display).to_string());
        if let Some(source) = error.source() {
            self.hears(source);
        }
    }

    /// Checks what building, connecting and a request show of a URL. Returns whether there was an
    /// error.
    async fn tries(&self, url: &str) -> Result<(), Error> {
        let builder = LockManager::builder().url(url);
        self.sees(&builder);
        let store = RedisStore::open(url);
        match &store {
            Ok(store) => self.sees(store),
            Err(error) => self.hears(error),
        }
        let manager = builder.build().inspect_err(|error| self.hears(error))?;
        self.sees(&manager);
        LockManager::connect(url).await.inspect_err(|error| self.hears(error))?;
        let once = LockOptions::new().retry(0);
        let guard = manager.acquire("a", once).await.inspect_err(|error| self.hears(error))?;
        guard.release().await.inspect_err(|error| self.hears(error))
    }

    fn ends(&self) {
        for event in self.events.all() {
            self.reads(&event.text);
        }
    }
}

/// Red without: `redacted` in `Config::read`, and `SecretUrl`.
async fn is_never_logged(form: Form) {
    let watch = Watch { events: capture_events_from(Level::TRACE) };
    let Form { url, fall } = form;
    let (from, to) = (url.find(HALVES[0]).unwrap(), url.rfind(HALVES[1]).unwrap());

    while_it_works(&watch, &url).await;

    let other = url.replace(HALVES[0], HALVES[1]);
    let refused = watch.tries(&other).await.unwrap_err();
    assert!(matches!(refused, Error::Store { .. }), "another password: {refused:?}");

    for setting in ["color=red", "ttl=10", "ttl=1ms", "connections=0", "cert=/nowhere", "db=x"] {
        let refused = watch.tries(&with_query(&url, setting)).await.unwrap_err();
        assert!(matches!(refused, Error::InvalidOptions(_)), "{setting}: {refused:?}");
    }
    // Characters of the password that a user forgot to encode. The resulting URL may even work.
    for forgotten in ["/", "?", "#", "@", ":", ",", "&", "%", "[", "]", "\\", " ", "\n", "//"] {
        let between = [&url[..from], HALVES[0], forgotten, &url[to..]].concat();
        let _either = builds(&watch, &between);
        let other_scheme = between.replacen("re", "r", 1);
        assert!(matches!(builds(&watch, &other_scheme), Err(Error::InvalidOptions(_))));
    }

    let manager = LockManager::connect(&url).await.unwrap();
    let guard = manager.acquire("a", LockOptions::new()).await.unwrap();
    let brief = LockOptions::new().ttl(Duration::from_millis(500));
    let lost = manager.acquire("b", brief).await.unwrap();
    fall();
    watch.hears(&watch.tries(&url).await.unwrap_err());
    watch.hears(&manager.holder("a").await.unwrap_err());
    watch.hears(&guard.extend(Duration::from_secs(60)).await.unwrap_err());
    watch.hears(&guard.release().await.unwrap_err());
    in_time(lost.lost()).await;
    watch.hears(&lost.ensure_held().unwrap_err());
    watch.sees(&lost);
    drop(lost);
    let notified = async || !watch.events.is_empty();
    eventually("an event reports that the release failed", notified).await;
    watch.ends();
}

async fn while_it_works(watch: &Watch, url: &str) {
    watch.tries(url).await.unwrap();
    let (one, other) =
        (LockManager::connect(url).await.unwrap(), LockManager::connect(url).await.unwrap());
    let guard = one.acquire("a", LockOptions::new()).await.unwrap();
    watch.sees(&guard);
    watch.sees(&*guard);
    watch.sees(guard.fencing_token());
    let holder = other.holder("a").await.unwrap().unwrap();
    watch.sees(&holder);
    watch.reads(&holder.to_string());
    let refused = other.acquire("a", LockOptions::new().retry(0)).await.unwrap_err();
    assert!(matches!(refused, Error::Contended { .. }), "{refused:?}");
    watch.hears(&refused);
    guard.release().await.unwrap();
    one.shutdown().await;
    watch.hears(&one.acquire("a", LockOptions::new()).await.unwrap_err());
    watch.sees(one);
}

/// Checks what building from a URL shows, without a request.
fn builds(watch: &Watch, url: &str) -> Result<(), Error> {
    let builder = LockManager::builder().url(url);
    watch.sees(&builder);
    if let Err(error) = RedisStore::open(url) {
        watch.hears(&error);
    }
    let built = builder.build();
    built.map(|manager| watch.sees(manager)).inspect_err(|error| watch.hears(error))
}
