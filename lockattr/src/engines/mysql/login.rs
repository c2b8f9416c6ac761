//! Logs in: as the URL or the program's own configuration says, or with the credentials that a
//! provider returns for each connection.

use mysql_async::{Conn, Error, Opts, OptsBuilder};

use super::connect::error_from;
use crate::lock::credentials::CredentialsProvider;
use crate::store::{Credentials, StoreError};

/// The server's code for a user that it does not know, or a wrong password.
const ACCESS_DENIED: u16 = 1045;

#[derive(Clone)]
pub(super) struct Login {
    pub(super) opts: Opts,
    pub(super) credentials: Option<CredentialsProvider>,
}

impl Login {
    /// Opens a connection.
    pub(super) async fn connect(&self, address: &str) -> Result<Conn, StoreError> {
        let failed = |error| error_from(address, error);
        let Some(provider) = &self.credentials else {
            return Conn::new(self.opts.clone()).await.map_err(failed);
        };
        let first = provider.current().await?;
        match Conn::new(self.opts_with(&first)).await {
            Err(Error::Server(refused)) if refused.code == ACCESS_DENIED => {
                // The password may have changed on its way to the server.
                let second = provider.current().await?;
                if second == first {
                    return Err(failed(Error::Server(refused)));
                }
                Conn::new(self.opts_with(&second)).await.map_err(failed)
            }
            connected => connected.map_err(failed),
        }
    }

    fn opts_with(&self, credentials: &Credentials) -> Opts {
        let mut opts = OptsBuilder::from_opts(self.opts.clone()).pass(Some(credentials.password()));
        if let Some(user) = credentials.user() {
            opts = opts.user(Some(user));
        }
        opts.into()
    }
}
