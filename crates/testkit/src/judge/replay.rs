//! A naive replay: every line of every commit, oldest first. Protocol: "Action Reconciliation".

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::store::Objects;

/// One commit.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// `commitInfo.txnId`.
    pub txn_id: Option<String>,
    /// `commitInfo.readVersion`.
    pub read_version: Option<u64>,
    /// The logical files that are added: the path, and the deletion vector if there is one.
    pub adds: BTreeSet<String>,
    /// The logical files that are removed.
    pub removes: BTreeSet<String>,
    /// The paths of the data files that are added, or added again with another deletion vector.
    pub paths: BTreeSet<String>,
    /// The paths of the data files that are removed, or removed to be added again.
    pub removed_paths: BTreeSet<String>,
    /// How many rows of each file that is added its deletion vector deletes.
    pub deleted: BTreeMap<String, i64>,
    /// The progress of applications.
    pub progress: BTreeMap<String, i64>,
    /// `commitInfo.inCommitTimestamp`, if `commitInfo` is the first action.
    pub timestamp_ms: Option<i64>,
    /// The row ids of the files that are added, by path.
    pub row_ids: BTreeMap<String, RowIds>,
    /// The high water mark of row ids.
    pub high_water_mark: Option<i64>,
    /// The table properties, if there is a `metaData` action.
    pub properties: BTreeMap<String, String>,
    /// Whether there is a `protocol` action.
    pub has_protocol: bool,
    /// Whether there is a `metaData` action.
    pub has_metadata: bool,
}

/// The row ids of a file. Protocol: "Row Tracking".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowIds {
    /// The id of the first row.
    pub base: Option<i64>,
    /// The number of rows.
    pub rows: i64,
    /// The version that added the file, as it says itself.
    pub commit_version: Option<i64>,
}

/// The state of the table at one version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The live logical files.
    pub files: BTreeSet<String>,
    /// The newest progress of each application.
    pub progress: BTreeMap<String, i64>,
}

/// A log, from version 0 on.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// The commits, by version.
    pub commits: Vec<Commit>,
    /// The states, by version.
    pub states: Vec<State>,
}

impl Log {
    /// Reads the log below `root` in `objects`: every commit that was ever there, and the only content that it had.
    ///
    /// # Errors
    /// What is wrong with the log: a commit that was replaced, and the errors of [`Log::replay`].
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
        Self::replay(commits)
    }

    /// Replays the commits among `files`, names with contents in the order of the names.
    ///
    /// # Errors
    /// What is wrong with the log: a gap, a line that is not one action, a file that is added or removed twice.
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
            Some(first) if !first.has_protocol || !first.has_metadata => {
                Err("version 0 lacks protocol or metaData".to_owned())
            }
            _ => Ok(log),
        }
    }
}

impl Log {
    /// Returns whether the table was created with the property `name` set to true.
    pub fn is_enabled(&self, name: &str) -> bool {
        let first = self.commits.first().and_then(|first| first.properties.get(name));
        first.is_some_and(|value| value == "true")
    }
}

