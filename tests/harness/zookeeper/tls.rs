//! What a server needs to serve clients with TLS.

use super::jar;
use crate::Certificates;
use crate::port::Port;

/// Jars of Netty that the server's own jar does not list, from the same Debian packages.
const NETTY: [&str; 2] = ["/usr/share/java/netty-codec.jar", "/usr/share/java/netty-resolver.jar"];

/// Returns the jars of a server, separated as Java wants them.
pub(super) fn class_path() -> String {
    [&*jar(), NETTY[0], NETTY[1]].join(":")
}

/// Returns the lines of `zoo.cfg`. Only the connections that Netty serves can have TLS.
pub(super) fn settings(port: &Port, certificates: &Certificates) -> String {
    let auth = if certificates.demands_client() { "need" } else { "none" };
    format!(
        "secureClientPort={port}\nsecureClientPortAddress=127.0.0.1\n\
         serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
         ssl.clientAuth={auth}\nssl.protocol=TLSv1.3\nssl.enabledProtocols=TLSv1.3,TLSv1.2\n\
         ssl.keyStore.type=PEM\nssl.keyStore.location={}\n\
         ssl.trustStore.type=PEM\nssl.trustStore.location={}\n",
        certificates.server_with_key().display(),
        certificates.ca().display(),
    )
}
