//! The managers of the process: the default one, the named ones, and that of a scope.

use std::collections::HashMap;
use std::ops::Deref;

use once_cell::sync::{Lazy, OnceCell};

use tokio::task::futures::TaskLocalFuture;

use crate::platform::sync::RwLock;
use crate::{Error, LockManager};

static DEFAULT: OnceCell<Installed> = OnceCell::new();
static NAMED: Lazy<RwLock<HashMap<String, LockManager>>> = Lazy::new(RwLock::default);

tokio::task_local! {
    static SCOPED: Option<Scoping>;
}

/// A default manager, and the one that a fork of its process has installed instead.
struct Installed {
    manager: LockManager,
    forked: OnceCell<Box<Installed>>,
}

impl Installed {
    fn of(manager: LockManager) -> Self {
        Self { manager, forked: OnceCell::new() }
    }

    /// The manager that was installed last.
    fn last(&self) -> &Self {
        let mut last = self;
        while let Some(next) = last.forked.get() {
            last = next;
        }
        last
    }

    /// Installs another, if the last one belongs to the parent of this forked process.
    fn replace(&self, manager: LockManager) -> bool {
        let last = self.last();
        let belongs_to_parent = !last.manager.is_of_this_process();
        belongs_to_parent && last.forked.set(Box::new(Self::of(manager))).is_ok()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Scoping {
    manager: LockManager,
    /// Whether it also replaces all named managers.
    has_all_names: bool,
}

pub(crate) fn install(manager: LockManager) -> Result<(), Error> {
    let installed = match DEFAULT.get() {
        Some(installed) => installed.replace(manager),
        None => DEFAULT.set(Installed::of(manager)).is_ok(),
    };
    if installed {
        return Ok(());
    }
    Err(Error::InvalidOptions(
        "a default manager is already installed: install once, at start-up; in tests, run each in \
         `LockManager::scope`"
            .into(),
    ))
}

pub(crate) fn install_as(name: &str, manager: LockManager) -> Result<(), Error> {
    let mut named = NAMED.write();
    if named.get(name).is_some_and(LockManager::is_of_this_process) {
        let message = format!("a manager is already installed as `{name}`: choose another name");
        return Err(Error::InvalidOptions(message));
    }
    named.insert(name.into(), manager);
    Ok(())
}

#[derive(Debug)]
pub(crate) enum Chosen {
    /// The default one. Not cloned, or all threads would contend for one reference count.
    Installed(&'static LockManager),
    Other(LockManager),
}

impl Deref for Chosen {
    type Target = LockManager;

    fn deref(&self) -> &LockManager {
        match self {
            Self::Installed(manager) => manager,
            Self::Other(manager) => manager,
        }
    }
}

/// The manager of the current scope, or the default one.
pub(crate) fn default_manager() -> Result<Chosen, Error> {
    if let Some(scope) = scoped() {
        return Ok(Chosen::Other(scope.manager));
    }
    DEFAULT.get().map(|first| Chosen::Installed(&first.last().manager)).ok_or(Error::NoManager)
}

pub(crate) fn named_manager(name: &str) -> Result<LockManager, Error> {
    if let Some(scope) = scoped().filter(|scope| scope.has_all_names) {
        return Ok(scope.manager);
    }
    let named = NAMED.read().get(name).cloned();
    // After the lock on `NAMED` is released: a subscriber of this event may install a manager.
    named.ok_or_else(|| {
        tracing::error!(lockattr.manager = name, "no lock manager is installed under this name");
        Error::NoManager
    })
}

fn scoped() -> Option<Scoping> {
    SCOPED.try_with(Option::clone).ok().flatten()
}

pub(crate) type Scoped<F> = TaskLocalFuture<Option<Scoping>, F>;

pub(crate) fn scope<F: Future>(manager: LockManager, future: F) -> Scoped<F> {
    SCOPED.scope(Some(Scoping { manager, has_all_names: false }), future)
}

/// Runs `future` with `manager` as the default one and under every name.
#[cfg(feature = "testing")]
pub(crate) fn scope_of_all<F: Future>(manager: LockManager, future: F) -> Scoped<F> {
    SCOPED.scope(Some(Scoping { manager, has_all_names: true }), future)
}

/// Runs `future` in the current scope.
pub(crate) fn in_current_scope<F: Future>(future: F) -> Scoped<F> {
    SCOPED.scope(scoped(), future)
}

/// The scope of the running code, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Scope(Option<Scoping>);

impl Scope {
    pub(crate) fn here() -> Self {
        Self(scoped())
    }

    pub(crate) fn of(manager: LockManager) -> Self {
        Self(Some(Scoping { manager, has_all_names: false }))
    }

    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        SCOPED.sync_scope(self.0, work)
    }
}
