//! Stores that a program makes with the endpoints of its own client.

use lockattr::Error;
use lockattr::store::{EtcdStore, ServerOptions};
use lockattr_tests::HUNG;
use tonic::transport::Endpoint;

use super::*;

#[tokio::test]
async fn stores_from_endpoints_and_from_a_url_share_their_locks() {
    let etcd = Etcd::shared().await;
    let endpoints = etcd.addrs().into_iter().map(|addr| {
        let endpoint = Endpoint::from_shared(format!("http://{addr}")).expect("an address");
        endpoint.tcp_nodelay(true).http2_keep_alive_interval(Duration::from_secs(5))
    });
    let options = ServerOptions::new().connect_timeout(HUNG).response_timeout(HUNG);
    let store = EtcdStore::from_endpoints(endpoints, options).unwrap();
    let store = store.with_session_timeout(2 * HUNG).unwrap();
    // Longer than a session of twenty seconds allows.
    let ours = LockManager::builder().store(Arc::new(store)).ttl(HUNG).connect().await;
    let (ours, theirs) = (ours.unwrap(), manager(&etcd.url()).await);
    let held = ours.acquire("own client", LockOptions::new()).await.unwrap();
    assert!(theirs.try_acquire("own client", LockOptions::new()).await.unwrap().is_none());
    held.release().await.unwrap();
    let held = theirs.acquire("own client", LockOptions::new()).await.unwrap();
    assert!(ours.try_acquire("own client", LockOptions::new()).await.unwrap().is_none());
    held.release().await.unwrap();
}

#[test]
fn no_endpoint_and_a_wrong_session_timeout_are_refused() {
    let refused = |outcome: Result<EtcdStore, Error>| match outcome {
        Err(Error::InvalidOptions(sentence)) => sentence,
        other => panic!("{other:?}"),
    };
    let sentence = refused(EtcdStore::from_endpoints([], ServerOptions::new()));
    assert!(sentence.contains("`Endpoint`"), "{sentence}");
    let endpoint = Endpoint::from_static("http://h1:2379");
    let store = EtcdStore::from_endpoints([endpoint], ServerOptions::new()).unwrap();
    assert!(format!("{store:?}").contains("h1:2379"), "{store:?}");
    let sentence = refused(store.with_session_timeout(Duration::from_millis(2500)));
    assert!(sentence.contains("`session_timeout`"), "{sentence}");
}

/// Red without: `LONGEST` in `check_session_timeout`: the manager's `build` overflows and panics.
#[test]
fn a_session_of_more_than_a_day_is_refused() {
    let day = Duration::from_secs(24 * 60 * 60);
    for (longer, is_valid) in
        [(day, true), (day + Duration::from_secs(1), false), (Duration::from_secs(u64::MAX), false)]
    {
        let endpoint = Endpoint::from_static("http://h1:2379");
        let store = EtcdStore::from_endpoints([endpoint], ServerOptions::new()).unwrap();
        let built = store
            .with_session_timeout(longer)
            .and_then(|store| LockManager::builder().store(Arc::new(store)).build());
        match built {
            Ok(_) => assert!(is_valid, "{longer:?}"),
            Err(Error::InvalidOptions(sentence)) => {
                assert!(!is_valid && sentence.contains("2s to one day"), "{longer:?}: {sentence}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}
