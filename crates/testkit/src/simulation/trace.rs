//! The events of a run, in order.

use std::fmt;

use crate::store::{Answer, Call};

/// An event of a run.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) now_us: i64,
    /// The name of the process, and the number of its predecessors; `None` for the store itself.
    pub(super) process: Option<(String, u32)>,
    pub(super) what: What,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    Request(Call, Answer),
    /// A request whose caller no longer waits for it has taken effect.
    Landed(String),
    Note(String),
}

/// The events of a run, in order.
#[derive(Debug, Clone, Default)]
pub struct Trace(pub(super) Vec<Event>);

impl Trace {
    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.3} ms  ", self.now_us as f64 / 1000.0)?;
        match &self.process {
            Some((name, life)) => write!(f, "{:<16}", format!("{name}.{life}"))?,
            None => write!(f, "{:<16}", "")?,
        }
        match &self.what {
            What::Request(call, answer) => {
                write!(f, "{:<7}{} -> {answer}", format!("{:?}", call.op).to_lowercase(), call.path)
            }
            What::Landed(path) => write!(f, "a late request changes {path}"),
            What::Note(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|event| writeln!(f, "{event}"))
    }
}
