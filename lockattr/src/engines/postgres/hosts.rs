//! The hosts of a configuration, each as a configuration of its own, so that each is connected to in its own time.

use rand::seq::SliceRandom;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts};

/// libpq's default.
const PORT: u16 = 5432;

/// One host.
pub(super) struct OneHost {
    /// Without the address, if the host is a name.
    pub(super) config: Config,
    /// A name that has to be looked up, and the port.
    pub(super) name: Option<(String, u16)>,
}

/// The hosts, in the order in which they are tried.
pub(super) fn of(server: &Config) -> Vec<OneHost> {
    let (hosts, addresses) = (server.get_hosts(), server.get_hostaddrs());
    let mut order: Vec<_> = (0..hosts.len().max(addresses.len())).collect();
    if server.get_load_balance_hosts() == LoadBalanceHosts::Random {
        order.shuffle(&mut rand::rng());
    }
    let one = |index: usize| {
        let mut config = without_hosts(server);
        let ports = server.get_ports();
        let port = ports.get(index).or(ports.first()).copied().unwrap_or(PORT);
        config.port(port);
        let mut name = None;
        match hosts.get(index) {
            Some(Host::Tcp(host)) => {
                config.host(host);
                name = Some((host.clone(), port));
            }
            #[cfg(unix)]
            Some(Host::Unix(path)) => {
                config.host_path(path);
            }
            None => {}
        }
        if let Some(address) = addresses.get(index) {
            config.hostaddr(*address);
            name = None;
        }
        OneHost { config, name }
    };
    order.into_iter().map(one).collect()
}

/// All other settings. The client has no way to take a host away.
fn without_hosts(server: &Config) -> Config {
    let mut config = Config::new();
    config
        .ssl_mode(server.get_ssl_mode())
        .ssl_negotiation(server.get_ssl_negotiation())
        .channel_binding(server.get_channel_binding())
        .target_session_attrs(server.get_target_session_attrs())
        .keepalives(server.get_keepalives())
        .keepalives_idle(server.get_keepalives_idle());
    if let Some(user) = server.get_user() {
        config.user(user);
    }
    if let Some(password) = server.get_password() {
        config.password(password);
    }
    if let Some(name) = server.get_dbname() {
        config.dbname(name);
    }
    if let Some(options) = server.get_options() {
        config.options(options);
    }
    if let Some(name) = server.get_application_name() {
        config.application_name(name);
    }
    if let Some(limit) = server.get_connect_timeout() {
        config.connect_timeout(*limit);
    }
    if let Some(limit) = server.get_tcp_user_timeout() {
        config.tcp_user_timeout(*limit);
    }
    if let Some(interval) = server.get_keepalives_interval() {
        config.keepalives_interval(interval);
    }
    if let Some(retries) = server.get_keepalives_retries() {
        config.keepalives_retries(retries);
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a release of the client adds must be copied too.
    #[test]
    fn a_host_of_its_own_keeps_all_other_settings() {
        let text = "host=a user=u password=p dbname=d options=o application_name=n sslmode=require \
                    sslnegotiation=direct connect_timeout=3 tcp_user_timeout=4 keepalives=0 \
                    keepalives_idle=5 keepalives_interval=6 keepalives_retries=7 port=1 \
                    target_session_attrs=read-write channel_binding=require";
        let server: Config = text.parse().unwrap();
        let [one] = <[_; 1]>::try_from(of(&server)).ok().unwrap();
        assert_eq!(one.config, server);
        assert_eq!(one.name, Some(("a".into(), 1)));
    }

    #[test]
    fn each_host_has_its_port_and_its_address() {
        let server: Config = "host=a,b port=1,2 hostaddr=10.0.0.1,10.0.0.2".parse().unwrap();
        let hosts = of(&server);
        assert_eq!((hosts[1].config.get_ports(), hosts[1].config.get_hosts().len()), (&[2][..], 1));
        assert_eq!(hosts[1].config.get_hostaddrs()[0].to_string(), "10.0.0.2");
        assert!(hosts.iter().all(|host| host.name.is_none()));
    }
}
