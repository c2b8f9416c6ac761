//! A URL for one server that leads to a node of a cluster, which keeps only a part of the keys.

use redis::aio::MultiplexedConnection;
use redis::{ConnectionAddr, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};

use super::config::Server;

/// In two slots, so that no cluster has both for one command.
const KEYS: [&str; 2] = ["lockattr:{a}", "lockattr:{b}"];

/// Asks the server for keys that the nodes of a cluster refuse to read together.
pub(super) async fn is_one(connection: &mut MultiplexedConnection) -> RedisResult<bool> {
    match redis::cmd("EXISTS").arg(&KEYS).query_async::<Value>(connection).await {
        Err(error) if is_shown_by(&error) => Ok(true),
        Err(error) if error.is_timeout() || error.is_unrecoverable_error() => Err(error),
        _ => Ok(false),
    }
}

/// Whether only such a node replies with this error.
pub(super) fn is_shown_by(error: &RedisError) -> bool {
    let kinds = [
        ServerErrorKind::CrossSlot,
        ServerErrorKind::Moved,
        ServerErrorKind::Ask,
        ServerErrorKind::ClusterDown,
    ];
    kinds.map(ErrorKind::Server).contains(&error.kind())
}

/// What to write instead.
pub(super) fn advice(server: &Server) -> String {
    let in_brackets =
        |host: &str| if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let address = match server {
        Server::Fixed(endpoint) => match endpoint.addr() {
            ConnectionAddr::Tcp(host, port) => format!("{}:{port}", in_brackets(host)),
            ConnectionAddr::TcpTls { host, port, .. } => {
                format!("{}:{port}/?tls=true", in_brackets(host))
            }
            _ => "host:port".to_owned(),
        },
        Server::Found(_) => "host:port".to_owned(),
    };
    format!(
        "this server is a node of a cluster: write `redis+cluster://{address}`, with the hosts of \
         more nodes if you can, or use `RedisStore::from_cluster`"
    )
}
