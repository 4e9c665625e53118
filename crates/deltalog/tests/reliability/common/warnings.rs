//! Captures the warnings that the crate logs.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, set_global_default, with_default};
use tracing::{Event, Level, Metadata, Subscriber};

/// Runs `work`; returns the warnings that it logged on this thread, with their fields, and its result.
pub fn warnings<T>(work: impl FnOnce() -> T) -> (Vec<String>, T) {
    ask_for_each_event();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let result = with_default(Collector(Some(Arc::clone(&lines))), work);
    let lines = std::mem::take(&mut *lines.lock().unwrap());
    (lines, result)
}

/// Makes each place that logs ask its thread's collector for each event. Without this, a place that logs for the first
/// time on another thread just while a collector is being installed here may stay disabled.
fn ask_for_each_event() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| set_global_default(Collector(None)).unwrap());
    tracing::callsite::rebuild_interest_cache();
}

/// Collects the warnings of a thread in a list. With `None`, it collects nothing: [`ask_for_each_event`] installs such
/// a collector globally, so that no place that logs stays disabled.
struct Collector(Option<Arc<Mutex<Vec<String>>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for Collector {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.is_some() && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let Some(lines) = &self.0 else { return };
        let mut line = Line(String::new());
        event.record(&mut line);
        lines.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
