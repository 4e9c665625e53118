//! Runs simulated processes until they end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::process::Process;
use super::profile::Profile;
use super::trace::{Trace, What};
use super::world::{BEGINNING_MS, Shared, World};
use crate::random::Random;
use crate::store::{Crash, Objects};

/// The maximum number of processes that replace each other after crashes.
const MOST_LIVES: u32 = 12;

/// The maximum time until a crashed process is replaced.
const LONGEST_REPLACEMENT_MS: u64 = 5_000;

/// The program of a process.
type Body<'a> = Box<dyn Fn(&Process) + Send + Sync + 'a>;

/// A process to run: its name and its program. A crash ends both of its threads, and both start over.
pub struct Actor<'a> {
    name: String,
    body: Body<'a>,
    second: Option<Body<'a>>,
}

impl<'a> Actor<'a> {
    /// Returns a process with one thread.
    pub fn new(name: impl Into<String>, body: impl Fn(&Process) + Send + Sync + 'a) -> Self {
        Self { name: name.into(), body: Box::new(body), second: None }
    }

    /// Adds a second thread to the process.
    #[must_use]
    pub fn with_second(self, body: impl Fn(&Process) + Send + Sync + 'a) -> Self {
        Self { second: Some(Box::new(body)), ..self }
    }
}

/// A store, and the groups of processes that use it one after the other.
#[derive(Debug, Default)]
pub struct Simulation {
    /// The objects of the store.
    pub objects: Arc<Mutex<Objects>>,
    /// The trace so far.
    pub trace: Trace,
    /// The times at which files were deleted, by the clock of [`Process::tick`].
    pub deletions: Vec<u64>,
    /// Problems of the simulation itself, such as a panic.
    pub failures: Vec<String>,
    now_us: i64,
    ticks: u64,
}

impl Simulation {
    /// Returns the time of the store in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        BEGINNING_MS + self.now_us / 1000
    }

    /// Runs processes until all have ended and all their requests have taken effect. A process that crashes is
    /// replaced by a process that starts over.
    pub fn run(&mut self, random: Random, profile: Profile, actors: Vec<Actor<'_>>) {
        let (mut names, mut bodies) = (Vec::new(), Vec::new());
        for Actor { name, body, second } in actors {
            let front = names.len();
            names.push((name.clone(), None));
            bodies.push(body);
            if let Some(second) = second {
                names.push((format!("{name}-behind"), Some(front)));
                bodies.push(second);
            }
        }
        let mut world = World::new(random, profile, &names, self.now_us, self.ticks);
        world.trace = std::mem::take(&mut self.trace);
        let shared = Arc::new(Shared::new(world, Arc::clone(&self.objects)));
        std::thread::scope(|scope| {
            for (id, body) in bodies.iter().enumerate() {
                let process = Process { shared: Arc::clone(&shared), id };
                scope.spawn(move || process.live(body));
            }
            shared.start();
        });
        let mut world = shared.world();
        world.now_us += i64::try_from(Process::SETTLED.as_micros()).unwrap_or_default();
        shared.land(&mut world);
        (self.now_us, self.ticks) = (world.now_us, world.tick());
        self.trace = std::mem::take(&mut world.trace);
        self.deletions.append(&mut world.deletions);
        self.failures.append(&mut world.failures);
    }
}

impl Process {
    /// Waits for the first turn and runs `body`. Runs it again after each crash.
    fn live(&self, body: &Body<'_>) {
        let mut world = self.shared.wait(self.shared.world(), self.id);
        world.members[self.id].thread = Some(std::thread::current().id());
        drop(world);
        while self.live_once(body) {}
        self.shared.end(self.id);
    }

    /// Runs `body` once; returns whether the process crashed and must be replaced.
    fn live_once(&self, body: &Body<'_>) -> bool {
        let lived = catch_unwind(AssertUnwindSafe(|| {
            if self.life() > 0 {
                self.sleep(Duration::from_millis(self.below(LONGEST_REPLACEMENT_MS)));
            }
            body(self);
        }));
        let mut world = self.shared.world();
        let member = &mut world.members[self.id];
        let has_crashed = std::mem::take(&mut member.is_dead);
        if !has_crashed {
            if let Err(panic) = lived
                && !panic.is::<Crash>()
            {
                let failure = format!("{} panicked with '{}'", member.name, text(panic.as_ref()));
                world.record(Some(self.id), What::Note(failure.clone()));
                world.failures.push(failure);
            }
            return false;
        }
        world.record(Some(self.id), What::Note("crashes".to_owned()));
        let member = &mut world.members[self.id];
        member.life += 1;
        let is_replaced = member.life < MOST_LIVES;
        is_replaced && !world.is_stopped
    }
}

fn text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
