//! Parses one commit, line by line.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::vectors::Vector;

/// The parts of a commit that the checks need.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    /// `commitInfo.txnId`.
    pub txn_id: Option<String>,
    /// `commitInfo.readVersion`.
    pub read_version: Option<u64>,
    /// `commitInfo.timestamp`: the time of the commit by the writer's clock.
    pub written_ms: Option<i64>,
    /// The logical files that are added. Each is the path, with the deletion vector if there is one.
    pub adds: BTreeSet<String>,
    /// The files that are added without a data change. They may already be in the table and get new statistics.
    pub restated: BTreeSet<String>,
    /// The logical files that are removed.
    pub removes: BTreeSet<String>,
    /// The paths of the data files that are added, or added again with another deletion vector.
    pub paths: BTreeSet<String>,
    /// The paths of the data files that are removed, even if they are added again.
    pub removed_paths: BTreeSet<String>,
    /// The progress that applications record.
    pub progress: BTreeMap<String, i64>,
    /// `commitInfo.inCommitTimestamp`, if `commitInfo` is the first action.
    pub timestamp_ms: Option<i64>,
    /// The row ids of the added files, by path.
    pub row_ids: BTreeMap<String, RowIds>,
    /// The high water mark of row ids.
    pub high_water_mark: Option<i64>,
    /// The least and the greatest value of the identity column in the added files, by path.
    pub counted: BTreeMap<String, (i64, i64)>,
    /// The content of a `metaData` action.
    pub metadata: Option<TableMetadata>,
    /// Whether there is a `protocol` action.
    pub has_protocol: bool,
    /// Whether the commit only records the start or the end of a VACUUM.
    pub is_vacuum: bool,
    /// Whether the commit is an OPTIMIZE: rows are moved to other files, and the data does not change.
    pub is_move: bool,
    /// Whether the commit only adds files again with new statistics.
    pub is_description: bool,
    /// Whether the commit is a RESTORE: the files of an earlier version become the table's files again.
    pub is_restore: bool,
    /// Whether the commit is an OPTIMIZE that changes the order of rows.
    pub reorders: bool,
    /// The clustering columns, if the commit sets them.
    pub clustering: Option<Vec<String>>,
    /// `commitInfo.userMetadata`.
    pub mark: Option<String>,
    /// The deletion vectors of the added files, by logical file.
    pub(super) vectors: BTreeMap<String, Vector>,
}

/// The parts of a `metaData` action that the simulated processes change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableMetadata {
    /// The id of the table.
    pub id: String,
    /// The table properties.
    pub properties: BTreeMap<String, String>,
    /// The names of the columns, in order.
    pub columns: Vec<String>,
    /// The high water mark of the identity column.
    pub identity_mark: Option<i64>,
}

/// The row ids of a file. Protocol: "Row Tracking".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowIds {
    /// The id of the first row.
    pub base: Option<i64>,
    /// The number of rows.
    pub rows: i64,
    /// The version that added the file, as the file's action states it.
    pub commit_version: Option<i64>,
}

/// The name of the identity column, in tables that have one.
pub const IDENTITY: &str = "number";

impl Commit {
    /// Returns whether a data file is added that the table did not have before.
    pub fn is_new(&self, path: &str) -> bool {
        self.paths.contains(path) && !self.removed_paths.contains(path) && !self.is_description
    }

