//! Captures the `tracing` events that the code under test emits.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use tokio::runtime::{Handle, Id};
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// One captured event.
#[derive(Debug, Clone)]
pub struct Event {
    /// The event's level.
    pub level: Level,
    /// The message, followed by the fields as `name=value`.
    pub text: String,
}

/// The events since [`capture_events`].
#[derive(Debug)]
pub struct Events {
    capture: Arc<Capture>,
}

/// Captures the warnings and errors emitted on the current runtime, until the result is dropped.
///
/// Every test has its own runtime, and an event belongs to the runtime that emits it, on any of its
/// threads. So parallel tests do not see each other's events, and a test also sees those of the
/// manager's background task. Events outside a runtime are not captured.
///
/// # Panics
///
/// Outside a runtime.
pub fn capture_events() -> Events {
    capture_events_from(Level::WARN)
}

/// [`capture_events`] down to a finer level, such as `Level::TRACE` for a test that no event
/// contains a password.
///
/// # Panics
///
/// As [`capture_events`] does.
pub fn capture_events_from(level: Level) -> Events {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let recorder = tracing_subscriber::registry().with(Recorder);
        tracing::subscriber::set_global_default(recorder)
            .expect("no test installs a global subscriber");
    });
    // A thread that met an event for the first time while the recorder was installed may have noted that no
    // subscriber wants it.
    tracing::callsite::rebuild_interest_cache();
    let runtime = Handle::current().id();
    let capture = Arc::new(Capture { runtime, level, events: Mutex::default() });
    captures().push(Arc::downgrade(&capture));
    Events { capture }
}

impl Events {
    /// Returns all events, oldest first.
    pub fn all(&self) -> Vec<Event> {
        locked(&self.capture.events).clone()
    }

    /// Returns how many events have `part` in their text.
    pub fn count(&self, part: &str) -> usize {
        locked(&self.capture.events).iter().filter(|event| event.text.contains(part)).count()
    }

    /// Returns whether an event has `part` in its text.
    pub fn contains(&self, part: &str) -> bool {
        self.count(part) > 0
    }

    /// Returns whether no event was captured.
    pub fn is_empty(&self) -> bool {
        locked(&self.capture.events).is_empty()
    }
}

#[derive(Debug)]
struct Capture {
    runtime: Id,
    level: Level,
    events: Mutex<Vec<Event>>,
}

/// Returns the program's only list of captures. A thread's own subscriber would miss the events of
/// the runtime's other threads.
fn captures() -> MutexGuard<'static, Vec<Weak<Capture>>> {
    static CAPTURES: Mutex<Vec<Weak<Capture>>> = Mutex::new(Vec::new());
    locked(&CAPTURES)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The layer that fills all captures.
struct Recorder;

impl<S: Subscriber> Layer<S> for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        // Finer events of other crates do not matter here, and some crates emit thousands.
        *metadata.level() <= Level::WARN || metadata.target().starts_with("lockattr")
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let Ok(runtime) = Handle::try_current().map(|handle| handle.id()) else {
            return;
        };
        let level = *event.metadata().level();
        let mut captures = captures();
        captures.retain(|capture| capture.strong_count() > 0);
        for capture in captures.iter().filter_map(Weak::upgrade) {
            if capture.runtime == runtime && level <= capture.level {
                let mut text = Text::default();
                event.record(&mut text);
                locked(&capture.events).push(Event { level, text: text.message + &text.fields });
            }
        }
    }
}

/// Collects an event's message and fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
