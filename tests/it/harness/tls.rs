//! Tests of TLS with the test's own authority: to one server, to several, and between them.

use std::fs::read;

use lockattr_tests::{Cluster, Independents, RedisServer, Sentinels};
use redis::{Client, ClientTlsConfig, RedisResult, TlsCertificates};

/// Pings the server over TLS, with or without a client certificate.
async fn ping(server: &RedisServer, with_certificate: bool) -> RedisResult<String> {
    let client_tls = with_certificate.then(|| ClientTlsConfig {
        client_cert: read(server.client_cert_path()).unwrap(),
        client_key: read(server.client_key_path()).unwrap(),
    });
    let root_cert = Some(read(server.ca_path()).unwrap());
    let client =
        Client::build_with_tls(server.tls_url(), TlsCertificates { client_tls, root_cert });
    let mut connection = super::connect(&client?).await?;
    redis::cmd("PING").query_async(&mut connection).await
}

#[tokio::test]
async fn a_server_may_want_to_see_a_certificate() {
    let server = RedisServer::builder().tls_clients().start().await;
    assert_eq!(ping(&server, true).await.as_deref(), Ok("PONG"));
    assert!(ping(&server, false).await.is_err());
}

#[tokio::test]
async fn independent_servers_share_an_authority() {
    let servers = Independents::builder().count(2).tls().start().await;
    assert_eq!(ping(servers.node(1), false).await.as_deref(), Ok("PONG"));
    let cas = servers.nodes().iter().map(|node| read(node.ca_path()).unwrap());
    assert_eq!(cas.collect::<std::collections::BTreeSet<_>>().len(), 1);
}

#[tokio::test]
async fn sentinels_name_the_port_that_speaks_tls() {
    let sentinels = Sentinels::builder().replicas(1).tls().start().await;
    let master = sentinels.master().await;
    assert_eq!(ping(master, false).await.as_deref(), Ok("PONG"));
    let cli = sentinels.sentinels()[0].cli().await;
    let named: (String, String) =
        cli.query(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "lockattr"]).await;
    assert_eq!(format!("{}:{}", named.0, named.1), master.tls_addr());
    master.kill();
    sentinels.failed_over(master).await;
}

#[tokio::test]
async fn a_cluster_names_to_each_client_the_port_that_it_speaks() {
    let cluster = Cluster::builder().tls().start().await;
    let master = cluster.node_of("foo").await;
    assert_eq!(ping(master, false).await.as_deref(), Ok("PONG"));
    let other = cluster.node_of("bar").await.cli().await;
    let error = other.try_query::<()>(&["GET", "foo"]).await.unwrap_err();
    assert_eq!(error.redirect_node().map(|(addr, _)| addr), Some(master.addr().as_str()));
}
