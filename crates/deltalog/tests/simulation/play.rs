//! Plays one run: creates the table, runs the processes, reads everything in a final audit, and checks all results.

use std::collections::BTreeMap;

use deltalog_testkit::judge::{Case, History, Log, Operation, Write, check};
use deltalog_testkit::random::Random;
use deltalog_testkit::simulation::{Actor, Process, Profile, Simulation, Trace};

use crate::behind::{Behind, wait};
use crate::cast::{Cast, Part, draw_verb};
use crate::place::{Place, ROOT};
use crate::rows::rows_of;
use crate::session::{MOST_SKEW_MS, Session, data_files};
use crate::verbs::VACUUM_RETENTION_MS;
use crate::verbs::{append, open, open_all};

const DAY_MS: i64 = 24 * 3_600_000;

/// The results of a run.
pub struct Verdict {
    pub trace: Trace,
    /// The broken promises; empty if all promises hold.
    pub broken: Vec<String>,
    /// How many versions the table has at the end.
    pub versions: usize,
    /// The operations of the processes, and their results.
    pub operations: Vec<Operation>,
    /// How many background tasks were done.
    pub behind: u64,
    /// How many commits the clean-up of the log has removed.
    pub cleaned: u64,
    /// How many commits have moved rows to other files.
    pub moves: u64,
    /// How many deletes found their rows in files to which they had been moved.
    pub followed: u64,
}

/// Plays the run of `seed` in the simulation.
pub fn play(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let mut profile = Profile::draw(&mut random);
    let cast = Cast::draw(&mut random, Place::Simulated);
    if cast.pause_days > 0 {
        // If listings lag behind, a reader may see neither a new checkpoint nor the commits that were deleted because
        // of it. So a table with an expired log is only promised to be readable if listings do not lag behind.
        profile.lag_ms = 0;
    }
    play_with(random, profile, &cast)
}

/// Plays the run of `seed` with the table in `place`, in real time.
pub fn play_at(place: Place, seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let profile = Profile::real(*random.pick(&[0, 20, 60, 150]));
    let cast = Cast::draw(&mut random, place);
    play_with(random, profile, &cast)
}

fn play_with(mut random: Random, profile: Profile, cast: &Cast) -> Verdict {
    let calm = Profile { faults: 0, bursts: 0, crashes: 0, lag_ms: 0, ..profile.clone() };
    let (history, mut simulation) = (&History::default(), Simulation::default());
    if cast.is_founded {
        let found = move |process: &Process| append(&mut Session::new(process, history, cast));
        simulation.run(random.fork(), calm.clone(), vec![Actor::new("founder", found)]);
    }
    let queues: Vec<Behind> = cast.parts.iter().map(|_| Behind::default()).collect();
    let actors = cast.parts.iter().zip(&queues).map(|(part, queue)| actor(part, queue, history, cast));
    cast.place.fail(profile.faults, random.number());
    simulation.run(random.fork(), profile.clone(), actors.collect());
    cast.place.heal();
    // When the store no longer fails, everything can be read and written.
    let audit = move |process: &Process| {
        let mut session = Session::new(process, history, cast);
        append(&mut session);
        open(&mut session);
        open_all(&mut session);
    };
    simulation.run(random.fork(), calm, vec![Actor::new("auditor", audit)]);
    cast.place.collect(&mut simulation);
    let mut verdict = judge(simulation, history.operations(), cast, profile.lag_ms == 0);
    verdict.behind = queues.iter().map(Behind::done).sum();
    verdict
}

/// Returns the process that does what `part` describes.
fn actor<'a>(part: &'a Part, queue: &'a Behind, history: &'a History, cast: &'a Cast) -> Actor<'a> {
    let body = move |process: &Process| {
        let mut session = Session::new(process, history, cast);
        let background = part.has_background.then(|| queue.begin(process));
        if let Some(background) = &background {
            session.do_behind(background);
        }
        play_part(part, &mut session, cast);
        if let Some(background) = &background {
            wait(process, background);
        }
    };
    let actor = Actor::new(part.name.clone(), body);
    if part.has_background { actor.with_second(move |second| queue.follow(second)) } else { actor }
}

/// Performs `part.verbs` random operations. If the run has a second day that is still to come, waits for it and
/// performs the same number again.
fn play_part(part: &Part, session: &mut Session<'_>, cast: &Cast) {
    let process = session.process;
    let next_day_ms = Process::BEGINNING_MS + cast.pause_days * DAY_MS;
    if cast.pause_days > 0 && process.now_ms() < next_day_ms {
        (0..part.verbs).for_each(|_| draw_verb(part.role, process.random())(session));
        process.sleep_until(next_day_ms);
    }
    (0..part.verbs).for_each(|_| draw_verb(part.role, process.random())(session));
}

fn judge(simulation: Simulation, operations: Vec<Operation>, cast: &Cast, is_strong: bool) -> Verdict {
    let now_ms = simulation.now_ms();
    let mut broken = simulation.failures;
    let objects = simulation.objects.lock().unwrap();
    let log = Log::read(&objects, ROOT).unwrap_or_else(|error| {
        broken.push(error);
        Log::default()
    });
    let versions = log.commits.len();
    let moves = log.commits.iter().filter(|commit| commit.is_move).count() as u64;
    let mut followed = 0;
    if broken.is_empty() {
        let writes = || operations.iter().filter_map(Operation::write);
        let written = |path: &&String| writes().any(|write: &Write| write.files.contains_key(*path));
        let added = log.commits.iter().flat_map(|commit| &commit.paths);
        let copied = added.filter(|path| !written(path)).map(|path| (path.clone(), rows_of(&objects, path)));
        let copied: BTreeMap<String, Vec<i64>> = copied.collect();
        let skew_ms = MOST_SKEW_MS as i64;
        let midnight_ms = (now_ms + skew_ms).div_euclid(DAY_MS) * DAY_MS;
        let case = Case {
            copied,
            data_files: data_files(&objects),
            listings_are_strong: is_strong,
            // The retention is one day.
            expired_before_ms: (cast.pause_days > 0).then(|| midnight_ms - DAY_MS + skew_ms),
            vacuumed_before_ms: Some(now_ms + 2 * skew_ms - VACUUM_RETENTION_MS),
            deletions: simulation.deletions,
            log,
            operations: operations.clone(),
        };
        followed = case.followed();
        broken = check(&case);
    }
    let is_gone = |version: &usize| objects.get(&format!("{ROOT}/_delta_log/{version:020}.json")).is_none();
    let cleaned = (0..versions).filter(is_gone).count() as u64;
    drop(objects);
    Verdict { trace: simulation.trace, broken, versions, operations, behind: 0, cleaned, moves, followed }
}
