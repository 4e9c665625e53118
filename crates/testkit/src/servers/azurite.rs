//! Azurite: Azure Blob Storage on a directory.

use std::path::Path;
use std::process::Command;

use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use object_store::client::{HttpRequest, HttpRequestBody};

use super::process::{Process, status_line, unique};
use super::{installed, request};

/// A running Azurite, which stops when it is dropped.
///
/// It has Azure's conditional writes: `If-None-Match: *` and `If-Match` of a put. Its account has no hierarchical
/// namespace.
#[derive(Debug)]
pub struct Azurite {
    process: Process,
    account: String,
}

/// The key of the account, which must be in base 64.
const KEY: &str = "ZGVsdGFsb2ctc2VjcmV0";

impl Azurite {
    /// Starts it with no containers.
    ///
    /// # Panics
    /// It is not installed, or does not run.
    pub fn start() -> Self {
        let program = installed::program("azurite/node_modules/azurite/dist/src/blob/main.js");
        // No other server knows an account of this name.
        let account = unique("account");
        let command = |port: u16, data: &Path| {
            let mut command = Command::new("env");
            command.arg(format!("AZURITE_ACCOUNTS={account}:{KEY}")).arg("node").arg(&program);
            command.args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
            command.args(["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--location"]).arg(data);
            command
        };
        // It asks for a signature only if it knows the account.
        let path = format!("/{account}?comp=list");
        let answers = |port| status_line(port, &path).is_some_and(|line| line.contains(" 403 "));
        Self { process: Process::start("Azurite", command, answers), account }
    }

    /// Returns the URL of the account.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/{}", self.process.port(), self.account)
    }

    /// Returns the name of the account.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// Returns the directory of the server.
    pub fn directory(&self) -> &Path {
        self.process.directory()
    }

    /// Returns the configuration of a client, in the names of `object_store`.
    pub fn options(&self) -> Vec<(String, String)> {
        let endpoint = self.endpoint();
        [
            ("azure_storage_endpoint", endpoint.as_str()),
            ("azure_storage_account_name", &self.account),
            ("azure_storage_account_key", KEY),
            ("azure_allow_http", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// Creates a container.
    ///
    /// # Panics
    /// The server refuses to.
    pub fn create_bucket(&self, name: &str) {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = "PUT".parse().expect("a method");
        let url = format!("{}/{name}?restype=container", self.endpoint());
        *request.uri_mut() = url.parse().expect("a URL");
        let credential = AzureCredential::AccessKey(AzureAccessKey::try_new(KEY).expect("a key"));
        AzureAuthorizer::new(&credential, &self.account).try_authorize(&mut request).expect("a signature");
        let (status, body) = request::send(request);
        assert_eq!(
            status,
            201,
            "Azurite did not create the container {name}: {body}\n{}",
            self.process.log()
        );
    }
}
