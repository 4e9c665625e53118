//! The state that all processes of a run share: the time, the turn, the faults and the trace.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use super::profile::Profile;
use super::trace::{Event, Trace, What};
use crate::random::Random;
use crate::store::{Fault, Objects, Op};

/// The maximum number of requests and pauses in a run. A run that exceeds it is stopped, because some process does not
/// seem to end.
const MOST_STEPS: u64 = 50_000;

/// The maximum length of a series of faults.
const LONGEST_BURST: u64 = 14;

/// The time at which simulations begin, in milliseconds since the epoch.
pub(super) const BEGINNING_MS: i64 = 1_700_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    AsleepUntil(i64),
    Ended,
}

/// A series of faults.
#[derive(Debug, Clone, Copy, Default)]
struct Burst {
    /// How many more requests will fail.
    left: u64,
    /// Whether reads do not fail during the series.
    spares_reads: bool,
}

impl Burst {
    fn draw(random: &mut Random) -> Self {
        Self { left: 1 + random.below(LONGEST_BURST), spares_reads: random.chance(500) }
    }

    /// Returns whether a request of kind `op` fails, and counts it.
    fn hits(&mut self, op: Op) -> bool {
        let is_hit = self.left > 0 && !(self.spares_reads && matches!(op, Op::Get | Op::List));
        self.left -= u64::from(is_hit);
        is_hit
    }
}

/// The state of a process, or of its second thread.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) thread: Option<ThreadId>,
    /// The number of crashed processes that this one has replaced.
    pub(super) life: u32,
    /// Whether the process has crashed: from then on, none of its requests takes effect.
    pub(super) is_dead: bool,
    pub(super) faults: u64,
    pub(super) random: Random,
    /// For a second thread, the member that represents its process.
    pub(super) front: Option<usize>,
    status: Status,
    burst: Burst,
}

pub(super) struct World {
    pub(super) members: Vec<Member>,
    pub(super) trace: Trace,
    /// The times at which files were deleted.
    pub(super) deletions: Vec<u64>,
    /// Problems of the run itself.
    pub(super) failures: Vec<String>,
    /// Whether the run was ended early because of a problem.
    pub(super) is_stopped: bool,
    pub(super) profile: Profile,
    /// The microseconds since the beginning of the simulation.
    pub(super) now_us: i64,
    pub(super) random: Random,
    turn: Option<usize>,
    steps: u64,
    ticks: u64,
}

/// The world, its objects, and the signals that tell waiting processes that it is their turn.
pub(super) struct Shared {
    world: Mutex<World>,
    turns: Vec<Condvar>,
    pub(super) objects: Arc<Mutex<Objects>>,
}

impl World {
    pub(super) fn new(
        mut random: Random,
        profile: Profile,
        names: &[(String, Option<usize>)],
        now_us: i64,
        ticks: u64,
    ) -> Self {
        let member = |(name, front): &(String, Option<usize>)| Member {
            name: name.clone(),
            front: *front,
            thread: None,
            life: 0,
            is_dead: false,
            faults: 0,
            random: random.fork(),
            status: Status::Ready,
            burst: Burst::default(),
        };
        Self {
            members: names.iter().map(member).collect(),
            trace: Trace::default(),
            deletions: Vec::new(),
            failures: Vec::new(),
            is_stopped: false,
            profile,
            now_us,
            random,
            turn: None,
            steps: 0,
            ticks,
        }
    }

    /// Returns the time in milliseconds since the epoch.
    pub(super) fn now_ms(&self) -> i64 {
        if self.profile.is_real {
            return chrono::Utc::now().timestamp_millis();
        }
        BEGINNING_MS + self.now_us / 1000
    }

    /// Returns a number that is greater than all numbers returned before.
    pub(super) fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    /// Returns the last number that `tick` returned.
    pub(super) fn ticks(&self) -> u64 {
        self.ticks
    }

    pub(super) fn record(&mut self, process: Option<usize>, what: What) {
        let process = process.map(|id| (self.members[id].name.clone(), self.members[id].life));
        self.trace.0.push(Event { now_us: self.now_us, process, what });
    }

    /// Chooses the process that has the next turn. `current` had the previous turn.
    fn choose(&mut self, current: usize) -> Option<usize> {
        let earliest = self.members.iter().filter_map(|member| match member.status {
            Status::Ready => Some(self.now_us),
            Status::AsleepUntil(time) => Some(time),
            Status::Ended => None,
        });
        self.now_us = self.now_us.max(earliest.min()?);
        let is_ready = |member: &Member| match member.status {
            Status::Ready => true,
            Status::AsleepUntil(time) => time <= self.now_us,
            Status::Ended => false,
        };
        let ready: Vec<usize> = (0..self.members.len()).filter(|id| is_ready(&self.members[*id])).collect();
        if ready.contains(&current) && !self.random.chance(self.profile.switches) {
            return Some(current);
        }
        Some(*self.random.pick(&ready))
    }

