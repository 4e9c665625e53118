//! Counts how often each verb had its intended effect.

use std::collections::BTreeMap;
use std::fmt;

use deltalog_testkit::judge::Outcome;

use crate::play::Verdict;

/// The verbs that commit. All of them except plain appends can have conflicts.
const COMMITTING: [&str; 11] = [
    "add a column",
    "append",
    "append with progress",
    "cluster",
    "delete rows",
    "overwrite",
    "redefine",
    "replace rows",
    "set a property",
    "append, computed",
    "append, counted",
];

/// The verbs that do not report a commit as their outcome.
const DOING: [&str; 11] = [
    "checkpoint",
    "checkpoint of a handle",
    "clean up",
    "compact",
    "find",
    "open",
    "open a version",
    "optimize",
    "refresh",
    "reopen",
    "tail",
];

/// The outcomes of the operations of one verb.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    done: u64,
    conflicts: u64,
    failures: u64,
    crashes: u64,
}

/// The outcomes of the operations of each verb.
#[derive(Debug, Default)]
pub struct Tally {
    verbs: BTreeMap<String, Counts>,
    /// How many background tasks were completed.
    behind: u64,
    /// How many commits were cleaned up.
    deleted: u64,
    /// How many commits have moved rows.
    moves: u64,
    /// How many deletes found rows that had been moved.
    followed: u64,
}

impl Tally {
    /// Adds the outcomes of a run.
    pub fn add(&mut self, verdict: &Verdict) {
        self.behind += verdict.behind;
        self.deleted += verdict.cleaned;
        self.moves += verdict.moves;
        self.followed += verdict.followed;
        for operation in &verdict.operations {
            let counted = operation.verb == "append" && operation.write().is_some_and(|write| write.counts);
            let verb = if counted { "append, counted" } else { operation.verb };
            let counts = self.verbs.entry(verb.to_owned()).or_default();
            match &operation.outcome {
                None => counts.crashes += 1,
                Some(Outcome::Failed { kind, .. }) if kind == "CommitConflict" => counts.conflicts += 1,
                Some(Outcome::Failed { .. } | Outcome::Unknown { .. }) => counts.failures += 1,
                Some(Outcome::Done) if COMMITTING.contains(&verb) => {}
                Some(_) => counts.done += 1,
            }
        }
    }

    /// Lists the intended effects that never occurred.
    pub fn gaps(&self) -> Vec<String> {
        let counts = |verb: &str| self.verbs.get(verb).copied().unwrap_or_default();
        let missing = |what: &str, verbs: &[&str], count: fn(&Counts) -> u64| -> Vec<String> {
            let never = verbs.iter().filter(|verb| count(&counts(verb)) == 0);
            never.map(|verb| format!("'{verb}' never {what}")).collect()
        };
        let mut gaps = missing("succeeded", &[COMMITTING.as_slice(), &DOING].concat(), |counts| counts.done);
        let conflicting: Vec<&str> = COMMITTING.into_iter().filter(|verb| *verb != "append").collect();
        gaps.extend(missing("met a conflict", &conflicting, |counts| counts.conflicts));
        gaps.extend((self.behind == 0).then(|| "no background work was done after a commit".to_owned()));
        gaps.extend((self.deleted == 0).then(|| "no commit was cleaned up".to_owned()));
        gaps.extend((self.moves == 0).then(|| "no rows were moved".to_owned()));
        gaps.extend(
            (self.followed == 0).then(|| "no delete has found its rows after they were moved".to_owned()),
        );
        gaps
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}{:>10}{:>10}{:>10}{:>10}", "verb", "done", "conflict", "failed", "crashed")?;
        for (verb, Counts { done, conflicts, failures, crashes }) in &self.verbs {
            writeln!(f, "{verb:<24}{done:>10}{conflicts:>10}{failures:>10}{crashes:>10}")?;
        }
        let Self { behind, deleted, moves, followed, .. } = self;
        write!(f, "{behind} background tasks, {deleted} commits cleaned up, ")?;
        write!(f, "{moves} commits have moved rows, {followed} deletes have found moved rows")
    }
}
