//! Error responses as S3 sends them: XML with a code and the id of the request.

use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use s3s::S3ErrorCode;
use serde::{Deserialize, Serialize};

use super::requests::{decoded, header, parameter};
use super::settings::Settings;

/// An error response to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorAnswer {
    /// S3's code of the error, such as `SlowDown`.
    pub code: String,
    /// The status; `None` for the status that S3 sends with the code.
    #[serde(default)]
    pub status: Option<u16>,
    /// The number of seconds after which the client should try again, for the header `Retry-After`.
    #[serde(default)]
    pub retry_after: Option<u32>,
    /// Whether the request takes effect in spite of the error.
    #[serde(default)]
    pub after_effect: bool,
}

impl ErrorAnswer {
    /// Creates the error with this code and the status that S3 sends with it: `ConditionalRequestConflict` (409),
    /// `SlowDown` (503), `InternalError` (500), `ExpiredToken` (400), `RequestTimeTooSkewed`, `AccessDenied` (403),
    /// `NoSuchBucket` (404).
    pub fn new(code: &str) -> Self {
        Self { code: code.to_owned(), status: None, retry_after: None, after_effect: false }
    }

    /// Replaces the status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Asks the client to try again after this number of seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Makes the request take effect in spite of the error.
    #[must_use]
    pub fn after_effect(mut self) -> Self {
        self.after_effect = true;
        self
    }

    /// Returns the response, still without the id of the request.
    pub(super) fn response(&self) -> Response<Bytes> {
        let known = S3ErrorCode::from_bytes(self.code.as_bytes()).and_then(|code| code.status_code());
        let status = self.status.and_then(|status| StatusCode::from_u16(status).ok()).or(known);
        let mut response = error(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &self.code, "");
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert("retry-after", seconds.into());
        }
        response
    }
}

/// Returns the error response to a request that is signed for a wrong region; `None` if the region is right.
pub(super) fn wrong_region(parts: &Parts, settings: &Settings) -> Option<Response<Bytes>> {
    let right = settings.region.as_deref()?;
    let signed = signed_region(parts).filter(|signed| signed != right)?;
    let status = StatusCode::from_u16(settings.wrong_region_status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = if status.is_redirection() {
        error(
            status,
            "PermanentRedirect",
            "<Message>The bucket must be addressed at its own endpoint.</Message>",
        )
    } else {
        let message = format!("the region '{signed}' is wrong; expecting '{right}'");
        let detail = format!("<Message>{message}</Message><Region>{right}</Region>");
        error(status, "AuthorizationHeaderMalformed", &detail)
    };
    if let Ok(region) = right.parse() {
        response.headers_mut().insert("x-amz-bucket-region", region);
    }
    Some(response)
}

/// Returns the region for which a request is signed: `Credential=key/day/region/s3/aws4_request`.
fn signed_region(parts: &Parts) -> Option<String> {
    let query = parts.uri.query().unwrap_or_default();
    let credential = match header(parts, "authorization") {
        Some(text) => decoded(text.split_once("Credential=")?.1),
        None => parameter(query, "X-Amz-Credential")?,
    };
    credential.split('/').nth(2).map(str::to_owned)
}

fn error(status: StatusCode, code: &str, detail: &str) -> Response<Bytes> {
    let body = format!(r#"<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code>{detail}</Error>"#);
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/xml"));
    response
}

/// Adds the id of the request to a response: to a header and, if it is an error, to the body.
pub(super) fn identify(response: &mut Response<Bytes>, number: u64) {
    let id = format!("TESTKIT{number:09}");
    let status = response.status();
    if status.is_client_error() || status.is_server_error() || status.is_redirection() {
        let text = String::from_utf8_lossy(response.body());
        if let Some((before, after)) = text.rsplit_once("</Error>") {
            let body = format!("{before}<RequestId>{id}</RequestId></Error>{after}");
            *response.body_mut() = Bytes::from(body);
        }
    }
    if let Ok(id) = id.parse() {
        response.headers_mut().insert("x-amz-request-id", id);
    }
}
