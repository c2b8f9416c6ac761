//! Logins that need TLS: a client's certificate, a bound password, and direct negotiation.

use super::*;

#[tokio::test]
async fn a_server_that_demands_a_client_certificate_gets_it() {
    let (server, other) = (PostgresServer::with_tls().await, PostgresServer::with_tls().await);
    server.run("create role certified login superuser").await;
    server.admit("hostssl all certified 127.0.0.1/32 cert").await;
    let as_certified = |query: &str| {
        let query = format!("{query}&{}", trusting(&server));
        url(&server, query.trim_start_matches('&')).replace("lockattr@", "certified@")
    };
    let with_files_of = |it: &PostgresServer, cert: &str, key: &str| {
        let (cert_path, key_path) = it.client_paths();
        as_certified(&format!("{cert}={}&{key}={}", cert_path.display(), key_path.display()))
    };
    let without = refused(&as_certified("")).await;
    assert!(without.contains("valid client certificate"), "{without}");
    let of_other = refused(&with_files_of(&other, "sslcert", "sslkey")).await;
    assert!(of_other.contains("localhost") && of_other.contains("alert"), "{of_other}");
    for (cert, key) in [("sslcert", "sslkey"), ("client_cert", "client_key")] {
        assert!(is_encrypted(&server, &with_files_of(&server, cert, key)).await);
    }
    let (cert, key) = server.client_paths();
    let by_builder = LockManager::builder().url(as_certified("")).client_cert(cert).client_key(key);
    acquire(&by_builder.connect().await.unwrap(), "a").await.release().await.unwrap();
}

/// The server compares the hash of its certificate with the one that the client has seen.
#[tokio::test]
async fn a_password_can_be_bound_to_the_connection() {
    let server = PostgresServer::with_tls().await;
    server.run("create role bound login superuser password 's3cret'").await;
    server.admit("host all bound 127.0.0.1/32 scram-sha-256").await;
    let as_bound = |query: &str| {
        let query = format!("channel_binding=require&{query}");
        url(&server, &query).replace("lockattr@", "bound:s3cret@")
    };
    for certificate in [ServerCertificate::Localhost, ServerCertificate::LocalhostSha384] {
        server.present(certificate).await;
        assert!(is_encrypted(&server, &as_bound(&trusting(&server))).await, "{certificate:?}");
    }
    let plain = refused(&as_bound("sslmode=disable")).await;
    assert!(plain.contains("channel binding") && !plain.contains("s3cret"), "{plain}");
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "the log must say what was skipped")]
async fn tls_can_begin_without_the_servers_consent() {
    let server = PostgresServer::with_tls().await;
    let direct = url(&server, &format!("sslnegotiation=direct&{}", trusting(&server)));
    let version = "select current_setting('server_version_num')::int";
    let version: i32 = server.client().await.query_one(version, &[]).await.unwrap().get(0);
    if version >= 170_000 {
        assert!(is_encrypted(&server, &direct).await);
        return;
    }
    eprintln!("the server {version} is older than 17: only its refusal is tested");
    let sentence = refused(&direct).await;
    assert!(sentence.contains("PostgreSQL 17 or later"), "{sentence}");
}
