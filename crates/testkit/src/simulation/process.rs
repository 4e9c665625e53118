//! A process of a run: its connection to the store, its clock and its luck.

use std::panic::resume_unwind;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use object_store::ObjectStore;

use super::profile::MOST_LATE_MS;
use super::trace::What;
use super::world::{Shared, World};
use crate::store::{Answer, Call, Crash, Director, Entry, Fault, Store};

/// A process of a run. Cheap to clone.
#[derive(Clone)]
pub struct Process {
    pub(super) shared: Arc<Shared>,
    pub(super) id: usize,
}

impl Process {
    /// The time after which no request of before is still under way.
    pub const SETTLED: Duration = Duration::from_millis(MOST_LATE_MS + 1);

    /// Returns a connection of this process to the store.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(Store::new(Arc::clone(&self.shared.objects), Arc::new(self.clone())))
    }

    /// Returns the name.
    pub fn name(&self) -> String {
        self.shared.world().members[self.id].name.clone()
    }

    /// Returns how many processes were in this place before.
    pub fn life(&self) -> u32 {
        self.shared.world().members[self.id].life
    }

    /// Returns the time in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.shared.world().now_ms()
    }

    /// Lets others run for `duration`.
    pub fn sleep(&self, duration: Duration) {
        let world = self.shared.world();
        let until = world.now_us + i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 2);
        let world = self.shared.pass(world, self.id, Some(until));
        self.unwind_if_dead(world);
    }

    /// Returns a random number.
    pub fn random(&self) -> u64 {
        self.shared.world().members[self.id].random.number()
    }

    /// Returns a random number below `end`, which must not be 0.
    pub fn below(&self, end: u64) -> u64 {
        self.random() % end
    }

    /// Returns a number of 128 bits for an id.
    pub fn wide_random(&self) -> u128 {
        u128::from(self.random()) << 64 | u128::from(self.random())
    }

    /// Returns a point in time that is later than all that were returned before to any process.
    pub fn tick(&self) -> u64 {
        let mut world = self.shared.world();
        let tick = world.tick();
        self.unwind_if_dead(world);
        tick
    }

    /// Returns how many requests have failed in this place.
    pub fn faults(&self) -> u64 {
        self.shared.world().members[self.id].faults
    }

    /// Adds a line to the trace.
    pub fn note(&self, text: impl Into<String>) {
        self.shared.world().record(Some(self.id), What::Note(text.into()));
    }

    /// Ends the process if it has crashed, in case that something has caught the crash.
    fn unwind_if_dead(&self, world: MutexGuard<'_, World>) {
        let is_dead = world.members[self.id].is_dead || world.is_stopped;
        drop(world);
        if is_dead && !std::thread::panicking() {
            resume_unwind(Box::new(Crash));
        }
    }
}

impl Director for Process {
    fn begin(&self, call: &Call) -> Option<Fault> {
        let mut world = self.shared.world();
        if world.members[self.id].thread != Some(std::thread::current().id()) {
            let name = world.members[self.id].name.clone();
            world.failures.push(format!("a thread that is not that of {name} asks the store: {call:?}"));
            world.is_stopped = true;
            return Some(Fault::LostBefore);
        }
        if world.members[self.id].is_dead || world.is_stopped {
            return Some(Fault::CrashBefore);
        }
        world = self.shared.pass(world, self.id, None);
        world.pass_a_moment();
        if world.is_stopped {
            return Some(Fault::CrashBefore);
        }
        world.draw_fault(self.id, call.op)
    }

    fn pause(&self) {
        drop(self.shared.pass(self.shared.world(), self.id, None));
    }

    fn end(&self, call: &Call, answer: Answer) {
        self.shared.world().record(Some(self.id), What::Request(call.clone(), answer));
    }

    fn shown(&self, mut entries: Vec<Entry>, began: u64) -> Vec<Entry> {
        let mut world = self.shared.world();
        let hidden_since = world.now_ms() - world.profile.lag_ms;
        entries.retain(|entry| {
            let (number, at_ms) = entry.appeared;
            let may_be_hidden = number > began || (world.profile.lag_ms > 0 && at_ms > hidden_since);
            !may_be_hidden || world.random.chance(500)
        });
        entries
    }

    fn now_ms(&self) -> i64 {
        Self::now_ms(self)
    }
}
