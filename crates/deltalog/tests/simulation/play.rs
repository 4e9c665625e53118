//! One run: founding the table, the play itself, the audit, and the verdict.

use deltalog_testkit::judge::{Case, History, Log, check};
use deltalog_testkit::random::Random;
use deltalog_testkit::simulation::{Body, Process, Profile, Simulation, Trace};

use crate::cast::{Cast, draw_verb};
use crate::session::{ROOT, Session, data_files};
use crate::verbs::{append, open, open_all};

/// What came of a run.
pub struct Verdict {
    pub trace: Trace,
    /// What is wrong; nothing if all promises hold.
    pub broken: Vec<String>,
    /// How many versions the table has in the end.
    pub versions: usize,
}

/// Plays the run of `seed`.
pub fn play(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let profile = Profile::draw(&mut random);
    let cast = Cast::draw(&mut random);
    let (history, mut simulation) = (&History::default(), Simulation::default());
    let properties = &cast.properties;
    if cast.is_founded {
        let found = move |process: &Process| append(&mut Session::new(process, history, properties));
        simulation.run(random.fork(), Profile::calm(), vec![("founder".to_owned(), Box::new(found))]);
    }
    let bodies = cast.parts.iter().map(|part| {
        let body = move |process: &Process| {
            let mut session = Session::new(process, history, properties);
            for _ in 0..part.verbs {
                draw_verb(part.role, process.random())(&mut session);
            }
        };
        (part.name.clone(), Box::new(body) as Body<'_>)
    });
    simulation.run(random.fork(), profile.clone(), bodies.collect());
    // With a store that does not fail, everything can be read and written again.
    let audit = move |process: &Process| {
        let mut session = Session::new(process, history, properties);
        append(&mut session);
        open(&mut session);
        open_all(&mut session);
    };
    simulation.run(random.fork(), Profile::calm(), vec![("auditor".to_owned(), Box::new(audit))]);

    let mut broken = std::mem::take(&mut simulation.failures);
    let log = Log::read(&simulation.objects.lock().unwrap(), ROOT).unwrap_or_else(|error| {
        broken.push(error);
        Log::default()
    });
    let versions = log.commits.len();
    if broken.is_empty() {
        broken = check(&Case {
            log,
            operations: history.operations(),
            data_files: data_files(&simulation.objects),
            listings_are_strong: profile.lag_ms == 0,
        });
    }
    Verdict { trace: simulation.trace, broken, versions }
}
