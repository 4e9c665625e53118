//! Azurite: Azure Blob Storage, in a local directory.

use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use object_store::azure::{AzureAccessKey, AzureAuthorizer, AzureCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::process::{Process, status_line, unique};
use super::{installed, request};

/// A running Azurite. It stops when it is dropped.
///
/// It supports Azure's conditional writes: `If-None-Match: *` and `If-Match` for puts. Its account has no
/// hierarchical namespace.
#[derive(Debug)]
pub struct Azurite {
    process: Process,
    account: String,
}

/// The account's key, in base 64.
const KEY: &str = "ZGVsdGFsb2ctc2VjcmV0";

impl Azurite {
    /// Starts Azurite without containers.
    ///
    /// # Panics
    /// Panics if Azurite is not installed, or does not start.
    pub fn start() -> Self {
        let program = installed::program("azurite/node_modules/azurite/dist/src/blob/main.js");
        // The account name is unique, so that no other server knows it.
        let account = unique("account");
        let command = |port: u16, data: &Path| {
            let mut command = Command::new("env");
            command.arg(format!("AZURITE_ACCOUNTS={account}:{KEY}")).arg("node").arg(&program);
            command.args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
            command.args(["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--location"]).arg(data);
            command
        };
        // Azurite requires a signature only if it knows the account.
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

    /// Returns the configuration of a client, with the option names of `object_store`.
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
    /// Panics if the server refuses the request.
    pub fn create_bucket(&self, name: &str) {
        let (status, body) = self.put(&format!("{name}?restype=container"), &[]);
        let log = self.process.log();
        assert_eq!(status, 201, "Azurite did not create the container {name}: {body}\n{log}");
    }

    /// Creates an empty blob with exactly this name. Hadoop's clients treat it as a directory.
    ///
    /// # Panics
    /// Panics if the server refuses the request.
    pub fn create_marker(&self, bucket: &str, key: &str) {
        let headers =
            [("content-length", "0"), ("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-hdi_isfolder", "true")];
        let (status, body) = self.put(&format!("{bucket}/{key}"), &headers);
        assert_eq!(status, 201, "Azurite did not create the blob {key}: {body}");
    }

    /// Returns a signature that gives a client access to a container until a certain time. `permissions` are letters
    /// such as `rl`, and `until` has the format `2030-01-01T00:00:00Z`. ("Create a service SAS", version 2018-11-09.)
    pub fn signature(&self, bucket: &str, permissions: &str, until: &str) -> String {
        let resource = format!("/blob/{}/{bucket}", self.account);
        let version = "2018-11-09";
        let fields = [permissions, "", until, &resource, "", "", "", version, "c", "", "", "", "", "", ""];
        let key = BASE64_STANDARD.decode(KEY).expect("base 64");
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
        let signed = BASE64_STANDARD.encode(ring::hmac::sign(&key, fields.join("\n").as_bytes()));
        let signed = utf8_percent_encode(&signed, NON_ALPHANUMERIC);
        format!("sv={version}&sr=c&sp={permissions}&se={until}&sig={signed}")
    }

    fn put(&self, path: &str, headers: &[(&'static str, &str)]) -> (u16, String) {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = "PUT".parse().expect("a method");
        *request.uri_mut() = format!("{}/{path}", self.endpoint()).parse().expect("a URL");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a header"));
        }
        let credential = AzureCredential::AccessKey(AzureAccessKey::try_new(KEY).expect("a key"));
        AzureAuthorizer::new(&credential, &self.account).try_authorize(&mut request).expect("a signature");
        request::send(request)
    }
}
