//! Sends requests over TLS, and records the responses.
//!
//! - The time without a response from a store is limited ([`patience`](super::patience)).
//! - If no connection can be made to a store that has never responded, the request is not sent again. So a misspelled
//!   endpoint is reported at once, and not after minutes of retries.
//! - Records and log messages contain neither the query string nor the headers of a request, because these may contain
//!   signatures.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use serde::Deserialize;

use super::patience::{self, Limits, Silence, Unanswered};
use super::secrets::Secrets;
use crate::limits::{ANSWER_BYTES, REFUSAL_BYTES};
use crate::storage::answers::{self, NoAnswerReason, Note, Purpose, Refusal, Request, Settings};

/// Creates clients that record responses. For equal options, it returns the same client, with the same connections.
/// Clones share the clients.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    made: Arc<Mutex<Vec<(String, HttpClient)>>>,
    settings: &'static Settings,
    /// How long the store may take to respond, over several requests.
    silence: Duration,
}

impl Connector {
    /// Creates a connector for a store with these settings. `silence` is the time that the store may take to respond.
    pub(super) fn new(settings: &'static Settings, silence: Duration) -> Self {
        Self { made: Arc::default(), settings, silence }
    }

    /// Returns the client that was created last. It is the store's own client, with its limits, proxy and certificates,
    /// because clients for credentials are created first.
    ///
    /// # Errors
    /// If no client was created.
    #[cfg(feature = "s3")]
    pub(super) fn last(&self) -> object_store::Result<HttpClient> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let last = made.last().map(|(_, client)| client.clone());
        last.ok_or_else(|| object_store::Error::Generic { store: "S3", source: "no client was made".into() })
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // Creating a client panics if no provider of cryptography is installed. If the program has already installed
        // one, it remains.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let key = format!("{options:?}");
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = made.iter().find(|(known, _)| *known == key) {
            return Ok(client.clone());
        }
        let large = super::client::client(options)?;
        let client = HttpClient::new(Watched {
            inner: HttpClient::new(large.clone()),
            large,
            has_answered: AtomicBool::new(false),
            settings: self.settings,
            limits: Limits { once: super::client::read_timeout(options)?, altogether: self.silence },
            silence: Silence::default(),
        });
        made.push((key, client.clone()));
        Ok(client)
    }
}

#[derive(Debug)]
struct Watched {
    inner: HttpClient,
    /// The client for requests with large bodies. It has the same settings as `inner`.
    large: reqwest::Client,
    has_answered: AtomicBool,
    settings: &'static Settings,
    limits: Limits,
    silence: Silence,
}

#[async_trait::async_trait]
impl HttpService for Watched {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let asked = asked(&request, self.settings);
        let is_file = asked.purpose == Purpose::Other && asked.method == "GET";
        tracing::trace!(request = %asked, "a request to a store");
        let secrets = Secrets::of(&request);
        let sent = patience::send(&self.inner, &self.large, request, self.limits, &self.silence).await;
        let response = match sent {
            Ok(response) => response,
            Err(unanswered) => return Err(self.unanswered(asked, unanswered)),
        };
        self.has_answered.store(true, Ordering::Relaxed);
        let status = response.status();
        if status.is_success() && asked.purpose == Purpose::List && is_page(&response) {
            answers::note(Note::NotAStore(asked));
            return Err(HttpError::new(HttpErrorKind::Unknown, io::Error::other("the answer is a web page")));
        }
        let is_refused = !status.is_success() && status.as_u16() != 304;
        if !is_refused && is_file {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let body = limited(body, if is_refused { REFUSAL_BYTES } else { ANSWER_BYTES }).await?;
        if !is_refused {
            return Ok(HttpResponse::from_parts(parts, body.into()));
        }
        let body = secrets.hide(body);
        let header = |names: &[&str]| {
            let mut found = names.iter().filter_map(|name| parts.headers.get(*name)?.to_str().ok());
            found.next().map(str::to_owned)
        };
        let Answer { code, message, region, request_id, authentication_error_detail } = Answer::parse(&body);
        let refusal = Refusal {
            request: asked,
            status: status.as_u16(),
            code: header(&["x-ms-error-code"]).or(code),
            message,
            detail: authentication_error_detail,
            request_id: header(&[
                "x-amz-request-id",
                "x-ms-request-id",
                "x-guploader-uploadid",
                "x-amzn-requestid",
            ])
            .or(request_id),
            region: header(&["x-amz-bucket-region"]).or(region),
        };
        let note = Note::Refused(refusal);
        tracing::debug!(answer = %note, "a store refused a request");
        answers::note(note);
        Ok(HttpResponse::from_parts(parts, body.into()))
    }
}

