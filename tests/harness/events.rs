//! The events that the code under test emits, kept for a test to look at.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use tokio::runtime::{Handle, Id};
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// One event as it would be printed.
#[derive(Debug, Clone)]
pub struct Event {
    /// How bad it is.
    pub level: Level,
    /// The message, then its fields as `name=value`.
    pub text: String,
}

/// The events since [`capture_events`].
#[derive(Debug)]
pub struct Events {
    capture: Arc<Capture>,
}

/// Keeps the warnings and errors emitted on the current runtime, until the result is dropped.
///
/// Every test has a runtime of its own, and an event belongs to the runtime whose code emits it, on
/// whichever of its threads. So tests run in parallel without hearing each other, and a test hears
/// the manager's background task as well. What is emitted outside any runtime is heard by no process.
///
/// # Panics
///
/// Outside a runtime.
pub fn capture_events() -> Events {
    capture_events_from(Level::WARN)
}

/// [`capture_events`] down to a finer level: to `Level::TRACE` for a test that nothing anywhere
/// tells a password.
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
    let runtime = Handle::current().id();
    let capture = Arc::new(Capture { runtime, level, events: Mutex::default() });
    captures().push(Arc::downgrade(&capture));
    Events { capture }
}

impl Events {
    /// All, oldest first.
    pub fn all(&self) -> Vec<Event> {
        locked(&self.capture.events).clone()
    }

    /// How many have `part` in their text.
    pub fn count(&self, part: &str) -> usize {
        locked(&self.capture.events).iter().filter(|event| event.text.contains(part)).count()
    }

    /// Whether any has `part` in its text.
    pub fn contains(&self, part: &str) -> bool {
        self.count(part) > 0
    }

    /// Whether there was none.
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

/// One list for the program, because a subscriber of the thread would miss what a runtime's other
/// threads emit.
fn captures() -> MutexGuard<'static, Vec<Weak<Capture>>> {
    static CAPTURES: Mutex<Vec<Weak<Capture>>> = Mutex::new(Vec::new());
    locked(&CAPTURES)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The layer behind all captures.
struct Recorder;

impl<S: Subscriber> Layer<S> for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        // Finer events of other crates are no process's business here, and some of them emit thousands.
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
