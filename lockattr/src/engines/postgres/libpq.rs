//! The settings of a URL that go to the client, as libpq names them.

use std::fmt::Write;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::Error;

/// A connection string for the client, and the names that it sets.
#[derive(Default)]
pub(super) struct Libpq {
    pub(super) text: String,
    names: Vec<String>,
}

impl Libpq {
    /// The settings in a URL's query.
    pub(super) const NAMES: &[&str] = &[
        "host",
        "hostaddr",
        "port",
        "user",
        "password",
        "dbname",
        "options",
        "application_name",
        "sslnegotiation",
        "channel_binding",
        "target_session_attrs",
        "load_balance_hosts",
        "keepalives",
        "keepalives_idle",
        "keepalives_interval",
        "keepalives_retries",
        "tcp_user_timeout",
    ];

    /// Adds the part before the query: hosts and ports, user and password, the database.
    pub(super) fn add_url(&mut self, urls: &[Url]) -> Result<(), Error> {
        let url = &urls[0];
        let hosts: Vec<_> =
            urls.iter().map(|url| decoded(url.host_str().unwrap_or_default())).collect();
        let hosts = hosts.iter().map(|host| host.trim_start_matches('[').trim_end_matches(']'));
        let hosts: Vec<_> = hosts.collect();
        if urls.len() > 1 || !hosts[0].is_empty() {
            let ports = urls.iter().map(|url| url.port().unwrap_or(5432).to_string());
            self.add("host", &hosts.join(","))?;
            self.add("port", &ports.collect::<Vec<_>>().join(","))?;
        }
        let parts = [
            ("user", url.username()),
            ("password", url.password().unwrap_or_default()),
            ("dbname", url.path().trim_start_matches('/')),
        ];
        for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
            self.add(name, &decoded(value))?;
        }
        Ok(())
    }

    pub(super) fn add(&mut self, name: &str, value: &str) -> Result<(), Error> {
        if self.has(name) {
            let sentence = format!("the URL sets `{name}` twice: leave one of them out");
            return Err(Error::InvalidOptions(sentence));
        }
        let value = value.replace('\\', "\\\\").replace('\'', "\\'");
        // Writing to a string cannot fail.
        let _never = write!(self.text, "{name}='{value}' ");
        self.names.push(name.to_owned());
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
