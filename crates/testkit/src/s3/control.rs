//! A server that other processes control through plain HTTP with JSON.
//!
//! | request | what it does |
//! | --- | --- |
//! | `POST /buckets/<bucket>` | creates a bucket |
//! | `PUT /faults` | replaces the rules: a list of [`Rule`](super::Rule) |
//! | `GET /requests`, `DELETE /requests` | returns the requests so far; `DELETE` also clears the record |
//! | `GET /settings`, `PATCH /settings` | returns or changes the fields of [`Settings`] |
//! | `GET`, `PUT`, `DELETE /objects/<bucket>/<key>` | reads, writes or deletes an object |
//! | `PUT /modified/<bucket>/<key>` | sets the modification time of an object, in milliseconds since 1970 |
//! | `GET /keys/<bucket>?prefix=<prefix>` | returns all keys with a prefix |
//! | `GET /uploads/<bucket>` | returns the keys of the open uploads |
//! | `POST /fill/<bucket>` | writes many objects: a [`Fill`] |
//! | `POST /reset` | deletes all buckets, rules and recorded requests, and restores the settings |

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::requests::{decoded, parameter};
use super::running::Running;
use super::{S3Server, Settings};

/// The objects `<prefix>00000000<suffix>`, `<prefix>00000001<suffix>` and so on, all with the same contents.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    /// The prefix of the keys.
    pub prefix: String,
    /// The suffix of the keys.
    #[serde(default)]
    pub suffix: String,
    /// The number of objects.
    pub count: usize,
    /// The contents of each object.
    #[serde(default)]
    pub content: String,
}

/// An S3 server with a second port that controls it. Both are closed when the value is dropped.
#[derive(Debug)]
pub struct Controlled {
    server: Arc<S3Server>,
    control: Running,
}

impl Controlled {
    /// Opens a port that controls `server`.
    pub fn new(server: S3Server) -> Self {
        let server = Arc::new(server);
        let served = server.clone();
        let answer = service_fn(move |request| answer(served.clone(), request));
        Self { server, control: Running::start(answer) }
    }

    /// Returns the URL of the S3 interface.
    pub fn endpoint(&self) -> String {
        self.server.endpoint()
    }

    /// Returns the URL of the control interface.
    pub fn control(&self) -> String {
        self.control.endpoint()
    }
}

/// The reason why a request to the control interface cannot be carried out.
struct Refused(StatusCode, String);

type Answer = Result<Bytes, Refused>;

fn missing(what: impl Into<String>) -> Refused {
    Refused(StatusCode::NOT_FOUND, what.into())
}

async fn answer(
    server: Arc<S3Server>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default();
    let outcome = match body.collect().await {
        Ok(body) => act(&server, &parts.method, &path, query, body.to_bytes()),
        Err(error) => Err(Refused(StatusCode::BAD_REQUEST, error.to_string())),
    };
    let (status, body) = match outcome {
        Ok(body) => (StatusCode::OK, body),
        Err(Refused(status, reason)) => (status, reason.into()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    Ok(response)
}

fn act(server: &S3Server, method: &Method, path: &str, query: &str, body: Bytes) -> Answer {
    let mut names = path.trim_start_matches('/').splitn(3, '/').map(decoded);
    let mut name = || names.next().unwrap_or_default();
    let (what, bucket, key) = (name(), name(), name());
    let of_a_bucket = ["objects", "modified", "keys", "uploads", "fill"];
    if of_a_bucket.contains(&what.as_str()) && !server.has_bucket(&bucket) {
        return Err(missing(format!("there is no bucket '{bucket}'")));
    }
    let there =
        |is_there: bool| if is_there { Ok(Bytes::new()) } else { Err(missing("there is no such object")) };
    match (method.as_str(), what.as_str()) {
        ("POST", "buckets") => server.create_bucket(&bucket),
        ("PUT", "faults") => server.faults(parsed::<Vec<_>>(&body)?),
        ("GET", "requests") => return Ok(json!(server.requests()).to_string().into()),
        ("DELETE", "requests") => return Ok(json!(server.take_requests()).to_string().into()),
        ("GET", "settings") => return Ok(json!(server.settings()).to_string().into()),
        ("PATCH", "settings") => change(server, parsed(&body)?)?,
        ("PUT", "objects") => server.put_object(&bucket, &key, body),
        ("GET", "objects") => {
            return server.get_object(&bucket, &key).ok_or_else(|| missing("there is no such object"));
        }
        ("DELETE", "objects") => return there(server.delete_object(&bucket, &key)),
        ("PUT", "modified") => {
            let time = SystemTime::UNIX_EPOCH + Duration::from_millis(parsed(&body)?);
            return there(server.set_modified(&bucket, &key, time));
        }
        ("GET", "keys") => {
            let prefix = parameter(query, "prefix").unwrap_or_default();
            return Ok(json!(server.keys(&bucket, &prefix)).to_string().into());
        }
        ("GET", "uploads") => return Ok(json!(server.open_uploads(&bucket)).to_string().into()),
        ("POST", "fill") => {
            let Fill { prefix, suffix, count, content } = parsed(&body)?;
            let content = Bytes::from(content);
            let object = |number| (format!("{prefix}{number:08}{suffix}"), content.clone());
            server.fill(&bucket, (0..count).map(object));
        }
        ("POST", "reset") => server.reset(),
        (method, _) => return Err(missing(format!("there is no {method} {path}"))),
    }
    Ok(Bytes::new())
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|error| Refused(StatusCode::BAD_REQUEST, error.to_string()))
}

/// Changes the settings that are named in `fields`.
fn change(server: &S3Server, fields: serde_json::Map<String, Value>) -> Result<(), Refused> {
    let mut changed = json!(server.settings());
    for (name, value) in fields {
        changed[name] = value;
    }
    let settings: Settings = serde_json::from_value(changed)
        .map_err(|error| Refused(StatusCode::BAD_REQUEST, error.to_string()))?;
    server.set(|old| *old = settings);
    Ok(())
}
