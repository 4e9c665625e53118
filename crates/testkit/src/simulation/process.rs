//! A process of a simulation, with its connection to the store, its clock and its random numbers.

use std::panic::resume_unwind;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use object_store::ObjectStore;

use super::profile::{LONGEST_PAUSE, MOST_LATE_MS};
use super::trace::What;
use super::world::{BEGINNING_MS, Shared, World};
use crate::store::{Answer, Call, Crash, Director, Entry, Fault, Op, Store};

/// A process of a simulation, or its second thread. Cloning it is cheap.
///
/// A process and its second thread use the same objects. The calling thread determines which of the two is meant.
#[derive(Clone)]
pub struct Process {
    pub(super) shared: Arc<Shared>,
    pub(super) id: usize,
}

impl Process {
    /// The time after which no earlier request can still take effect.
    pub const SETTLED: Duration = Duration::from_millis(MOST_LATE_MS + 1);

    /// The time at which simulations begin, in milliseconds since the epoch.
    pub const BEGINNING_MS: i64 = BEGINNING_MS;

    /// Returns a connection of this process to the store.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(Store::new(Arc::clone(&self.shared.objects), Arc::new(self.clone())))
    }

    /// Returns the name.
    pub fn name(&self) -> String {
        self.shared.world().members[self.id].name.clone()
    }

    /// Returns how many crashed processes this one has replaced.
    pub fn life(&self) -> u32 {
        self.shared.world().members[self.id].life
    }

    /// If this is a second thread, returns the process to which it belongs.
    pub fn front(&self) -> Option<Self> {
        let front = self.shared.world().members[self.id].front?;
        Some(Self { shared: Arc::clone(&self.shared), id: front })
    }

    /// Returns whether the process number `life` in this slot, counted from 0, is still running.
    pub fn is_alive(&self, life: u32) -> bool {
        let world = self.shared.world();
        let member = &world.members[self.id];
        member.life == life && !member.is_dead && !world.has_ended(self.id)
    }

    /// Returns whether the process has ended and will not be replaced.
    pub fn has_ended(&self) -> bool {
        self.shared.world().has_ended(self.id)
    }

    /// Returns the time in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.shared.world().now_ms()
    }

    /// Pauses this process for `duration`, while other processes run.
    pub fn sleep(&self, duration: Duration) {
        let world = self.shared.world();
        if world.profile.is_real {
            drop(world);
            return std::thread::sleep(duration.min(LONGEST_PAUSE));
        }
        let until = world.now_us + i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 2);
        let id = self.acting(&world);
        let world = self.shared.pass(world, id, Some(until));
        self.unwind_if_dead(world);
    }

    /// Pauses this process until `time_ms`. Returns at once if that time has passed.
    pub fn sleep_until(&self, time_ms: i64) {
        let left = u64::try_from(time_ms - self.now_ms()).unwrap_or_default();
        self.sleep(Duration::from_millis(left));
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

    /// Returns a point in time that is later than all points in time that any process has received before.
    pub fn tick(&self) -> u64 {
        let mut world = self.shared.world();
        let tick = world.tick();
        self.unwind_if_dead(world);
        tick
    }

    /// Makes sure that the second thread of this process ends its current pause within `within`.
    pub fn wake_second(&self, within: Duration) {
        let mut world = self.shared.world();
        let at_us = world.now_us + i64::try_from(within.as_micros()).unwrap_or(i64::MAX / 2);
        world.wake_second(self.id, at_us);
    }

    /// Returns the member of the world for the calling thread: this one, or the other thread of the same process.
    fn acting(&self, world: &World) -> usize {
        let thread = Some(std::thread::current().id());
        let is_calling = |id: &usize| {
            world.members[*id].thread == thread && world.process_of(*id) == world.process_of(self.id)
        };
        (0..world.members.len()).find(is_calling).unwrap_or(self.id)
    }

    /// Returns how many requests of this process and its predecessors have failed. In real time, this is not known: if
    /// the store can fail, the returned number grows with each [`Process::tick`].
    pub fn faults(&self) -> u64 {
        let world = self.shared.world();
        match world.profile.is_real && world.profile.faults > 0 {
            true => world.ticks(),
            false => world.members[self.id].faults,
        }
    }

    /// Adds a line to the trace.
    pub fn note(&self, text: impl Into<String>) {
        let mut world = self.shared.world();
        let id = self.acting(&world);
        world.record(Some(id), What::Note(text.into()));
    }

    /// Ends the process if it has crashed. This is needed because code may have caught the crash.
    fn unwind_if_dead(&self, world: MutexGuard<'_, World>) {
        let is_dead = world.members[self.acting(&world)].is_dead || world.is_stopped;
        drop(world);
        if is_dead && !std::thread::panicking() {
            resume_unwind(Box::new(Crash));
        }
    }
}

impl Director for Process {
    fn begin(&self, call: &Call) -> Option<Fault> {
        let mut world = self.shared.world();
        let id = self.acting(&world);
        if world.members[id].thread != Some(std::thread::current().id()) {
            let name = world.members[id].name.clone();
            world.failures.push(format!("a thread that does not belong to {name} asks the store: {call:?}"));
            world.is_stopped = true;
            return Some(Fault::LostBefore);
        }
        if world.members[id].is_dead || world.is_stopped {
            return Some(Fault::CrashBefore);
        }
        world = self.shared.pass(world, id, None);
        world.pass_a_moment();
        // The other thread of the process may have crashed in between.
        if world.members[id].is_dead || world.is_stopped {
            return Some(Fault::CrashBefore);
        }
        world.draw_fault(id, call.op)
    }

    fn pause(&self) {
        let world = self.shared.world();
        let id = self.acting(&world);
        drop(self.shared.pass(world, id, None));
    }

    fn end(&self, call: &Call, answer: Answer) {
        let mut world = self.shared.world();
        let is_done = match &answer {
            Answer::Failed(fault) => fault.has_effect(),
            _ => true,
        };
        if call.op == Op::Delete && is_done {
            let now = world.tick();
            world.deletions.push(now);
        }
        let id = self.acting(&world);
        world.record(Some(id), What::Request(call.clone(), answer));
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
