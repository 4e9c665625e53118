//! The layer between the port and the S3 operations. It records requests and injects faults.

use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use s3s::service::{S3Service, S3ServiceBuilder};

use super::Shared;
use super::access::Access;
use super::answers::{identify, wrong_region};
use super::operations::Operations;
use super::pace::{Body, Line, Lines, body};
use super::requests::Request;
use super::rules::{Fault, Plan};
use super::running::Running;

/// Signals that the connection should be closed without a response.
#[derive(Debug)]
struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is closed")
    }
}

impl std::error::Error for Closed {}

enum Outcome {
    Answered(Response<Body>),
    Closed,
    Silent,
}

/// Serves S3 on a port.
pub(super) fn start(shared: Arc<Shared>) -> Running {
    let mut builder = S3ServiceBuilder::new(Operations(shared.clone()));
    builder.set_auth(Access(shared.clone()));
    builder.set_access(Access(shared.clone()));
    let service = builder.build();
    Running::start(service_fn(move |request| answer(shared.clone(), service.clone(), request)))
}

async fn answer(
    shared: Arc<Shared>,
    service: S3Service,
    request: hyper::Request<Incoming>,
) -> Result<Response<Body>, Closed> {
    let (parts, content) = request.into_parts();
    let content = content.collect().await.map_err(|_| Closed)?.to_bytes();
    // The request runs in its own task. If the client gives up, the task continues, so the request may take effect
    // later.
    let outcome = tokio::spawn(handle(shared, service, parts, content)).await;
    match outcome.map_err(|_| Closed)? {
        Outcome::Answered(response) => Ok(response),
        Outcome::Closed => Err(Closed),
        Outcome::Silent => pending().await,
    }
}

async fn handle(shared: Arc<Shared>, service: S3Service, parts: Parts, content: Bytes) -> Outcome {
    let mut request = Request::new(shared.number(), &parts, &content);
    let plan = shared.rules().plan(&request);
    request.rules.clone_from(&plan.rules);
    let lines = Lines([
        (shared.line.clone(), shared.settings().bytes_per_second),
        (Arc::new(Line::default()), plan.bytes_per_second),
    ]);
    if plan.latency_ms > 0 {
        // This is skipped if there is no latency, because even a sleep of zero milliseconds may take up to a
        // millisecond.
        tokio::time::sleep(Duration::from_millis(plan.latency_ms)).await;
    }
    lines.pass(content.len()).await;
    let is_head = parts.method == Method::HEAD;
    let Some(mut response) = respond(&shared, service, parts, content, &plan).await else {
        shared.log().push(request);
        return match plan.fault {
            Some(Fault::SilenceBefore | Fault::SilenceAfter) => Outcome::Silent,
            _ => Outcome::Closed,
        };
    };
    identify(&mut response, request.number);
    let (mut head, bytes) = response.into_parts();
    let mut end = bytes.len();
    if is_head {
        end = 0;
    } else if head.status != StatusCode::NO_CONTENT && head.status != StatusCode::NOT_MODIFIED {
        head.headers.insert("content-length", bytes.len().into());
    }
    if plan.fault == Some(Fault::CutBody) && end > 0 {
        end /= 2;
    }
    request.status = Some(head.status.as_u16());
    request.bytes_out = end;
    shared.log().push(request);
    let bytes = if is_head { Bytes::new() } else { bytes };
    Outcome::Answered(Response::from_parts(head, body(bytes, end, lines)))
}

/// Lets the request take effect, unless a fault prevents it. Returns the response, if there should be one.
async fn respond(
    shared: &Shared,
    service: S3Service,
    parts: Parts,
    content: Bytes,
    plan: &Plan,
) -> Option<Response<Bytes>> {
    match &plan.fault {
        Some(Fault::CloseBefore | Fault::SilenceBefore) => return None,
        Some(Fault::Error(error)) if !error.after_effect => return Some(error.response()),
        _ => {}
    }
    let wrong = wrong_region(&parts, &shared.settings());
    let response = match wrong {
        Some(response) => response,
        None => {
            let called = service.call(hyper::Request::from_parts(parts, s3s::Body::from(content))).await;
            let (head, content) = called.ok()?.into_parts();
            let content = content.collect().await.ok()?.to_bytes();
            Response::from_parts(head, content)
        }
    };
    match &plan.fault {
        Some(Fault::CloseAfter | Fault::SilenceAfter) => None,
        Some(Fault::Error(error)) => Some(error.response()),
        _ => Some(response),
    }
}
