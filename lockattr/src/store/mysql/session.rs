//! The task that has one connection, and on it the lock of one claim after the other.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::config::Config;
use super::connect::{Live, abandon, error_from};
use super::sessions::Sessions;
use crate::FencingToken;
use crate::store::{
    Acquire, Acquiring, Claim, Grant, NET, OwnerToken, Release, Renew, StoreError, Waiting,
};

/// As good as for ever: whoever waits gives up earlier.
const FOR_EVER: i64 = 31_536_000;

/// What a session is asked.
pub(super) enum Command {
    Take {
        asked: Acquiring,
        back: UnboundedSender<Command>,
        told: oneshot::Sender<Result<Acquire, StoreError>>,
    },
    Renew {
        ttl: Duration,
        told: oneshot::Sender<Renew>,
    },
    Release {
        after: Duration,
        back: UnboundedSender<Command>,
        told: oneshot::Sender<Release>,
    },
}

/// One connection's task. Ends when nobody can ask it any more, and the lock with it.
pub(super) struct Session {
    sessions: Weak<Sessions>,
    config: Arc<Config>,
    runtime: runtime::Id,
    connection: Option<Conn>,
    /// The claim that it serves.
    token: Option<OwnerToken>,
    /// What the lock that it has is called on the server.
    held: Option<String>,
}

/// What `session.sql` answers.
type Got = (Option<i64>, Option<u64>, String);

/// There is nothing more that this session can do.
struct Over;

impl Session {
    pub(super) fn new(sessions: &Arc<Sessions>, runtime: runtime::Id) -> Self {
        let (config, sessions) = (sessions.config.clone(), Arc::downgrade(sessions));
        Self { sessions, config, runtime, connection: None, token: None, held: None }
    }

    pub(super) async fn run(mut self, mut commands: UnboundedReceiver<Command>) {
        loop {
            let command = match timeout(self.config.timing.heartbeat, commands.recv()).await {
                Ok(Some(command)) => command,
                Ok(None) => return,
                Err(_) if self.answers().await => continue,
                Err(_) => return,
            };
            let outcome = match command {
                Command::Take { asked, back, told } => {
                    self.take(&asked, back, told, &mut commands).await
                }
                Command::Renew { ttl, told } => self.renew(ttl, told).await,
                Command::Release { after, back, told } => self.release(after, back, told).await,
            };
            if let Err(Over) = outcome {
                return;
            }
        }
    }

    async fn take(
        &mut self,
        asked: &Acquiring,
        back: UnboundedSender<Command>,
        told: oneshot::Sender<Result<Acquire, StoreError>>,
        commands: &mut UnboundedReceiver<Command>,
    ) -> Result<(), Over> {
        self.token = Some(asked.claim.token());
        if self.connection.is_none() {
            match Live::connect(&self.config, None).await {
                Ok(live) => self.connection = Some(live.connection),
                Err(error) => {
                    let _nobody_waits = told.send(Err(error));
                    return Err(Over);
                }
            }
        }
        let Some(connection) = &mut self.connection else { return Err(Over) };
        let limit = self.config.timing.response_timeout;
        let got = match timeout(limit, get(connection, &asked.claim, 0)).await {
            Ok(Ok(got)) => got,
            Ok(Err(error)) => {
                let _nobody_waits = told.send(Err(error_from(&self.config.address, error)));
                return Err(Over);
            }
            Err(_) => {
                let sentence = format!("no answer from {} within {limit:?}", self.config.address);
                let _nobody_waits = told.send(Err(StoreError::new(sentence)));
                return Err(Over);
            }
        };
        let (Some(1), Some(number), lock) = got else {
            let waits = asked.waiting != Waiting::Not;
            let in_line = waits.then_some(NET);
            let _nobody_waits = told.send(Ok(Acquire::Held { holder: None, in_line }));
            if waits {
                drop(back);
                return self.wait(&asked.claim, commands).await;
            }
            self.serves_another(back);
            return Ok(());
        };
        if self.held.is_some() {
            // It had it already: a session may take a lock several times.
            let once_less = connection.exec_drop("DO RELEASE_LOCK(?)", (&lock,));
            if !matches!(timeout(limit, once_less).await, Ok(Ok(()))) {
                return Err(Over);
            }
        }
        self.held = Some(lock);
        // Whether others wait is not to be known: so they may.
        let fencing = FencingToken::from_counter(number);
        let _nobody_waits = told.send(Ok(Acquire::Acquired { fencing, wanted: true }));
        Ok(())
    }

