//! A store in memory that records its calls and fails as a script says.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use object_store::ObjectStore;

use super::Store;
use super::director::{Answer, Call, Director};
use super::fault::Fault;
use super::objects::{Entry, Objects};

type Script = Box<dyn FnMut(usize, &Call) -> Option<Fault> + Send>;

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    script: Option<Script>,
    hidden: Vec<String>,
    shows_twice: bool,
}

/// A store in memory that records its calls and fails as a script says. Clones share everything.
#[derive(Clone, Default)]
pub struct FaultyStore {
    objects: Arc<Mutex<Objects>>,
    state: Arc<Mutex<State>>,
}

impl FaultyStore {
    /// Returns the store in the form that deltalog accepts.
    pub fn connect(&self) -> Arc<dyn ObjectStore> {
        Arc::new(Store::new(Arc::clone(&self.objects), Arc::new(self.clone())))
    }

    /// Returns a new store with copies of the objects, whose requests do not fail.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { objects: Arc::new(Mutex::new(self.objects().clone())), state: Arc::default() }
    }

    /// Returns another connection to the same objects. Its requests do not fail, and are recorded separately.
    #[must_use]
    pub fn reconnect(&self) -> Self {
        Self { objects: Arc::clone(&self.objects), state: Arc::default() }
    }

    /// Lets `script` decide whether each later call fails. It receives the number of the call, starting at 0, and the
    /// call itself.
    pub fn fail(&self, script: impl FnMut(usize, &Call) -> Option<Fault> + Send + 'static) {
        let mut state = self.state();
        state.calls.clear();
        state.script = Some(Box::new(script));
    }

    /// Hides files whose names end with `ending` from listings. They can still be read by name.
    pub fn hide(&self, ending: &str) {
        self.state().hidden.push(ending.to_owned());
    }

    /// Makes listings contain each file twice, as overlapping pages would.
    pub fn show_twice(&self) {
        self.state().shows_twice = true;
    }

    /// Makes later calls succeed again.
    pub fn heal(&self) {
        self.state().script = None;
    }

    /// Returns the calls that were recorded since the last call of this method, and clears the record.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.state().calls)
    }

    /// Returns the objects. This does not count as a call.
    pub fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Director for FaultyStore {
    fn begin(&self, call: &Call) -> Option<Fault> {
        let state = &mut *self.state();
        let number = state.calls.len();
        let fault = state.script.as_mut().and_then(|script| script(number, call));
        state.calls.push(call.clone());
        fault
    }

    fn end(&self, _: &Call, _: Answer) {}

    fn shown(&self, entries: Vec<Entry>, _: u64) -> Vec<Entry> {
        let state = self.state();
        let times = if state.shows_twice { 2 } else { 1 };
        entries
            .into_iter()
            .filter(|entry| !state.hidden.iter().any(|ending| entry.path.ends_with(ending)))
            .flat_map(|entry| vec![entry; times])
            .collect()
    }

    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

impl std::fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FaultyStore")
    }
}
