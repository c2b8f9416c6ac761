//! Values: keys, tokens, options, errors, and a manager's settings. No I/O, no tasks.

pub(crate) mod century;
pub(crate) mod credentials;
pub(crate) mod digits;
pub(crate) mod error;
pub(crate) mod fencing;
pub(crate) mod held_lock;
pub(crate) mod holder;
pub(crate) mod holder_id;
pub(crate) mod key;
pub(crate) mod key_template;
pub(crate) mod options;
pub(crate) mod printable;
#[cfg(feature = "share")]
pub(crate) mod result_word;
pub(crate) mod retry;
pub(crate) mod server_options;
pub(crate) mod settings;
pub(crate) mod sharing;
pub(crate) mod site;
pub(crate) mod term_word;
pub(crate) mod token;
