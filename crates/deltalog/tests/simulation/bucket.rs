//! A bucket on an S3 server whose requests can be made to fail.

use std::sync::Arc;

use deltalog_testkit::random::Random;
use deltalog_testkit::s3::{ErrorAnswer, Fault, Kind, Rule, S3Server, When};
use deltalog_testkit::simulation::Simulation;

use crate::place::ROOT;

/// The kinds of requests that write.
const WRITES: [Kind; 4] = [Kind::Put, Kind::Create, Kind::Update, Kind::CompleteUpload];

/// The longest time in milliseconds that a slow request waits.
const LATENCY_MS: u64 = 20;

/// A bucket on an S3 server. No other run uses the server at the same time.
#[derive(Clone)]
pub struct Bucket {
    pub server: Arc<S3Server>,
    pub name: String,
}

impl Bucket {
    pub fn create(server: &Arc<S3Server>, name: &str) -> Self {
        server.create_bucket(name);
        server.take_requests();
        Self { server: Arc::clone(server), name: name.to_owned() }
    }

    /// From now on, makes `per_mille` of 1,000 requests fail, in ways that the seed determines.
    pub fn fail(&self, per_mille: u64, seed: u64) {
        let mut random = Random::new(seed);
        let conflict = ErrorAnswer::new("ConditionalRequestConflict");
        let mut rules = vec![
            Rule::new(Fault::CloseBefore),
            Rule::new(Fault::Error(ErrorAnswer::new("SlowDown"))),
            Rule::new(Fault::Error(ErrorAnswer::new("InternalError"))),
            Rule::new(Fault::LatencyMs(1 + random.below(LATENCY_MS))),
            Rule::new(Fault::CutBody).on(Kind::Get).on(Kind::List),
            Rule::new(Fault::Error(conflict)).on(Kind::Create).on(Kind::Update),
        ];
        // The write takes effect, but its client gets no response, or an error.
        for fault in [Fault::CloseAfter, Fault::Error(ErrorAnswer::new("InternalError").after_effect())] {
            rules.push(WRITES.into_iter().fold(Rule::new(fault), Rule::on));
        }
        let each = per_mille / 2;
        self.server.faults(rules.into_iter().map(|rule| {
            let seed = random.number();
            rule.when(When::Chance { per_mille: each, seed })
        }));
    }

    /// Lets all requests succeed again.
    pub fn heal(&self) {
        self.server.faults([]);
    }

    /// Copies the content of the bucket, with its history, to the simulation's store.
    pub fn collect(&self, simulation: &mut Simulation) {
        let now_ms = simulation.now_ms();
        let mut objects = simulation.objects.lock().unwrap();
        for key in self.server.keys(&self.name, "") {
            let content = self.server.get_object(&self.name, &key).unwrap();
            objects.put(&key, content, now_ms);
        }
        drop(objects);
        let log = format!("{ROOT}/_delta_log/");
        for request in self.server.take_requests() {
            let is_commit = request.key.starts_with(&log) && request.key.ends_with(".json");
            let may_replace = matches!(request.kind, Kind::Put | Kind::Update | Kind::CreateUpload);
            if is_commit && may_replace && !request.key.contains("checkpoint") {
                simulation.failures.push(format!("a commit could have been replaced: {request:?}"));
            }
            if matches!(request.kind, Kind::Delete | Kind::DeleteMany) && request.key.contains("_delta_log") {
                // The time at which the file was deleted is not known.
                simulation.deletions.push(0);
            }
        }
    }
}
