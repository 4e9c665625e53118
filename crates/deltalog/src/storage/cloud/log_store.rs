//! The options of an S3 table whose commits are decided by DynamoDB.
//!
//! | option | other names | default |
//! | --- | --- | --- |
//! | `log_store` | `aws_s3_locking_provider` | none (the only value is `dynamodb`) |
//! | `dynamodb_table` | `delta_dynamo_table_name`, `….ddb.tableName` | `delta_log` |
//! | `dynamodb_region` | `aws_region_dynamodb`, `….ddb.region` | the region of S3 |
//! | `dynamodb_endpoint` | `aws_endpoint_url_dynamodb` | Amazon's in that region |
//! | `dynamodb_scheme` | | `s3a` |
//! | `dynamodb_ttl` | `….ddb.ttl` (seconds) | one day |
//! | `dynamodb_read_capacity`, `…_write_capacity` | `….provisionedThroughput.rcu`, `….wcu` | 5 |
//!
//! The names that begin with `aws_` or `delta_` are the same as in `deltalake`, and may also be environment variables.
//! `…` stands for `io.delta.storage.S3DynamoDBLogStore`, with or without `spark.` before it: these are the names of the
//! JVM's log store.
//!
//! **The path of a table** is part of the key of its entries, so all writers must spell it in the same way. The JVM's
//! log store uses the location as the user has written it (scheme, bucket, decoded path, without a slash at the end and
//! without user information). With Spark outside EMR, it begins with `s3a://`. `deltalake` also uses the location as it
//! is written. This crate uses `s3a://` for every spelling, so that processes that write `s3://` and `s3a://` for the
//! same table agree. If other writers use `s3://`, set `dynamodb_scheme` to `s3`.

use std::time::Duration;

use super::options::Options;
use super::{check_endpoint, check_texts};
use crate::error::{Error, Result};

/// The names of the options for a log store. If a user misspells one, the most similar name is suggested.
pub(super) const NAMES: [&str; 8] = [
    // Which service decides commits: `dynamodb`, or none. Also `aws_s3_locking_provider`.
    "log_store",
    // The table in DynamoDB. Also `delta_dynamo_table_name`. Default: delta_log.
    "dynamodb_table",
    // The region of DynamoDB. Also `aws_region_dynamodb`. If it is not set, the region of S3.
    "dynamodb_region",
    // The URL of DynamoDB. Also `aws_endpoint_url_dynamodb`. If it is not set, Amazon's URL.
    "dynamodb_endpoint",
    // The scheme in the paths of tables. All writers must use the same one. Default: s3a.
    "dynamodb_scheme",
    // How long complete entries are kept, in seconds. If it is not set, a day.
    "dynamodb_ttl",
    // The read capacity of the DynamoDB table, if it has to be created. Default: 5.
    "dynamodb_read_capacity",
    // The write capacity of the DynamoDB table, if it has to be created. Default: 5.
    "dynamodb_write_capacity",
];

const JVM_NAME: &str = "io.delta.storage.s3dynamodblogstore.";

/// One day. With a much shorter time, a slow writer could check the log before a commit, and put its own entry after
/// the entry of that commit was deleted.
const EXPIRATION: Duration = Duration::from_secs(24 * 60 * 60);

/// The settings of the entries in DynamoDB.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) table: String,
    pub(super) region: String,
    pub(super) endpoint: String,
    /// The scheme in the paths of tables.
    pub(super) scheme: String,
    /// The minimum time for which a complete entry is kept.
    pub(super) expiration: Duration,
    /// The read and the write capacity of a new table, in units.
    pub(super) capacity: (u64, u64),
}

/// The log store options among the options of a store.
#[derive(Debug, Default)]
pub(super) struct Asked {
    is_dynamodb: bool,
    table: Option<String>,
    region: Option<String>,
    endpoint: Option<String>,
    scheme: Option<String>,
    expiration: Option<Duration>,
    capacity: (Option<u64>, Option<u64>),
}

