//! Certificates that are refused, and why.

use super::*;

#[tokio::test]
async fn a_certificate_for_another_host_is_refused_and_the_chain_alone_is_not() {
    let server = PostgresServer::presenting(ServerCertificate::OtherHost).await;
    let ca = trusting(&server);
    let sentence = refused(&url(&server, &format!("sslmode=verify-full&{ca}"))).await;
    let expected = "the certificate of localhost is for another host (";
    assert!(sentence.contains(expected) && sentence.contains("db.example"), "{sentence}");
    assert!(is_encrypted(&server, &url(&server, &format!("sslmode=verify-ca&{ca}"))).await);

    // The name to verify is that of `host`, wherever `hostaddr` leads.
    let by_address = url(&server, &format!("sslmode=verify-full&hostaddr=127.0.0.1&{ca}"));
    assert!(is_encrypted(&server, &by_address.replace("localhost", "db.example")).await);
    assert!(refused(&by_address).await.contains("is for another host"));
}

#[tokio::test]
async fn an_address_without_a_name_is_verified_as_an_address() {
    let server = PostgresServer::with_tls().await;
    let full = format!("sslmode=verify-full&hostaddr=127.0.0.1&{}", trusting(&server));
    let bare = url(&server, &full);
    let port = server.addr().rsplit(':').next().unwrap().to_owned();
    let bare = bare.replace(&format!("lockattr@localhost:{port}"), "");
    let bare = with_query(&bare, &format!("user=lockattr&port={port}"));
    assert!(is_encrypted(&server, &bare).await);
    server.present(ServerCertificate::OtherHost).await;
    assert!(refused(&bare).await.contains("the certificate of 127.0.0.1 is for another host"));
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let (server, other) = (PostgresServer::with_tls().await, PostgresServer::with_tls().await);
    let other = trusting(&other);
    for query in [
        &format!("sslmode=require&{other}"),
        &format!("sslmode=verify-ca&{other}"),
        &format!("sslmode=verify-full&{other}"),
        "sslmode=verify-full",
        "sslrootcert=system",
    ] {
        let sentence = refused(&url(&server, query)).await;
        let expected = "the certificate of localhost is signed by an unknown authority";
        assert!(sentence.contains(expected) && sentence.contains("`ca`"), "{query}: {sentence}");
    }
    assert!(is_encrypted(&server, &url(&server, "sslmode=require")).await);
}

#[tokio::test]
async fn an_expired_certificate_is_refused() {
    let server = PostgresServer::presenting(ServerCertificate::Expired).await;
    let ca = trusting(&server);
    for mode in ["verify-ca", "verify-full"] {
        let sentence = refused(&url(&server, &format!("sslmode={mode}&{ca}"))).await;
        assert!(sentence.contains("the certificate of localhost has expired ("), "{sentence}");
    }
    assert!(is_encrypted(&server, &url(&server, "sslmode=require")).await);
}