    /// Waits on the server until the lock is ours, or until the claim gives up.
    async fn wait(
        &mut self,
        claim: &Arc<Claim>,
        commands: &mut UnboundedReceiver<Command>,
    ) -> Result<(), Over> {
        let Some(mut connection) = self.connection.take() else { return Err(Over) };
        let id = connection.id();
        let outcome = {
            let mut waiting = Box::pin(get(&mut connection, claim, FOR_EVER));
            loop {
                tokio::select! {
                    biased;
                    got = &mut waiting => break got,
                    command = commands.recv() => match command {
                        Some(Command::Take { told, .. }) => {
                            let held = Acquire::Held { holder: None, in_line: Some(NET) };
                            let _nobody_waits = told.send(Ok(held));
                        }
                        Some(Command::Renew { told, .. }) => {
                            let _nobody_waits = told.send(Renew::NotHeld);
                        }
                        // The server is told, because it would notice only after a while that
                        // nobody waits any more, and might give us the lock meanwhile.
                        Some(Command::Release { told, .. }) => {
                            self.end(id).await;
                            let _nobody_waits = told.send(Release::NotHeld);
                            drop(waiting);
                            abandon(connection);
                            return Err(Over);
                        }
                        None => {
                            self.end(id).await;
                            drop(waiting);
                            abandon(connection);
                            return Err(Over);
                        }
                    }
                }
            }
        };
        self.connection = Some(connection);
        let Some(sessions) = self.sessions.upgrade() else { return Err(Over) };
        let inbox = sessions.inboxes.get(claim.token().inbox());
        match outcome {
            Ok((Some(1), Some(number), lock)) => {
                self.held = Some(lock);
                let fencing = FencingToken::from_counter(number);
                if let Some(inbox) = inbox {
                    let grant = Grant::new(fencing, Instant::now(), true);
                    inbox.granted(claim.token(), grant);
                }
                Ok(())
            }
            _ => {
                if let Some(inbox) = inbox {
                    inbox.ask_again(claim.token(), Instant::now());
                }
                Err(Over)
            }
        }
    }

    async fn renew(&mut self, ttl: Duration, told: oneshot::Sender<Renew>) -> Result<(), Over> {
        let (Some(connection), Some(held)) = (&mut self.connection, &self.held) else {
            let _nobody_waits = told.send(Renew::NotHeld);
            return Ok(());
        };
        let ours = "SELECT IS_USED_LOCK(?) = CONNECTION_ID()";
        let asking = connection.exec_first::<Option<i64>, _, _>(ours, (held,));
        // Longer than anybody waits for the answer: a connection that is given up is a lock that is
        // given up. After that time its holder does not count on it any more.
        match timeout(ttl, asking).await {
            Ok(Ok(Some(Some(1)))) => {
                let _nobody_waits = told.send(Renew::Renewed);
                Ok(())
            }
            _ => {
                let _nobody_waits = told.send(Renew::NotHeld);
                Err(Over)
            }
        }
    }

    async fn release(
        &mut self,
        after: Duration,
        back: UnboundedSender<Command>,
        told: oneshot::Sender<Release>,
    ) -> Result<(), Over> {
        let (Some(connection), Some(held)) = (&mut self.connection, self.held.take()) else {
            let _nobody_waits = told.send(Release::NotHeld);
            return Err(Over);
        };
        let mut told = Some(told);
        if !after.is_zero() {
            let _nobody_waits = told.take().map(|told| told.send(Release::Released));
            sleep(after).await;
        }
        let asking = connection.exec_first::<Option<i64>, _, _>("SELECT RELEASE_LOCK(?)", (held,));
        // If there is no answer, the lock goes with the connection.
        let answer = match timeout(self.config.timing.response_timeout, asking).await {
            Ok(Ok(Some(Some(1)))) => Ok(Release::Released),
            Ok(Ok(_)) => Ok(Release::NotHeld),
            Ok(Err(_)) => Err(Some(Release::NotHeld)),
            Err(_) => Err(None),
        };
        let usable = answer.is_ok();
        if usable {
            self.serves_another(back);
        }
        // Who asked has given up by now where there is no answer.
        if let (Ok(answer) | Err(Some(answer)), Some(told)) = (answer, told) {
            let _nobody_waits = told.send(answer);
        }
        if usable { Ok(()) } else { Err(Over) }
    }

    /// The claim is over.
    fn serves_another(&mut self, back: UnboundedSender<Command>) {
        if let (Some(sessions), Some(token)) = (self.sessions.upgrade(), self.token.take()) {
            sessions.ended(token, Some((self.runtime, back)));
        }
    }

    /// Whether the connection is of use; one that was never made is not.
    async fn answers(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        matches!(timeout(self.config.timing.response_timeout, connection.ping()).await, Ok(Ok(())))
    }

    /// Ends a session on the server, from another one.
    async fn end(&self, id: u32) {
        let Ok(mut live) = Live::connect(&self.config, None).await else { return };
        let end = live.connection.query_drop(format!("KILL {id}"));
        let _in_time = timeout(self.config.timing.response_timeout, end).await;
        live.leave();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let (Some(sessions), Some(token)) = (self.sessions.upgrade(), self.token) {
            sessions.ended(token, None);
        }
        // At once: what has the lock is the connection.
        if let Some(connection) = self.connection.take() {
            abandon(connection);
        }
    }
}

async fn get(connection: &mut Conn, claim: &Claim, seconds: i64) -> Result<Got, Error> {
    let call = "CALL lockattr_v1_session(?, ?)";
    let got = connection.exec_first(call, (claim.key().name().as_bytes(), seconds)).await?;
    got.ok_or_else(|| Error::Other("the procedure answered nothing".into()))
}
