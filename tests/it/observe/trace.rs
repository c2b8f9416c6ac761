//! The spans and events of one test, as a subscriber receives them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

pub(super) type Fields = BTreeMap<&'static str, String>;

#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The span's name, or the event's message.
    pub(super) name: String,
    pub(super) target: &'static str,
    pub(super) level: Level,
    pub(super) fields: Fields,
    /// The names of the enclosing spans, outermost first.
    pub(super) inside: Vec<String>,
    /// Whether the span is closed. Unused for events.
    pub(super) over: bool,
}

/// Everything that this thread's subscriber has received.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    spans: Arc<Mutex<Vec<(Id, Seen)>>>,
    events: Arc<Mutex<Vec<Seen>>>,
}

/// Records everything from `level` up that is emitted on this thread, until the guard is dropped.
pub(super) fn traced(level: Level) -> (Trace, DefaultGuard) {
    let trace = Trace::default();
    let layer = TraceLayer { level, trace: trace.clone() };
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    (trace, guard)
}

impl Trace {
    /// Returns the spans of this name, in the order of their creation.
    pub(super) fn spans(&self, name: &str) -> Vec<Seen> {
        let spans = self.spans.lock().unwrap();
        spans.iter().map(|(_, span)| span).filter(|span| span.name == name).cloned().collect()
    }

    /// Returns the events with this message.
    pub(super) fn events(&self, message: &str) -> Vec<Seen> {
        self.events.lock().unwrap().iter().filter(|event| event.name == message).cloned().collect()
    }

    /// Returns all messages of a target, in order.
    pub(super) fn messages(&self, target: &str) -> Vec<String> {
        let events = self.events.lock().unwrap();
        events.iter().filter(|event| event.target == target).map(|e| e.name.clone()).collect()
    }

    fn open(&self, id: &Id) -> (MutexGuard<'_, Vec<(Id, Seen)>>, usize) {
        let spans = self.spans.lock().unwrap();
        // An id is reused once its span is closed.
        let place = spans.iter().rposition(|(number, _)| number == id).expect("a span we know");
        (spans, place)
    }
}

struct TraceLayer {
    level: Level,
    trace: Trace,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TraceLayer {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= self.level
    }

    fn on_new_span(&self, made: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Taken::default();
        made.record(&mut fields);
        let span = context.span(id).expect("it was just made");
        let around = span.scope().skip(1).collect::<Vec<_>>();
        let inside = around.iter().rev().map(|span| span.name().to_owned()).collect();
        let metadata = made.metadata();
        let name = metadata.name().to_owned();
        let seen = seen(metadata, name, fields.0, inside);
        self.trace.spans.lock().unwrap().push((id.clone(), seen));
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, _: Context<'_, S>) {
        let mut fields = Taken::default();
        record.record(&mut fields);
        let (mut spans, place) = self.trace.open(id);
        spans[place].1.fields.extend(fields.0);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let (mut spans, place) = self.trace.open(&id);
        spans[place].1.over = true;
    }

    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut fields = Taken::default();
        event.record(&mut fields);
        let name = fields.0.remove("message").unwrap_or_default();
        let scope = context.event_scope(event).into_iter().flatten().collect::<Vec<_>>();
        let inside = scope.iter().rev().map(|span| span.name().to_owned()).collect();
        let seen = seen(event.metadata(), name, fields.0, inside);
        self.trace.events.lock().unwrap().push(seen);
    }
}

fn seen(metadata: &Metadata<'static>, name: String, fields: Fields, inside: Vec<String>) -> Seen {
    Seen { name, target: metadata.target(), level: *metadata.level(), fields, inside, over: false }
}

#[derive(Default)]
struct Taken(Fields);

impl Visit for Taken {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