impl Asked {
    /// Removes the options of the log store from the options of the store, and returns them.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown log store, for an invalid value, and for options of DynamoDB that have no
    /// effect because `log_store` does not select it.
    pub(super) fn take(options: &mut Options) -> Result<Self> {
        let given = options.contains_any(&NAMES[1..]);
        let mut text = |name: &str, others: &[&str]| options.take_with_aliases(name, others);
        let provider = text("log_store", &["aws_s3_locking_provider"])?;
        let is_dynamodb = match provider.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None | Some("") => false,
            Some("dynamodb") => true,
            Some(other) => {
                return Err(Error::invalid_argument(format!("there is no log store '{other}'"))
                    .with_hint("the option 'log_store' is 'dynamodb', or left out"));
            }
        };
        if let (false, Some(name)) = (is_dynamodb, given) {
            return Err(Error::invalid_argument(format!("the storage option '{name}' has no effect"))
                .with_hint("set 'log_store' to 'dynamodb' as well"));
        }
        let jvm = |name: &str| format!("{JVM_NAME}{name}");
        let asked = Self {
            is_dynamodb,
            table: text("dynamodb_table", &["delta_dynamo_table_name", &jvm("ddb.tablename")])?,
            region: text("dynamodb_region", &["aws_region_dynamodb", &jvm("ddb.region")])?,
            endpoint: text("dynamodb_endpoint", &["aws_endpoint_url_dynamodb"])?,
            scheme: text("dynamodb_scheme", &[])?,
            expiration: number(text("dynamodb_ttl", &[&jvm("ddb.ttl")])?, "dynamodb_ttl")?
                .map(Duration::from_secs),
            capacity: (
                number(
                    text("dynamodb_read_capacity", &[&jvm("provisionedthroughput.rcu")])?,
                    "dynamodb_read_capacity",
                )?,
                number(
                    text("dynamodb_write_capacity", &[&jvm("provisionedthroughput.wcu")])?,
                    "dynamodb_write_capacity",
                )?,
            ),
        };
        Ok(asked)
    }

    /// Returns the settings for a store in `region`; `None` if the options do not select a log store.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid endpoint or name.
    pub(super) fn settings(
        self,
        region: Option<String>,
        allows_http: Option<&str>,
    ) -> Result<Option<Settings>> {
        if !self.is_dynamodb {
            return Ok(None);
        }
        let region = self.region.or(region).unwrap_or_else(|| "us-east-1".to_owned());
        check_endpoint(self.endpoint.as_deref(), allows_http)?;
        let endpoint = self.endpoint.unwrap_or_else(|| {
            let end = if region.starts_with("cn-") { ".cn" } else { "" };
            format!("https://dynamodb.{region}.amazonaws.com{end}")
        });
        let scheme = self.scheme.unwrap_or_else(|| "s3a".to_owned());
        if !matches!(scheme.as_str(), "s3" | "s3a" | "s3n") {
            return Err(Error::invalid_argument(format!("'{scheme}' is not a scheme of S3 locations"))
                .with_hint("the option 'dynamodb_scheme' is 's3a', 's3' or 's3n'"));
        }
        let settings = Settings {
            table: self.table.unwrap_or_else(|| "delta_log".to_owned()),
            endpoint: format!("{}/", endpoint.trim_end_matches('/')),
            region,
            scheme,
            expiration: self.expiration.unwrap_or(EXPIRATION),
            capacity: (self.capacity.0.unwrap_or(5), self.capacity.1.unwrap_or(5)),
        };
        check_texts(&["dynamodb_table", "dynamodb_region"], |name| {
            Some(if *name == "dynamodb_table" { settings.table.clone() } else { settings.region.clone() })
        })?;
        Ok(Some(settings))
    }
}

fn number(text: Option<String>, name: &str) -> Result<Option<u64>> {
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|_| Error::invalid_argument(format!("the storage option '{name}' is not a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&'static str, &'static str)]) -> Result<Option<Settings>> {
        let mut options = Options::new(given.iter().copied()).unwrap();
        let asked = Asked::take(&mut options)?;
        assert!(options.contains_any(&NAMES).is_none());
        asked.settings(Some("eu-west-1".to_owned()), None)
    }

    #[test]
    fn the_defaults_are_those_of_the_jvm_log_store() {
        let settings = settings(&[("log_store", "dynamodb")]).unwrap().unwrap();
        assert_eq!((settings.table.as_str(), settings.scheme.as_str()), ("delta_log", "s3a"));
        assert_eq!(settings.endpoint, "https://dynamodb.eu-west-1.amazonaws.com/");
        assert_eq!((settings.expiration.as_secs(), settings.capacity), (86_400, (5, 5)));
    }

    #[test]
    fn names_that_other_software_uses_are_accepted() {
        let deltalake = settings(&[
            ("AWS_S3_LOCKING_PROVIDER", "dynamodb"),
            ("DELTA_DYNAMO_TABLE_NAME", "commits"),
            ("AWS_ENDPOINT_URL_DYNAMODB", "https://ddb.example"),
            ("AWS_REGION_DYNAMODB", "us-west-2"),
        ]);
        let deltalake = deltalake.unwrap().unwrap();
        assert_eq!((deltalake.table.as_str(), deltalake.region.as_str()), ("commits", "us-west-2"));
        assert_eq!(deltalake.endpoint, "https://ddb.example/");
        let jvm = settings(&[
            ("log_store", "dynamodb"),
            ("spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName", "commits"),
            ("io.delta.storage.S3DynamoDBLogStore.provisionedThroughput.rcu", "7"),
        ]);
        let jvm = jvm.unwrap().unwrap();
        assert_eq!((jvm.table.as_str(), jvm.capacity), ("commits", (7, 5)));
    }

    #[test]
    fn options_without_effect_are_refused() {
        assert!(settings(&[]).unwrap().is_none());
        let message = |given| settings(given).unwrap_err().to_string();
        assert!(message(&[("dynamodb_table", "t")]).contains("set 'log_store' to 'dynamodb'"));
        assert!(message(&[("log_store", "zookeeper")]).contains("no log store 'zookeeper'"));
        assert!(message(&[("log_store", "dynamodb"), ("dynamodb_ttl", "soon")]).contains("not a number"));
        assert!(message(&[("log_store", "dynamodb"), ("dynamodb_scheme", "gs")]).contains("'gs'"));
        assert!(
            message(&[("log_store", "dynamodb"), ("dynamodb_endpoint", "http://host")])
                .contains("not encrypted")
        );
    }
}
