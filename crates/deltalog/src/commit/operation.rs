//! The description of a commit. Protocol: "Commit Provenance Information".

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::protocol::CommitInfo;

/// The behavior of a write if the table already exists. The modes have the same names as in Spark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SaveMode {
    /// Add rows to the table.
    Append,
    /// Replace all rows of the table.
    Overwrite,
    /// Leave the table unchanged.
    Ignore,
    /// Return an error.
    ErrorIfExists,
}

impl SaveMode {
    /// Parses the name of a mode, ignoring case: `append`, `overwrite`, `ignore`, `error`, `errorifexists` or
    /// `default`.
    ///
    /// # Errors
    /// `InvalidArgument` for any other name.
    pub fn parse(name: &str) -> Result<Self> {
        match name.to_ascii_lowercase().as_str() {
            "append" => Ok(Self::Append),
            "overwrite" => Ok(Self::Overwrite),
            "ignore" => Ok(Self::Ignore),
            "error" | "errorifexists" | "default" => Ok(Self::ErrorIfExists),
            _ => Err(Error::invalid_argument(format!("there is no mode '{name}'"))
                .with_hint("use append, overwrite, ignore or error")),
        }
    }

    /// Returns the name that the table's history shows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "Append",
            Self::Overwrite => "Overwrite",
            Self::Ignore => "Ignore",
            Self::ErrorIfExists => "ErrorIfExists",
        }
    }
}

/// The rows that an overwrite replaces. The modes have the same names as in Spark's `partitionOverwriteMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PartitionOverwrite {
    /// All rows of the table.
    #[default]
    Static,
    /// The rows of those partitions for which the write has new rows; all other partitions are kept. In a table without
    /// partition columns, these are all rows.
    Dynamic,
}

impl PartitionOverwrite {
    /// Parses the name of a mode, ignoring case: `static` or `dynamic`.
    ///
    /// # Errors
    /// `InvalidArgument` for any other name.
    pub fn parse(name: &str) -> Result<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "static" => Ok(Self::Static),
            "dynamic" => Ok(Self::Dynamic),
            _ => Err(Error::invalid_argument(format!("there is no partition overwrite mode '{name}'"))
                .with_hint("use static or dynamic")),
        }
    }
}

/// How a write changes the schema of the table. The modes have the same names as in `deltalake`'s `schema_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SchemaMode {
    /// The schema does not change, and data that does not fit is refused.
    #[default]
    Keep,
    /// Columns and nested fields that only the data has are added to the table. Types become wider if the table allows
    /// it.
    Merge,
    /// The table gets the schema of the data. Only for an overwrite of all rows.
    Overwrite,
}

impl SchemaMode {
    /// Parses the name of a mode, ignoring case: `merge` or `overwrite`.
    ///
    /// # Errors
    /// `InvalidArgument` for any other name.
    pub fn parse(name: &str) -> Result<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "merge" => Ok(Self::Merge),
            "overwrite" => Ok(Self::Overwrite),
            _ => Err(Error::invalid_argument(format!("there is no schema mode '{name}'"))
                .with_hint("use merge or overwrite")),
        }
    }
}

/// The description of an operation, which is recorded in the commit.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Operation {
    /// The name, such as `WRITE`.
    pub name: String,
    /// The parameters.
    pub parameters: Map<String, Value>,
    /// The metrics. They are written as strings, as the JVM implementation does.
    pub metrics: Map<String, Value>,
    /// The software that requested the operation. The name of this crate is appended.
    pub engine_info: Option<String>,
    /// A text that the user provides.
    pub user_metadata: Option<String>,
    /// More fields of the commit's `commitInfo`. See [`Operation::custom_metadata`].
    custom: Map<String, Value>,
}

/// The fields of `commitInfo` that the commit sets itself. Users cannot set them, because readers rely on them.
const GENERATED: [&str; 10] = [
    "engineInfo",
    "inCommitTimestamp",
    "isBlindAppend",
    "isolationLevel",
    "operation",
    "operationMetrics",
    "operationParameters",
    "readVersion",
    "timestamp",
    "txnId",
];

/// The fields of `commitInfo` whose values must be strings.
const TEXTS: [&str; 3] = ["userId", "userMetadata", "userName"];

/// The text before the version number of this crate in `engineInfo`.
const THIS_CRATE: &str = "deltalog/";

/// Returns whether `engineInfo` says that this crate has made the commit, directly or for another engine.
pub(crate) fn names_this_crate(engine_info: &str) -> bool {
    engine_info.split(' ').any(|name| name.starts_with(THIS_CRATE))
}

impl Operation {
    /// Creates an operation with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds fields, which may include `userMetadata`, to the commit's `commitInfo`.
    ///
    /// # Errors
    /// `InvalidArgument` for a field that the commit sets itself, such as `timestamp` or `txnId`; for a
    /// `userMetadata`, `userName` or `userId` that is not a string; for `tags` that are not an object; and if
    /// `userMetadata` is already set.
    pub fn custom_metadata(mut self, fields: Map<String, Value>) -> Result<Self> {
        for (name, value) in fields {
            if GENERATED.contains(&name.as_str()) {
                return Err(Error::invalid_argument(format!(
                    "the field '{name}' is set by the commit itself"
                ))
                .with_hint("use another name"));
            }
            if TEXTS.contains(&name.as_str()) && !value.is_string() {
                return Err(Error::invalid_argument(format!(
                    "the field '{name}' must be a string, not {value}"
                )));
            }
            // The commit adds tags of its own, so the value must be an object.
            if name == "tags" && !value.is_object() {
                return Err(Error::invalid_argument(format!(
                    "the field 'tags' must be an object, not {value}"
                )));
            }
            match value {
                Value::String(text) if name == "userMetadata" => {
                    if self.user_metadata.replace(text).is_some() {
                        return Err(Error::invalid_argument("the field 'userMetadata' is given twice"));
                    }
                }
                value => {
                    self.custom.insert(name, value);
                }
            }
        }
        Ok(self)
    }

    /// Adds a parameter.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a metric.
    #[must_use]
    pub fn metric(mut self, name: &str, value: u64) -> Self {
        self.metrics.insert(name.to_owned(), Value::String(value.to_string()));
        self
    }

    /// Returns the `commitInfo` of a commit, with `tags` in addition to those that the user has set.
    pub(super) fn commit_info(&self, txn_id: &str, timestamp_ms: i64, tags: &[(&str, &str)]) -> CommitInfo {
        let mut other = self.custom.clone();
        if !tags.is_empty() {
            let all = other.entry("tags").or_insert_with(|| Value::Object(Map::new()));
            if let Some(all) = all.as_object_mut() {
                all.extend(tags.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
            }
        }
        let this = format!("{THIS_CRATE}{}", env!("CARGO_PKG_VERSION"));
        CommitInfo {
            timestamp: Some(timestamp_ms),
            operation: Some(self.name.clone()),
            operation_parameters: Some(self.parameters.clone()),
            operation_metrics: (!self.metrics.is_empty()).then(|| self.metrics.clone()),
            engine_info: Some(
                self.engine_info.as_ref().map_or_else(|| this.clone(), |engine| format!("{engine} {this}")),
            ),
            user_metadata: self.user_metadata.clone(),
            txn_id: Some(txn_id.to_owned()),
            other,
            ..CommitInfo::default()
        }
    }
}
