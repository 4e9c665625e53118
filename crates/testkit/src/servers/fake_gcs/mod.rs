//! fake-gcs-server: Google Cloud Storage in memory, behind a front that supports the XML API.
//!
//! fake-gcs-server implements Google's JSON API, but `object_store` uses the XML API. Of the XML API, fake-gcs-server
//! supports only reads and deletions, and it ignores the header `x-goog-if-generation-match`. The front therefore
//! translates the other requests:
//!
//! - A put becomes an upload of the JSON API, and its header becomes the parameter `ifGenerationMatch`.
//!   fake-gcs-server decides whether the condition is met.
//! - A listing becomes a listing of the JSON API ([`listing`]).
//! - The parts of an upload stay in the front until it is completed ([`uploads`]).
//!
//! The front accepts two tokens and refuses all others, because fake-gcs-server does not check tokens.
//!
//! Tests with this server show that deltalog sends requests as Google documents them, and that it needs no more than
//! the documented behavior. They do not show how Google's own servers behave.

mod front;
mod listing;
mod uploads;

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::thread::JoinHandle;

use object_store::client::{HttpRequest, HttpRequestBody};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::oneshot;

use super::process::{Process, status_line, unique};
use super::{installed, request};
use front::Front;

/// The token with all permissions.
const TOKEN: &str = "deltalog-secret";
/// A token that permits everything except listing objects.
const TOKEN_WITHOUT_LISTS: &str = "deltalog-secret-without-lists";

/// A running fake-gcs-server and its front. Both stop when the value is dropped.
///
/// It can create an object only if it does not exist, and replace an object only if it has a given generation. It
/// ignores the conditions of reads.
#[derive(Debug)]
pub struct FakeGcs {
    process: Process,
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeGcs {
    /// Starts the server without buckets, except for one with a random name.
    ///
    /// # Panics
    /// Panics if fake-gcs-server is not installed, or does not start.
    pub fn start() -> Self {
        let program = installed::program("bin/fake-gcs-server");
        // The bucket's name is unique, so that no other server has it.
        let bucket = unique("started");
        let command = |port: u16, data: &Path| {
            std::fs::create_dir(data.join(&bucket)).expect("a directory for a bucket");
            let mut command = Command::new(&program);
            command.args(["-scheme", "http", "-host", "127.0.0.1", "-port", &port.to_string()]);
            command.args(["-public-host", &format!("127.0.0.1:{port}"), "-log-level", "error"]);
            command.args(["-backend", "memory", "-data"]).arg(data);
            command
        };
        let path = format!("/storage/v1/b/{bucket}");
        let answers = |port| status_line(port, &path).is_some_and(|line| line.contains(" 200 "));
        let process = Process::start("fake-gcs-server", command, answers);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("the address of a socket").port();
        let (stop, stopped) = oneshot::channel();
        let server = server_of(&process);
        let thread = std::thread::spawn(move || Front::serve(server, listener, stopped));
        Self { process, port, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the URL of the front.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the URL of fake-gcs-server itself.
    pub fn json_endpoint(&self) -> String {
        server_of(&self.process)
    }

    /// Returns the directory of the server.
    pub fn directory(&self) -> &Path {
        self.process.directory()
    }

    /// Returns the configuration of a client, with the option names of `object_store`.
    pub fn options(&self) -> Vec<(String, String)> {
        let endpoint = self.endpoint();
        [
            ("google_base_url", endpoint.as_str()),
            ("google_bearer_token", TOKEN),
            ("google_allow_http", "true"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// Returns a token that may read and write objects, but not list them.
    pub fn token_without_lists(&self) -> &'static str {
        TOKEN_WITHOUT_LISTS
    }

    /// Creates a bucket.
    ///
    /// # Panics
    /// Panics if the server refuses the request.
    pub fn create_bucket(&self, name: &str) {
        let body = serde_json::json!({ "name": name }).to_string();
        let mut request = HttpRequest::new(HttpRequestBody::from(body));
        *request.method_mut() = "POST".parse().expect("a method");
        let url = format!("{}/storage/v1/b?project=deltalog", self.json_endpoint());
        *request.uri_mut() = url.parse().expect("a URL");
        let (status, body) = request::send(request);
        let log = self.process.log();
        assert_eq!(status, 200, "fake-gcs-server did not create the bucket {name}: {body}\n{log}");
    }

    /// Creates an empty object with exactly this name, which may end with a slash.
    ///
    /// # Panics
    /// Panics if the server refuses the request.
    pub fn create_marker(&self, bucket: &str, key: &str) {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = "POST".parse().expect("a method");
        let name = utf8_percent_encode(key, NON_ALPHANUMERIC);
        let url =
            format!("{}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}", self.json_endpoint());
        *request.uri_mut() = url.parse().expect("a URL");
        let (status, body) = request::send(request);
        assert_eq!(status, 200, "fake-gcs-server did not create the object {key}: {body}");
    }
}

impl Drop for FakeGcs {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, the message has been printed and requests fail. A second panic in drop must
            // be avoided.
            let _ = thread.join();
        }
    }
}

fn server_of(process: &Process) -> String {
    format!("http://127.0.0.1:{}", process.port())
}