impl Commit {
    /// Returns whether a data file is added that the table did not have before.
    pub fn is_new(&self, path: &str) -> bool {
        self.paths.contains(path) && !self.removed_paths.contains(path)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut commit = Self::default();
        let mut infos = 0;
        for (number, line) in text.lines().enumerate() {
            let value: Value = serde_json::from_str(line).map_err(|error| format!("{error} in '{line}'"))?;
            let Some((action, fields)) =
                value.as_object().filter(|object| object.len() == 1).and_then(|object| {
                    let (name, fields) = object.iter().next()?;
                    Some((name.as_str(), fields.as_object()?))
                })
            else {
                return Err(format!("the line is not one action: '{line}'"));
            };
            let is_new = match action {
                "add" => {
                    let path = text_of(fields, "path")?;
                    let vector = fields.get("deletionVector").and_then(|vector| vector.get("cardinality"));
                    let deleted = vector.and_then(Value::as_i64).unwrap_or_default();
                    commit.deleted.insert(path.clone(), deleted);
                    commit.row_ids.insert(path.clone(), RowIds::of(fields)?);
                    commit.paths.insert(path) & commit.adds.insert(file(fields)?)
                }
                // It is no data file: clients that know no deletion vectors are not to delete it.
                "remove" if text_of(fields, "path")?.starts_with("deletion_vector_") => true,
                "remove" => {
                    commit.removed_paths.insert(text_of(fields, "path")?);
                    commit.removes.insert(file(fields)?)
                }
                "txn" => {
                    let version =
                        fields.get("version").and_then(Value::as_i64).ok_or("a txn has no version")?;
                    commit.progress.insert(text_of(fields, "appId")?, version).is_none()
                }
                "protocol" => !std::mem::replace(&mut commit.has_protocol, true),
                "metaData" => {
                    let properties = fields.get("configuration").cloned().unwrap_or_default();
                    commit.properties =
                        serde_json::from_value(properties).map_err(|error| error.to_string())?;
                    !std::mem::replace(&mut commit.has_metadata, true)
                }
                "domainMetadata"
                    if fields.get("domain").is_some_and(|domain| domain == "delta.rowTracking") =>
                {
                    let text = text_of(fields, "configuration")?;
                    let mark: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
                    let mark = mark.get("rowIdHighWaterMark").and_then(Value::as_i64);
                    std::mem::replace(&mut commit.high_water_mark, mark).is_none()
                }
                "commitInfo" => {
                    infos += 1;
                    commit.txn_id = fields.get("txnId").and_then(Value::as_str).map(str::to_owned);
                    commit.read_version = fields.get("readVersion").and_then(Value::as_u64);
                    let timestamp = fields.get("inCommitTimestamp").and_then(Value::as_i64);
                    commit.timestamp_ms = timestamp.filter(|_| number == 0);
                    infos == 1
                }
                _ => true,
            };
            if !is_new {
                return Err(format!("two actions of one kind for one thing: '{line}'"));
            }
        }
        if let Some(both) = commit.adds.intersection(&commit.removes).next() {
            return Err(format!("'{both}' is added and removed"));
        }
        Ok(commit)
    }
}

impl RowIds {
    fn of(fields: &Map<String, Value>) -> Result<Self, String> {
        let stats = fields.get("stats").and_then(Value::as_str).unwrap_or("{}");
        let stats: Value = serde_json::from_str(stats).map_err(|error| error.to_string())?;
        Ok(Self {
            base: fields.get("baseRowId").and_then(Value::as_i64),
            rows: stats.get("numRecords").and_then(Value::as_i64).unwrap_or_default(),
            commit_version: fields.get("defaultRowCommitVersion").and_then(Value::as_i64),
        })
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
            if !self.files.insert(file.clone()) {
                return Err(format!("'{file}' is added, but it is live"));
            }
        }
        self.progress.extend(commit.progress.clone());
        Ok(())
    }
}

/// Returns the version of the commit with this file name.
fn version_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json")?;
    (digits.len() == 20).then(|| digits.parse().ok()).flatten()
}

/// Returns the logical file of an action. Protocol: "Derived Fields".
fn file(fields: &Map<String, Value>) -> Result<String, String> {
    let path = text_of(fields, "path")?;
    let Some(vector) = fields.get("deletionVector").and_then(Value::as_object) else { return Ok(path) };
    let offset = vector.get("offset").map(|offset| format!("@{offset}")).unwrap_or_default();
    Ok(format!("{path}#{}{}{offset}", text_of(vector, "storageType")?, text_of(vector, "pathOrInlineDv")?))
}

fn text_of(fields: &Map<String, Value>, name: &str) -> Result<String, String> {
    fields
        .get(name)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| format!("an action has no '{name}'"))
}
