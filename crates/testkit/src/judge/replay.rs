//! A naive replay that applies every line of every commit, the oldest first. (Protocol: "Action Reconciliation".)

use std::collections::{BTreeMap, BTreeSet};

use super::commit::{Commit, TableMetadata};
use crate::store::Objects;

/// The state of the table at one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The live logical files.
    pub files: BTreeSet<String>,
    /// The newest progress of each application.
    pub progress: BTreeMap<String, i64>,
    /// The newest metadata.
    pub metadata: TableMetadata,
    /// The clustering columns.
    pub clustering: Vec<String>,
}

/// A log, from version 0 on.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// The commits, by version.
    pub commits: Vec<Commit>,
    /// The states, by version.
    pub states: Vec<State>,
    /// The rows that deletion vectors delete, by logical file.
    pub deleted: BTreeMap<String, BTreeSet<u64>>,
}

impl Log {
    /// Reads the log below `root` in `objects`: every commit that ever existed, even if it has been deleted since,
    /// and the deletion vectors to which the commits refer.
    ///
    /// # Errors
    /// Returns the problem of the log: a commit that was overwritten, a deletion vector that cannot be read, or a
    /// problem that [`Log::replay`] returns.
    pub fn read(objects: &Objects, root: &str) -> Result<Self, String> {
        let prefix = format!("{root}/_delta_log/");
        let mut commits = Vec::new();
        for (path, contents) in objects.contents(&prefix) {
            let name = &path[prefix.len()..];
            match contents {
                [bytes] => commits.push((name, bytes)),
                _ if version_of(name).is_none() => {}
                _ => return Err(format!("{name} was written {} times", contents.len())),
            }
        }
        let mut log = Self::replay(commits)?;
        for (file, vector) in log.commits.iter().flat_map(|commit| &commit.vectors) {
            let rows = vector.rows(objects, root).map_err(|error| format!("'{file}': {error}"))?;
            log.deleted.insert(file.clone(), rows);
        }
        Ok(log)
    }

    /// Replays the commits among `files`, which are pairs of a name and its contents, ordered by name.
    ///
    /// # Errors
    /// Returns the problem of the log: a missing version, a line that is not one action, or a file that is added or
    /// removed twice.
    pub fn replay<'a>(
        files: impl IntoIterator<Item = (&'a str, impl AsRef<[u8]> + 'a)>,
    ) -> Result<Self, String> {
        let mut log = Self::default();
        let mut state = State::default();
        for (name, bytes) in files {
            let Some(version) = version_of(name) else { continue };
            if version != log.commits.len() as u64 {
                return Err(format!("version {} is missing before version {version}", log.commits.len()));
            }
            let text =
                std::str::from_utf8(bytes.as_ref()).map_err(|error| format!("version {version}: {error}"))?;
            let commit = Commit::parse(text).map_err(|error| format!("version {version}: {error}"))?;
            state.apply(&commit).map_err(|error| format!("version {version}: {error}"))?;
            log.commits.push(commit);
            log.states.push(state.clone());
        }
        match log.commits.first() {
            Some(first) if !first.has_protocol || first.metadata.is_none() => {
                Err("version 0 lacks protocol or metaData".to_owned())
            }
            _ => Ok(log),
        }
    }

    /// Returns whether the table was created with the property `name` set to true.
    pub fn is_enabled(&self, name: &str) -> bool {
        let first = self.states.first().and_then(|first| first.metadata.properties.get(name));
        first.is_some_and(|value| value == "true")
    }

    /// Returns the state of the version before `version`.
    pub fn before(&self, version: usize) -> Option<&State> {
        self.states.get(version.checked_sub(1)?)
    }
}

impl State {
    fn apply(&mut self, commit: &Commit) -> Result<(), String> {
        for file in &commit.removes {
            if !self.files.remove(file) {
                return Err(format!("'{file}' is removed, but it is not live"));
            }
        }
        for file in &commit.adds {
            let is_live = !self.files.insert(file.clone());
            if is_live && !commit.restated.contains(file) {
                return Err(format!("'{file}' is added, but it is live"));
            }
            if commit.is_description && !is_live {
                return Err(format!("'{file}' is described anew, but it is not live"));
            }
        }
        self.progress.extend(commit.progress.clone());
        if let Some(metadata) = &commit.metadata {
            self.metadata = metadata.clone();
        }
        if let Some(columns) = &commit.clustering {
            self.clustering.clone_from(columns);
        }
        Ok(())
    }
}

/// Returns the version of the commit with this file name.
fn version_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json")?;
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}