impl Watched {
    /// Records a request without a response. The kind of the returned error determines whether the request is sent
    /// again.
    fn unanswered(&self, request: Request, unanswered: Unanswered) -> HttpError {
        let Unanswered { error, waited, is_last } = unanswered;
        let is_unreachable = is_unreachable(&error);
        let reason = match error.kind() {
            _ if is_unreachable => NoAnswerReason::Unreachable,
            HttpErrorKind::Timeout => NoAnswerReason::Silent(waited),
            _ => NoAnswerReason::Broken,
        };
        let note = Note::NoAnswer { request, cause: innermost(&error), reason };
        tracing::debug!(answer = %note, "a store gave no answer");
        answers::note(note);
        match is_last || (is_unreachable && !self.has_answered.load(Ordering::Relaxed)) {
            true => HttpError::new(HttpErrorKind::Unknown, error),
            false => error,
        }
    }
}

/// Reads a response of the store that is not the content of a file.
///
/// # Errors
/// If the response is longer than `limit` bytes.
async fn limited(body: HttpResponseBody, limit: usize) -> Result<Bytes, HttpError> {
    let (mut stream, mut read) = (body.bytes_stream(), Vec::new());
    while let Some(bytes) = stream.next().await {
        let bytes = bytes?;
        if read.len() + bytes.len() > limit {
            let text = format!("the answer of the store is longer than {limit} bytes");
            return Err(HttpError::new(HttpErrorKind::Unknown, io::Error::other(text)));
        }
        read.extend_from_slice(&bytes);
    }
    Ok(read.into())
}

/// Returns whether the response to a listing is a web page. Parsed as a listing, it would be empty, as if there were no
/// table.
fn is_page(response: &HttpResponse) -> bool {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().contains("html"))
}

fn asked(request: &HttpRequest, settings: &'static Settings) -> Request {
    let uri = request.uri();
    let host = uri.authority().map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default());
    let query = uri.query().unwrap_or_default();
    let purpose = match request.method().as_str() {
        "GET" if query.contains("list-type=2") || query.contains("comp=list") => Purpose::List,
        "POST" if query == "delete" || query.contains("comp=batch") => Purpose::Delete,
        _ => Purpose::Other,
    };
    Request {
        settings,
        method: request.method().to_string(),
        host: host.unwrap_or_default().to_owned(),
        path: uri.path().to_owned(),
        purpose,
    }
}

/// Returns whether no connection was made, which means that the request had no effect.
fn is_unreachable(error: &HttpError) -> bool {
    let mut source = error.source();
    while let Some(current) = source {
        if let Some(error) = current.downcast_ref::<reqwest::Error>() {
            return error.is_connect();
        }
        source = current.source();
    }
    error.kind() == HttpErrorKind::Connect
}

/// Returns the text of the innermost error, which is the most specific one.
fn innermost(error: &HttpError) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// The body of an error response. (S3: "Error Responses"; Azure: "Status and error codes". The XML API of Google Cloud
/// Storage uses the same format as S3.)
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Answer {
    code: Option<String>,
    message: Option<String>,
    region: Option<String>,
    request_id: Option<String>,
    authentication_error_detail: Option<String>,
}

/// An error response of DynamoDB, in JSON.
#[derive(Debug, Deserialize)]
struct JsonAnswer {
    #[serde(rename = "__type")]
    kind: String,
    #[serde(alias = "Message")]
    message: Option<String>,
}

impl From<JsonAnswer> for Answer {
    fn from(JsonAnswer { kind, message }: JsonAnswer) -> Self {
        let code = kind.rsplit('#').next().map(str::to_owned);
        Self { code, message, ..Self::default() }
    }
}

impl Answer {
    /// Reads those fields that the body has. Other bodies, such as the error page of a proxy, have none of these
    /// fields.
    fn parse(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        if text.starts_with('{') {
            return serde_json::from_str::<JsonAnswer>(&text).map(Self::from).unwrap_or_default();
        }
        let mut answer: Self =
            quick_xml::de::from_str(text.trim_start_matches('\u{feff}')).unwrap_or_default();
        // Azure repeats its request id and the time in the lines after the first, so these are cut off.
        answer.message = answer.message.and_then(|text| text.lines().next().map(str::to_owned));
        answer
    }
}