    /// Advances the time a little before a request.
    pub(super) fn pass_a_moment(&mut self) {
        self.steps += 1;
        if self.steps > MOST_STEPS && !self.is_stopped {
            self.is_stopped = true;
            self.failures.push(format!("the run does not end within {MOST_STEPS} steps"));
        }
        self.now_us += 200 + self.random.below(20_000) as i64;
    }

    /// Returns the fault of a request of process `id`, chosen at random; `None` if the request succeeds.
    pub(super) fn draw_fault(&mut self, id: usize, op: Op) -> Option<Fault> {
        let (profile, random, member) = (&self.profile, &mut self.random, &mut self.members[id]);
        let fault = if random.chance(profile.crashes) {
            *random.pick(&[Fault::CrashBefore, Fault::CrashAfter])
        } else if member.burst.hits(op) {
            profile.fault(op, random)
        } else if random.chance(profile.faults) {
            if random.chance(profile.bursts) {
                member.burst = Burst::draw(random);
            }
            profile.fault(op, random)
        } else {
            return None;
        };
        member.faults += 1;
        if fault.is_crash() {
            self.kill(id);
        }
        Some(fault)
    }

    /// Ends the process of member `id`, with all of its threads.
    fn kill(&mut self, id: usize) {
        let process = self.process_of(id);
        for other in 0..self.members.len() {
            if self.process_of(other) == process && !self.has_ended(other) {
                self.members[other].is_dead = true;
                self.wake(other, self.now_us);
            }
        }
    }

    /// Ends the pause of member `id` at `at_us`, unless it ends earlier.
    fn wake(&mut self, id: usize, at_us: i64) {
        if let Status::AsleepUntil(until_us) = &mut self.members[id].status {
            *until_us = at_us.min(*until_us);
        }
    }

    /// Ends the pauses of the other threads of process `id` at `at_us`.
    pub(super) fn wake_second(&mut self, id: usize, at_us: i64) {
        for other in 0..self.members.len() {
            if self.members[other].front == Some(id) {
                self.wake(other, at_us);
            }
        }
    }

    /// Returns the member that represents the process to which member `id` belongs.
    pub(super) fn process_of(&self, id: usize) -> usize {
        self.members[id].front.unwrap_or(id)
    }

    /// Returns whether member `id` has ended for good.
    pub(super) fn has_ended(&self, id: usize) -> bool {
        self.members[id].status == Status::Ended
    }
}

impl Shared {
    pub(super) fn new(world: World, objects: Arc<Mutex<Objects>>) -> Self {
        let turns = world.members.iter().map(|_| Condvar::new()).collect();
        Self { world: Mutex::new(world), turns, objects }
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the first turn.
    pub(super) fn start(&self) {
        let mut world = self.world();
        self.give_away(&mut world, 0);
    }

    /// Waits until process `id` has the turn.
    pub(super) fn wait<'a>(&self, mut world: MutexGuard<'a, World>, id: usize) -> MutexGuard<'a, World> {
        while world.turn != Some(id) && !world.profile.is_real {
            world = self.turns[id].wait(world).unwrap_or_else(PoisonError::into_inner);
        }
        world
    }

    /// Yields the turn of process `id`, and waits until it has the turn again, at `until_us` or later.
    pub(super) fn pass<'a>(
        &self,
        mut world: MutexGuard<'a, World>,
        id: usize,
        until_us: Option<i64>,
    ) -> MutexGuard<'a, World> {
        world.members[id].status = until_us.map_or(Status::Ready, Status::AsleepUntil);
        self.give_away(&mut world, id);
        let mut world = self.wait(world, id);
        world.members[id].status = Status::Ready;
        self.land(&mut world);
        world
    }

    /// Lets the delayed requests that are due take effect.
    pub(super) fn land(&self, world: &mut World) {
        for (path, is_deletion) in self.objects().land(world.now_ms()) {
            if is_deletion {
                let now = world.tick();
                world.deletions.push(now);
            }
            world.record(None, What::Landed(path));
        }
    }

    /// Ends process `id`, which currently has the turn.
    pub(super) fn end(&self, id: usize) {
        let mut world = self.world();
        world.members[id].status = Status::Ended;
        let now_us = world.now_us;
        world.wake_second(id, now_us);
        self.give_away(&mut world, id);
    }

    fn give_away(&self, world: &mut World, from: usize) {
        world.turn = world.choose(from);
        if let Some(next) = world.turn {
            self.turns[next].notify_one();
        }
    }
}
