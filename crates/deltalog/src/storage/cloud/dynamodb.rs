//! DynamoDB as a commit coordinator, with the same table as the JVM's `S3DynamoDBLogStore`.
//!
//! ```text
//! tablePath (S, hash key)     s3a://bucket/path
//! fileName (S, range key)     00000000000000000007.json
//! tempPath (S)                .tmp/00000000000000000007.json.<uuid>
//! complete (S)                "true" or "false"
//! expireTime (N)              seconds since 1970; only of complete entries
//! ```
//!
//! Requests are signed with the credentials of the S3 client, and use its settings for connections. A request without a
//! response is sent again. This is safe even for the conditional put: if the first try has put the entry, the caller
//! recognizes the entry as its own.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::client::{HttpClient, HttpErrorKind, HttpRequest, HttpRequestBody};
use object_store::{Error as StoreError, Result};
use serde_json::{Value, json};

use super::log_store::Settings;
use crate::error;
use crate::runtime::clock;
use crate::storage::coordinator::{CommitCoordinator, CoordinatorEntry};
use crate::storage::remote::Remote;

const TABLE_PATH: &str = "tablePath";
const FILE_NAME: &str = "fileName";
const TEMP_PATH: &str = "tempPath";
const COMPLETE: &str = "complete";
const EXPIRE_TIME: &str = "expireTime";

/// The maximum number of times that a request is sent.
const TRIES: u32 = 4;
/// The pause before a request is sent for the second time. It doubles each time after that.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The maximum number of requests for the state of a new table, and the pause between two of them.
const LOOKS: u32 = 200;
const LOOK_PAUSE: Duration = Duration::from_millis(100);

const STORE: &str = "DynamoDB";

/// The DynamoDB client of a process.
pub(in crate::storage) struct DynamoDb {
    client: HttpClient,
    credentials: AwsCredentialProvider,
    settings: Settings,
}

/// The reason why a request failed.
enum Failure {
    /// DynamoDB's own code for the reason, such as `ConditionalCheckFailedException`.
    Refused(String),
    Other(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

impl Failure {
    fn is(&self, code: &str) -> bool {
        matches!(self, Self::Refused(found) if found == code)
    }

    fn into_error(self) -> StoreError {
        match self {
            Self::Refused(code) => failed(format!("DynamoDB answers {code}")),
            Self::Other(error) => error,
        }
    }
}

fn failed(message: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Generic { store: STORE, source: message.into() }
}

impl DynamoDb {
    pub(super) fn new(client: HttpClient, credentials: AwsCredentialProvider, settings: Settings) -> Self {
        Self { client, credentials, settings }
    }

    /// Sends a request repeatedly, until its response is final.
    async fn call(&self, operation: &str, body: &Value) -> Result<Value, Failure> {
        let mut attempt = 0;
        loop {
            let failure = match self.call_once(operation, body).await {
                Ok(answer) => return Ok(answer),
                Err((failure, true)) if attempt + 1 < TRIES => failure,
                Err((failure, _)) => return Err(failure),
            };
            tracing::debug!(operation, attempt, error = %failure.into_error(), "a request to DynamoDB is sent again");
            tokio::time::sleep(FIRST_PAUSE * (1 << attempt)).await;
            attempt += 1;
        }
    }

    /// Sends a request once. If it fails, also returns whether it should be sent again.
    async fn call_once(&self, operation: &str, body: &Value) -> Result<Value, (Failure, bool)> {
        let finally = |error: StoreError| (Failure::Other(error), false);
        let credentials = self.credentials.get_credential().await.map_err(finally)?;
        let mut request = HttpRequest::new(HttpRequestBody::from(Bytes::from(body.to_string())));
        *request.method_mut() = "POST".parse().map_err(|error| finally(failed(error_box(error))))?;
        let endpoint = self.settings.endpoint.parse();
        *request.uri_mut() = endpoint.map_err(|error| finally(failed(error_box(error))))?;
        let headers = [
            ("content-type", "application/x-amz-json-1.0".to_owned()),
            ("x-amz-target", format!("DynamoDB_20120810.{operation}")),
        ];
        for (name, value) in headers {
            let value = value.parse().map_err(|error| finally(failed(error_box(error))))?;
            request.headers_mut().insert(name, value);
        }
        AwsAuthorizer::new(&credentials, "dynamodb", &self.settings.region)
            .try_authorize(&mut request, None)
            .map_err(finally)?;
        let response = self.client.execute(request).await.map_err(|error| {
            use HttpErrorKind::{Connect, Interrupted, Request, Timeout};
            let again = matches!(error.kind(), Connect | Interrupted | Request | Timeout);
            (Failure::Other(failed(error)), again)
        })?;
        let (parts, body) = response.into_parts();
        let body = body.bytes().await.map_err(|error| (Failure::Other(failed(error)), true))?;
        if parts.status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| (Failure::Other(failed(error)), true));
        }
        let refusal: Value = serde_json::from_slice(&body).unwrap_or_default();
        let code = refusal["__type"].as_str().unwrap_or_default();
        let code = code.rsplit('#').next().unwrap_or_default().to_owned();
        let is_busy = matches!(
            code.as_str(),
            "ProvisionedThroughputExceededException" | "ThrottlingException" | "RequestLimitExceeded"
        );
        let again = is_busy || parts.status.is_server_error();
        Err((
            if code.is_empty() { failed(parts.status.to_string()).into() } else { Failure::Refused(code) },
            again,
        ))
    }

