//! dynalite: DynamoDB in memory, behind a proxy that can lose requests and responses.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use serde_json::Value;

use super::process::{Process, status_line};
use super::{installed, request};

/// A running dynalite. It stops when it is dropped.
///
/// It supports DynamoDB's atomic conditional writes and consistent reads. It checks signatures, but not access keys.
#[derive(Debug)]
pub struct Dynalite {
    process: Process,
    front: Arc<Front>,
    port: u16,
}

/// What is lost when a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Nothing is lost.
    Nothing,
    /// The request is lost, so it has no effect.
    Before,
    /// The response is lost, after the request has taken effect.
    After,
}

#[derive(Debug, Default)]
struct Front {
    /// What is lost when the next requests are sent. Each entry affects one request of an operation.
    faults: Mutex<VecDeque<(String, Lost)>>,
    log: Mutex<Vec<String>>,
}

impl Dynalite {
    /// Starts dynalite without tables.
    ///
    /// # Panics
    /// Panics if dynalite is not installed, or does not start.
    pub fn start() -> Self {
        let program = installed::program("dynalite/node_modules/dynalite/cli.js");
        let command = |port: u16, _: &Path| {
            let mut command = Command::new("node");
            command.arg(&program).args(["--host", "127.0.0.1", "--port", &port.to_string()]);
            command.args(["--createTableMs", "20"]);
            command
        };
        let answers = |port| status_line(port, "/").is_some_and(|line| line.contains(" 200 "));
        let process = Process::start("dynalite", command, answers);
        let front = Arc::new(Front::default());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("the address of a socket").port();
        let (shared, server) = (Arc::clone(&front), process.port());
        // The thread ends with the process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let front = Arc::clone(&shared);
                std::thread::spawn(move || front.serve(client, server));
            }
        });
        Self { process, front, port }
    }

    /// Returns the URL of the proxy.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Sets what is lost when later requests are sent. Each of `faults` affects one request of an operation such as
    /// `PutItem`.
    pub fn lose(&self, faults: impl IntoIterator<Item = (&'static str, Lost)>) {
        let faults = faults.into_iter().map(|(operation, lost)| (operation.to_owned(), lost));
        *self.front.faults.lock().unwrap_or_else(PoisonError::into_inner) = faults.collect();
    }

    /// Returns the operations that were requested since the last call.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.front.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends a request that is not recorded, and returns the response.
    ///
    /// # Panics
    /// Panics if the server refuses the request.
    pub fn call(&self, operation: &str, body: &Value) -> Value {
        let (status, body) = self.answer(operation, body);
        assert_eq!(status, 200, "dynalite refused {operation}: {body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Puts an item into a table if there is no item with its key. Returns whether it was put. The condition is
    /// written as the log store of the JVM connector writes it.
    ///
    /// # Panics
    /// Panics if the server refuses the request for another reason.
    pub fn put_if_absent(&self, table: &str, item: &Value) -> bool {
        let expected = serde_json::json!({ "fileName": { "Exists": false } });
        let body = serde_json::json!({ "TableName": table, "Item": item, "Expected": expected });
        let (status, body) = self.answer("PutItem", &body);
        let is_refused = body.contains("ConditionalCheckFailedException");
        assert!(status == 200 || is_refused, "dynalite refused PutItem: {body}");
        !is_refused
    }

    fn answer(&self, operation: &str, body: &Value) -> (u16, String) {
        let mut request = HttpRequest::new(HttpRequestBody::from(body.to_string()));
        *request.method_mut() = "POST".parse().expect("a method");
        *request.uri_mut() = format!("http://127.0.0.1:{}/", self.process.port()).parse().expect("a URL");
        let target = format!("DynamoDB_20120810.{operation}").parse().expect("a header");
        request.headers_mut().insert("x-amz-target", target);
        let json = "application/x-amz-json-1.0".parse().expect("a header");
        request.headers_mut().insert("content-type", json);
        let credential =
            AwsCredential { key_id: "id".to_owned(), secret_key: "secret".to_owned(), token: None };
        let signer = AwsAuthorizer::new(&credential, "dynamodb", "us-east-1");
        signer.try_authorize(&mut request, None).expect("a signature");
        request::send(request)
    }

    /// Returns the directory of the server.
    pub fn directory(&self) -> &Path {
        self.process.directory()
    }
}

impl Front {
    /// Serves a connection until one side closes it.
    fn serve(&self, client: TcpStream, server: u16) {
        let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else { return };
        let (mut requests, mut answers) = (BufReader::new(from_client), BufReader::new(from_server));
        let (mut client, mut server) = (client, server);
        while let Ok(Some(request)) = message(&mut requests) {
            let lost = self.fault_of(&request);
            if lost == Some(Lost::Before) || server.write_all(&request.bytes).is_err() {
                return;
            }
            let Ok(Some(answer)) = message(&mut answers) else { return };
            if lost == Some(Lost::After) || client.write_all(&answer.bytes).is_err() {
                return;
            }
        }
    }

    /// Records a request. Returns what should be lost, if a fault was set for the operation.
    fn fault_of(&self, request: &Message) -> Option<Lost> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(request.operation.clone());
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let at = faults.iter().position(|(operation, _)| *operation == request.operation)?;
        faults.remove(at).map(|(_, lost)| lost)
    }
}

/// A request or a response of HTTP/1.1.
struct Message {
    bytes: Vec<u8>,
    operation: String,
}

/// Reads a message whose body has a known length. Returns `None` at the end of the connection.
fn message(from: &mut impl BufRead) -> io::Result<Option<Message>> {
    let mut message = Message { bytes: Vec::new(), operation: String::new() };
    let mut length = 0;
    loop {
        let start = message.bytes.len();
        if from.read_until(b'\n', &mut message.bytes)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&message.bytes[start..]).trim().to_ascii_lowercase();
        match line.split_once(':') {
            Some(("content-length", text)) => length = text.trim().parse().map_err(io::Error::other)?,
            Some(("x-amz-target", _)) => {
                let line = String::from_utf8_lossy(&message.bytes[start..]);
                message.operation = line.trim().rsplit('.').next().unwrap_or_default().to_owned();
            }
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    message.bytes.append(&mut body);
    Ok(Some(message))
}
