//! versitygw: S3, in a local directory.

use std::path::Path;
use std::process::Command;

use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpRequest, HttpRequestBody};

use super::process::{Process, status_line, unique};
use super::{installed, request};

const KEY_ID: &str = "deltalog-test";
const SECRET: &str = "deltalog-secret";
const REGION: &str = "us-east-1";

/// A running versitygw. It stops when it is dropped.
///
/// It supports S3's conditional writes: `If-None-Match: *` and `If-Match` for puts, which are atomic in all
/// combinations.
#[derive(Debug)]
pub struct VersityGw {
    process: Process,
}

impl VersityGw {
    /// Starts versitygw without buckets.
    ///
    /// # Panics
    /// Panics if versitygw is not installed, or does not start.
    pub fn start() -> Self {
        let program = installed::program("bin/versitygw");
        // The path is unique, so that no other server on this machine responds to it.
        let health = format!("/{}", unique("health"));
        let command = |port: u16, data: &Path| {
            let mut command = Command::new(&program);
            command.args(["--access", KEY_ID, "--secret", SECRET, "--region", REGION]);
            command.args(["--port", &format!("127.0.0.1:{port}"), "--health", &health]);
            // Metadata is stored in extended attributes of the object's file. If it were stored in separate files
            // (`--sidecar`), it would change at another time than the bytes. A reader could then get the old bytes
            // with the new entity tag, and use that tag to replace contents which it has not read.
            command.args(["--keep-alive", "--quiet", "posix"]).arg(data);
            command
        };
        let answers = |port| status_line(port, &health).is_some_and(|line| line.contains(" 200 "));
        Self { process: Process::start("versitygw", command, answers) }
    }

    /// Returns the URL of the server.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.process.port())
    }

    /// Returns the directory of the server.
    pub fn directory(&self) -> &Path {
        self.process.directory()
    }

    /// Returns the configuration of a client, with the option names of `object_store`.
    pub fn options(&self) -> Vec<(String, String)> {
        let endpoint = self.endpoint();
        [
            ("aws_endpoint", endpoint.as_str()),
            ("aws_access_key_id", KEY_ID),
            ("aws_secret_access_key", SECRET),
            ("aws_region", REGION),
            ("aws_allow_http", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// Creates a bucket.
    ///
    /// # Panics
    /// Panics if the server refuses the request.
    pub fn create_bucket(&self, name: &str) {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = "PUT".parse().expect("a method");
        *request.uri_mut() = format!("{}/{name}", self.endpoint()).parse().expect("a URL");
        let credential =
            AwsCredential { key_id: KEY_ID.to_owned(), secret_key: SECRET.to_owned(), token: None };
        let signer = AwsAuthorizer::new(&credential, "s3", REGION);
        signer.try_authorize(&mut request, None).expect("a signature");
        let (status, body) = request::send(request);
        assert_eq!(status, 200, "versitygw did not create the bucket {name}: {body}\n{}", self.process.log());
    }
}