    async fn put_if_absent(&self, entry: &CoordinatorEntry) -> Result<bool> {
        let body = json!({
            "TableName": self.settings.table,
            "Item": item(entry, None),
            "ConditionExpression": format!("attribute_not_exists({FILE_NAME})"),
        });
        let put = match self.call("PutItem", &body).await {
            Err(failure) if failure.is("ResourceNotFoundException") => {
                self.create_table().await?;
                self.call("PutItem", &body).await
            }
            put => put,
        };
        match put {
            Ok(_) => Ok(true),
            Err(failure) if failure.is("ConditionalCheckFailedException") => Ok(false),
            Err(failure) => Err(failure.into_error()),
        }
    }

    async fn get(&self, table_path: &str, file_name: &str) -> Result<Option<CoordinatorEntry>> {
        let body = json!({
            "TableName": self.settings.table,
            "Key": { TABLE_PATH: { "S": table_path }, FILE_NAME: { "S": file_name } },
            "ConsistentRead": true,
        });
        match self.call("GetItem", &body).await {
            Ok(answer) => answer.get("Item").map(entry_of).transpose(),
            Err(failure) if failure.is("ResourceNotFoundException") => Ok(None),
            Err(failure) => Err(failure.into_error()),
        }
    }

    async fn newest(&self, table_path: &str) -> Result<Option<CoordinatorEntry>> {
        let body = json!({
            "TableName": self.settings.table,
            "KeyConditionExpression": format!("{TABLE_PATH} = :path"),
            "ExpressionAttributeValues": { ":path": { "S": table_path } },
            "ConsistentRead": true,
            "ScanIndexForward": false,
            "Limit": 1,
        });
        match self.call("Query", &body).await {
            Ok(answer) => answer["Items"].get(0).map(entry_of).transpose(),
            Err(failure) if failure.is("ResourceNotFoundException") => Ok(None),
            Err(failure) => Err(failure.into_error()),
        }
    }

