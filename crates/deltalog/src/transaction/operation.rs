//! What a commit says about itself. Protocol: "Commit Provenance Information".

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::protocol::CommitInfo;

/// What to do where there are data already; named as in Spark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SaveMode {
    /// Add to it.
    Append,
    /// Replace it.
    Overwrite,
    /// Leave it alone.
    Ignore,
    /// Fail.
    ErrorIfExists,
}

impl SaveMode {
    /// The mode of this name, in any case: `append`, `overwrite`, `ignore`, `error`, `errorifexists`.
    ///
    /// # Errors
    /// `InvalidArgument`, with the names there are.
    pub fn parse(name: &str) -> Result<Self> {
        match name.to_ascii_lowercase().as_str() {
            "append" => Ok(Self::Append),
            "overwrite" => Ok(Self::Overwrite),
            "ignore" => Ok(Self::Ignore),
            "error" | "errorifexists" | "default" => Ok(Self::ErrorIfExists),
            _ => Err(Error::invalid_argument(format!("there is no mode '{name}'"))
                .with_hint("the modes are append, overwrite, ignore and error")),
        }
    }

    /// The name that the history shows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Append => "Append",
            Self::Overwrite => "Overwrite",
            Self::Ignore => "Ignore",
            Self::ErrorIfExists => "ErrorIfExists",
        }
    }
}

/// What was done, by whom, with what figures.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Operation {
    /// Such as `WRITE`.
    pub name: String,
    /// Its parameters.
    pub parameters: Map<String, Value>,
    /// Its figures. The JVM implementation writes them as strings, and so does this crate.
    pub metrics: Map<String, Value>,
    /// Which software asked; this crate adds itself.
    pub engine_info: Option<String>,
    /// The user's own words.
    pub user_metadata: Option<String>,
    /// Further fields of the commit's `commitInfo`. See [`Operation::custom_metadata`].
    custom: Map<String, Value>,
}

/// The fields of `commitInfo` that the commit sets. In these, values of a user would be taken for facts.
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

/// The fields of `commitInfo` that hold a user's text.
const TEXTS: [&str; 3] = ["userId", "userMetadata", "userName"];

impl Operation {
    /// An operation of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds fields to the commit's `commitInfo`, among them `userMetadata`.
    ///
    /// # Errors
    /// `InvalidArgument` for a field that the commit sets, such as `timestamp` or `txnId`, and for a
    /// `userMetadata`, `userName` or `userId` that is not text or is given twice.
    pub fn custom_metadata(mut self, fields: Map<String, Value>) -> Result<Self> {
        for (name, value) in fields {
            if GENERATED.contains(&name.as_str()) {
                return Err(Error::invalid_argument(format!(
                    "the field '{name}' is set by the commit itself"
                ))
                .with_hint("use another name"));
            }
            if TEXTS.contains(&name.as_str()) && !value.is_string() {
                return Err(Error::invalid_argument(format!("the field '{name}' is text, not {value}")));
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

    /// With a parameter.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// With a figure.
    #[must_use]
    pub fn metric(mut self, name: &str, value: u64) -> Self {
        self.metrics.insert(name.to_owned(), Value::String(value.to_string()));
        self
    }

    pub(super) fn commit_info(
        &self,
        txn_id: &str,
        timestamp_ms: i64,
        read_version: Option<u64>,
        is_blind_append: bool,
    ) -> CommitInfo {
        let this = concat!("deltalog/", env!("CARGO_PKG_VERSION"));
        CommitInfo {
            timestamp: Some(timestamp_ms),
            operation: Some(self.name.clone()),
            operation_parameters: Some(self.parameters.clone()),
            read_version: read_version.and_then(|version| i64::try_from(version).ok()),
            is_blind_append: Some(is_blind_append),
            operation_metrics: (!self.metrics.is_empty()).then(|| self.metrics.clone()),
            engine_info: Some(
                self.engine_info
                    .as_ref()
                    .map_or_else(|| this.to_owned(), |engine| format!("{engine} {this}")),
            ),
            user_metadata: self.user_metadata.clone(),
            txn_id: Some(txn_id.to_owned()),
            other: self.custom.clone(),
            ..CommitInfo::default()
        }
    }
}
