//! What several servers have in common with one: a test looks at all of them at its end.

use crate::RedisServer;

/// One server, or several that serve the same clients.
pub trait Servers {
    /// Those that keep data, whether they are up or down.
    fn servers(&self) -> Vec<&RedisServer>;
}

impl Servers for RedisServer {
    fn servers(&self) -> Vec<&RedisServer> {
        vec![self]
    }
}

impl<T: Servers + ?Sized> Servers for &T {
    fn servers(&self) -> Vec<&RedisServer> {
        (**self).servers()
    }
}

/// `127.0.0.1:P1,127.0.0.1:P2,…`, as it stands in the URL of several servers.
pub(crate) fn hosts(servers: &[RedisServer], addr: impl Fn(&RedisServer) -> String) -> String {
    servers.iter().map(addr).collect::<Vec<_>>().join(",")
}