    async fn complete(&self, entry: &CoordinatorEntry) -> Result<()> {
        let now = clock::system_time().duration_since(UNIX_EPOCH).unwrap_or_default();
        let expires = now.as_secs() + self.settings.expiration.as_secs();
        let body = json!({
            "TableName": self.settings.table,
            "Item": item(entry, Some(expires)),
            "ConditionExpression": format!("{TEMP_PATH} = :path"),
            "ExpressionAttributeValues": { ":path": { "S": entry.temp_path } },
        });
        match self.call("PutItem", &body).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.is("ConditionalCheckFailedException") => Ok(()),
            Err(failure) => Err(failure.into_error()),
        }
    }

    /// Creates the table in the same way as the JVM's log store, and waits until it can be used.
    async fn create_table(&self) -> Result<()> {
        let (read, write) = self.settings.capacity;
        let body = json!({
            "TableName": self.settings.table,
            "AttributeDefinitions": [
                { "AttributeName": TABLE_PATH, "AttributeType": "S" },
                { "AttributeName": FILE_NAME, "AttributeType": "S" },
            ],
            "KeySchema": [
                { "AttributeName": TABLE_PATH, "KeyType": "HASH" },
                { "AttributeName": FILE_NAME, "KeyType": "RANGE" },
            ],
            "ProvisionedThroughput": { "ReadCapacityUnits": read, "WriteCapacityUnits": write },
        });
        match self.call("CreateTable", &body).await {
            Ok(_) => tracing::info!(table = self.settings.table, "a DynamoDB table was created"),
            // Another process has created the table first.
            Err(failure) if failure.is("ResourceInUseException") => {}
            Err(failure) => return Err(failure.into_error()),
        }
        let name = json!({ "TableName": self.settings.table });
        for _ in 0..LOOKS {
            match self.call("DescribeTable", &name).await {
                Ok(answer) if answer["Table"]["TableStatus"] == "ACTIVE" => return Ok(()),
                Err(failure) if !failure.is("ResourceNotFoundException") => return Err(failure.into_error()),
                _ => tokio::time::sleep(LOOK_PAUSE).await,
            }
        }
        Err(failed(format!("the new table {} is not active yet", self.settings.table)))
    }
}

fn error_box(
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Box<dyn std::error::Error + Send + Sync> {
    error.into()
}

fn item(entry: &CoordinatorEntry, expires: Option<u64>) -> Value {
    let mut item = json!({
        TABLE_PATH: { "S": entry.table_path },
        FILE_NAME: { "S": entry.file_name },
        TEMP_PATH: { "S": entry.temp_path },
        COMPLETE: { "S": expires.is_some().to_string() },
    });
    if let (Some(expires), Some(item)) = (expires, item.as_object_mut()) {
        item.insert(EXPIRE_TIME.to_owned(), json!({ "N": expires.to_string() }));
    }
    item
}

fn entry_of(item: &Value) -> Result<CoordinatorEntry> {
    let text = |name: &str| match item[name]["S"].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(failed(format!("an item has no text '{name}'"))),
    };
    let entry = CoordinatorEntry::new(text(TABLE_PATH)?, text(FILE_NAME)?, text(TEMP_PATH)?);
    Ok(entry.with_complete(text(COMPLETE)? == "true"))
}

impl fmt::Debug for DynamoDb {
    /// Leaves out the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDb").finish_non_exhaustive()
    }
}

/// The coordinator for the tables of a store. It uses the store's clients.
#[derive(Debug)]
pub(super) struct DynamoDbCoordinator(pub(super) Remote);

impl DynamoDbCoordinator {
    fn run<T, F>(&self, request: impl FnOnce(Arc<DynamoDb>) -> F + Send + 'static) -> error::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let asked = self.0.run(|client| async move {
            match client.dynamodb {
                Some(dynamodb) => request(dynamodb).await,
                None => Err(failed("the store has no client for DynamoDB")),
            }
        });
        asked.map_err(crate::storage::answers::Failure::into_error)
    }
}

impl CommitCoordinator for DynamoDbCoordinator {
    fn put_if_absent(&self, entry: &CoordinatorEntry) -> error::Result<bool> {
        let entry = entry.clone();
        self.run(|dynamodb| async move { dynamodb.put_if_absent(&entry).await })
    }

    fn get(&self, table_path: &str, file_name: &str) -> error::Result<Option<CoordinatorEntry>> {
        let (table_path, file_name) = (table_path.to_owned(), file_name.to_owned());
        self.run(|dynamodb| async move { dynamodb.get(&table_path, &file_name).await })
    }

    fn newest(&self, table_path: &str) -> error::Result<Option<CoordinatorEntry>> {
        let table_path = table_path.to_owned();
        self.run(|dynamodb| async move { dynamodb.newest(&table_path).await })
    }

    fn complete(&self, entry: &CoordinatorEntry) -> error::Result<()> {
        let entry = entry.clone();
        self.run(|dynamodb| async move { dynamodb.complete(&entry).await })
    }
}