    /// Returns whether rows are added or removed.
    pub fn changes_files(&self) -> bool {
        !self.is_description && (!self.adds.is_empty() || !self.removes.is_empty())
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut commit = Self::default();
        let (mut infos, mut operation, mut changes_data) = (0, String::new(), false);
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
            changes_data |=
                matches!(action, "add" | "remove") && fields.get("dataChange") != Some(&Value::Bool(false));
            let is_new = match action {
                "add" => commit.add(fields)?,
                // This is the file of a deletion vector, not a data file. The action keeps clients that do not know
                // deletion vectors from deleting it.
                "remove" if text_of(fields, "path")?.starts_with("deletion_vector_") => true,
                "remove" => {
                    commit.removed_paths.insert(text_of(fields, "path")?);
                    commit.removes.insert(file(fields)?.0)
                }
                "txn" => {
                    let version =
                        fields.get("version").and_then(Value::as_i64).ok_or("a txn has no version")?;
                    commit.progress.insert(text_of(fields, "appId")?, version).is_none()
                }
                "protocol" => !std::mem::replace(&mut commit.has_protocol, true),
                "metaData" => commit.metadata.replace(TableMetadata::of(fields)?).is_none(),
                "domainMetadata"
                    if fields.get("domain").is_some_and(|domain| domain == "delta.rowTracking") =>
                {
                    let text = text_of(fields, "configuration")?;
                    let mark: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
                    let mark = mark.get("rowIdHighWaterMark").and_then(Value::as_i64);
                    std::mem::replace(&mut commit.high_water_mark, mark).is_none()
                }
                "domainMetadata"
                    if fields.get("domain").is_some_and(|domain| domain == "delta.clustering") =>
                {
                    commit.clustering.replace(clustering(fields)?).is_none()
                }
                "commitInfo" => {
                    infos += 1;
                    commit.txn_id = fields.get("txnId").and_then(Value::as_str).map(str::to_owned);
                    commit.read_version = fields.get("readVersion").and_then(Value::as_u64);
                    commit.mark = fields.get("userMetadata").and_then(Value::as_str).map(str::to_owned);
                    commit.written_ms = fields.get("timestamp").and_then(Value::as_i64);
                    let timestamp = fields.get("inCommitTimestamp").and_then(Value::as_i64);
                    commit.timestamp_ms = timestamp.filter(|_| number == 0);
                    operation = text_of(fields, "operation").unwrap_or_default();
                    let has_columns = |parameter: &str| {
                        let columns = fields.get("operationParameters").and_then(|all| all.get(parameter));
                        columns.and_then(Value::as_str).is_some_and(|columns| columns != "[]")
                    };
                    commit.reorders = has_columns("zOrderBy") || has_columns("clusterBy");
                    commit.is_vacuum = operation.starts_with("VACUUM ") && text.lines().count() == 1;
                    infos == 1
                }
                _ => true,
            };
            if !is_new {
                return Err(format!("two actions of the same kind for the same thing: '{line}'"));
            }
        }
        commit.is_restore = operation == "RESTORE";
        commit.is_description = operation == "COMPUTE STATS"
            && !changes_data
            && commit.removes.is_empty()
            && commit.metadata.is_none()
            && !commit.has_protocol
            && commit.progress.is_empty();
        commit.is_move = operation == "OPTIMIZE"
            && !changes_data
            && commit.metadata.is_none()
            && !commit.has_protocol
            && commit.progress.is_empty();
        if let Some(both) = commit.adds.intersection(&commit.removes).next() {
            return Err(format!("'{both}' is added and removed"));
        }
        Ok(commit)
    }

    /// Records an `add` action; returns whether it is the only one for its data file.
    fn add(&mut self, fields: &Map<String, Value>) -> Result<bool, String> {
        let path = text_of(fields, "path")?;
        let (name, vector) = file(fields)?;
        let stats = fields.get("stats").and_then(Value::as_str).unwrap_or("{}");
        let stats: Value = serde_json::from_str(stats).map_err(|error| error.to_string())?;
        self.row_ids.insert(path.clone(), RowIds::of(fields, &stats));
        let bound = |name: &str| stats.get(name).and_then(|bounds| bounds.get(IDENTITY)?.as_i64());
        if let Some(bounds) = bound("minValues").zip(bound("maxValues")) {
            self.counted.insert(path.clone(), bounds);
        }
        if fields.get("dataChange") == Some(&Value::Bool(false)) {
            self.restated.insert(name.clone());
        }
        if let Some(vector) = vector {
            self.vectors.insert(name.clone(), vector);
        }
        Ok(self.paths.insert(path) & self.adds.insert(name))
    }
}

impl TableMetadata {
    fn of(fields: &Map<String, Value>) -> Result<Self, String> {
        let properties = fields.get("configuration").cloned().unwrap_or_default();
        let schema: Value =
            serde_json::from_str(&text_of(fields, "schemaString")?).map_err(|error| error.to_string())?;
        let columns = schema.get("fields").and_then(Value::as_array).ok_or("a schema has no fields")?;
        let name = |column: &Value| column.get("name").and_then(Value::as_str).map(str::to_owned);
        let identity = columns.iter().find(|column| name(column).as_deref() == Some(IDENTITY));
        let mark = identity.and_then(|column| column.get("metadata")?.get("delta.identity.highWaterMark"));
        Ok(Self {
            id: text_of(fields, "id")?,
            properties: serde_json::from_value(properties).map_err(|error| error.to_string())?,
            columns: columns.iter().map(name).collect::<Option<_>>().ok_or("a column has no name")?,
            identity_mark: mark.and_then(Value::as_i64),
        })
    }
}

impl RowIds {
    fn of(fields: &Map<String, Value>, stats: &Value) -> Self {
        Self {
            base: fields.get("baseRowId").and_then(Value::as_i64),
            rows: stats.get("numRecords").and_then(Value::as_i64).unwrap_or_default(),
            commit_version: fields.get("defaultRowCommitVersion").and_then(Value::as_i64),
        }
    }
}

/// Returns the clustering columns that an action sets. (Protocol: "Clustered Table".)
fn clustering(fields: &Map<String, Value>) -> Result<Vec<String>, String> {
    if fields.get("removed") == Some(&Value::Bool(true)) {
        return Ok(Vec::new());
    }
    let found: Value = serde_json::from_str(&text_of(fields, "configuration")?).map_err(|e| e.to_string())?;
    let paths: Vec<Vec<String>> =
        serde_json::from_value(found.get("clusteringColumns").cloned().unwrap_or_default())
            .map_err(|error| error.to_string())?;
    Ok(paths.iter().map(|path| path.join(".")).collect())
}

/// Returns the logical file that an action names, and its deletion vector. (Protocol: "Derived Fields".)
fn file(fields: &Map<String, Value>) -> Result<(String, Option<Vector>), String> {
    let path = text_of(fields, "path")?;
    let Some(vector) = fields.get("deletionVector").and_then(Value::as_object) else {
        return Ok((path, None));
    };
    let vector = Vector::of(vector)?;
    Ok((format!("{path}#{}", vector.id()), Some(vector)))
}

fn text_of(fields: &Map<String, Value>, name: &str) -> Result<String, String> {
    fields
        .get(name)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| format!("an action has no '{name}'"))
}
