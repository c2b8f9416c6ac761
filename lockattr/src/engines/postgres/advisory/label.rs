//! The label of a session, for operators of the server: one name for many locks.

use crate::Holder;
use crate::store::Claim;

/// The prefix of the names of our sessions.
const OURS: &str = "lockattr ";

/// The server truncates longer names.
const LONGEST: usize = 63;

/// Names a session by the service, host and process of this claim, unless the URL has named it.
pub(super) fn name_session(claim: &Claim) -> String {
    let words = claim
        .value()
        .split(' ')
        .filter(|word| ["service=", "host=", "pid="].iter().any(|name| word.starts_with(name)));
    let mut name = OURS.trim_end().to_owned();
    for word in words.filter(|word| word.is_ascii()) {
        if name.len() + 1 + word.len() <= LONGEST {
            name.push(' ');
            name.push_str(word);
        }
    }
    let name = name.replace('\'', "''");
    format!(
        "select set_config('application_name', '{name}', false)
         where current_setting('application_name') = '{}';",
        OURS.trim_end()
    )
}

/// The holder with this session name and client address.
pub(super) fn read(name: Option<&str>, address: Option<String>) -> Holder {
    let mut holder = match name.and_then(|name| name.strip_prefix(OURS)) {
        Some(words) => Holder::from_value(words, None),
        None => Holder {
            service: name.filter(|name| !name.is_empty()).map(str::to_owned),
            ..Holder::default()
        },
    };
    if holder.host.is_none() {
        holder.host = address;
    }
    holder
}
