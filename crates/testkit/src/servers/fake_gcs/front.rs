//! The front: a server for the XML API, which forwards requests to the JSON API of fake-gcs-server.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HOST, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, ReqwestConnector};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tokio::sync::oneshot;

use super::uploads::Uploads;
use super::{TOKEN, TOKEN_WITHOUT_LISTS, listing};
use crate::servers::request::install_crypto;

const CONDITION: &str = "x-goog-if-generation-match";
const GENERATION: &str = "x-goog-generation";

pub(super) type Answer = Response<Full<Bytes>>;

/// A parsed request. Its paths are still encoded.
struct Asked<'a> {
    parts: &'a Parts,
    bucket: &'a str,
    object: &'a str,
    query: HashMap<String, String>,
}

impl Asked<'_> {
    /// Returns an error response if the request's token is unknown or does not permit the request. (XML API: "HTTP
    /// status and error codes".)
    fn refused_token(&self) -> Option<Answer> {
        let token = self.parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        match token.and_then(|value| value.strip_prefix("Bearer ")) {
            Some(TOKEN) => None,
            Some(TOKEN_WITHOUT_LISTS) if !self.object.is_empty() => None,
            Some(TOKEN_WITHOUT_LISTS) => Some(refusal(StatusCode::FORBIDDEN, "AccessDenied")),
            _ => Some(refusal(StatusCode::UNAUTHORIZED, "AuthenticationRequired")),
        }
    }
}

#[derive(Debug)]
pub(super) struct Front {
    server: String,
    client: HttpClient,
    uploads: Uploads,
}

impl Front {
    /// Serves requests until `stopped`. `server` is the URL of fake-gcs-server.
    pub(super) fn serve(server: String, listener: TcpListener, stopped: oneshot::Receiver<()>) {
        install_crypto();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("gcs-front")
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let options = ClientOptions::new().with_allow_http(true);
            let client = ReqwestConnector::default().connect(&options).expect("a client");
            let front = Arc::new(Self { server, client, uploads: Uploads::default() });
            listener.set_nonblocking(true).expect("a socket that does not block");
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            tokio::spawn(front.listen(listener));
            // Both a message and a dropped sender mean that the server should stop.
            let _ = stopped.await;
        });
    }

    async fn listen(self: Arc<Self>, listener: tokio::net::TcpListener) {
        loop {
            // If a connection cannot be accepted, only its client needs to notice.
            let Ok((stream, _)) = listener.accept().await else { continue };
            // Without this setting, small responses may be delayed by 40 ms.
            let _ = stream.set_nodelay(true);
            let front = Arc::clone(&self);
            tokio::spawn(async move {
                let answer = service_fn(|request| {
                    let front = Arc::clone(&front);
                    async move { Ok::<_, Infallible>(front.answer(request).await) }
                });
                // Errors of the connection are ignored here, because the client notices them.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    }

    async fn answer(&self, request: hyper::Request<Incoming>) -> Answer {
        let (parts, content) = request.into_parts();
        let Ok(content) = content.collect().await else {
            return refusal(StatusCode::BAD_REQUEST, "IncompleteBody");
        };
        let content = content.to_bytes();
        let path = parts.uri.path().trim_start_matches('/');
        let (bucket, object) = path.split_once('/').unwrap_or((path, ""));
        let asked = Asked { parts: &parts, bucket, object, query: query_of(&parts) };
        if let Some(refused) = asked.refused_token() {
            return refused;
        }
        let answered = self.route(&asked, content).await;
        answered.unwrap_or_else(|error| refusal(StatusCode::BAD_GATEWAY, &error.to_string()))
    }

    async fn route(&self, asked: &Asked<'_>, content: Bytes) -> Result<Answer, HttpError> {
        let upload = asked.query.get("uploadId");
        match (&asked.parts.method, upload) {
            (&Method::GET, _) if asked.object.is_empty() => self.list(asked).await,
            (&Method::POST, None) if asked.query.contains_key("uploads") => Ok(self.uploads.begin()),
            (&Method::PUT, Some(id)) => {
                let number = asked.query.get("partNumber").and_then(|text| text.parse().ok());
                Ok(self.uploads.put(id, number, content))
            }
            (&Method::DELETE, Some(id)) => Ok(self.uploads.abort(id)),
            (&Method::POST, Some(id)) => match self.uploads.complete(id, &content) {
                Ok(whole) => Ok(Uploads::completed(self.insert(asked, whole).await?)),
                Err(refused) => Ok(refused.answer()),
            },
            (&Method::PUT, None) => self.insert(asked, content).await,
            (&Method::GET | &Method::HEAD | &Method::DELETE, None) => self.pass(asked).await,
            _ => Ok(refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented")),
        }
    }

    /// Writes an object, if the condition in the header is met or there is no condition.
    async fn insert(&self, asked: &Asked<'_>, content: Bytes) -> Result<Answer, HttpError> {
        let headers = &asked.parts.headers;
        let mut url = format!(
            "{}/upload/storage/v1/b/{}/o?uploadType=media&name={}",
            self.server, asked.bucket, asked.object
        );
        if let Some(generation) = headers.get(CONDITION) {
            url += "&ifGenerationMatch=";
            url += generation.to_str().unwrap_or("not a number");
        }
        let (status, _, body) = self.ask(Method::POST, &url, headers, content).await?;
        if status != StatusCode::OK {
            return Ok(refusal(status, &String::from_utf8_lossy(&body)));
        }
        let meta: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = Response::builder()
            .header(ETAG, format!("\"{}\"", text(&meta, "etag")))
            .header(GENERATION, text(&meta, "generation"));
        Ok(answer.body(Full::default()).expect("headers of a server"))
    }

    async fn list(&self, asked: &Asked<'_>) -> Result<Answer, HttpError> {
        let url = listing::url(&self.server, asked.bucket, &asked.query);
        let (status, _, body) = self.ask(Method::GET, &url, &asked.parts.headers, Bytes::new()).await?;
        if status == StatusCode::NOT_FOUND {
            return Ok(refusal(status, "NoSuchBucket"));
        }
        if status != StatusCode::OK {
            return Ok(refusal(status, &String::from_utf8_lossy(&body)));
        }
        let found: Value = serde_json::from_slice(&body).unwrap_or_default();
        Ok(xml(StatusCode::OK, listing::xml(&found)))
    }

    /// Forwards the request unchanged, and returns the response.
    async fn pass(&self, asked: &Asked<'_>) -> Result<Answer, HttpError> {
        let url = format!("{}{}", self.server, asked.parts.uri);
        let headers = &asked.parts.headers;
        let (status, headers, body) =
            self.ask(asked.parts.method.clone(), &url, headers, Bytes::new()).await?;
        let mut answer = Response::new(Full::new(body));
        *answer.status_mut() = status;
        for (name, value) in &headers {
            if ![CONNECTION, TRANSFER_ENCODING].contains(name) {
                answer.headers_mut().append(name, value.clone());
            }
        }
        Ok(answer)
    }

    async fn ask(
        &self,
        method: Method,
        url: &str,
        headers: &hyper::HeaderMap,
        content: Bytes,
    ) -> Result<(StatusCode, hyper::HeaderMap, Bytes), HttpError> {
        let mut request = HttpRequest::new(content.into());
        *request.method_mut() = method;
        *request.uri_mut() = url.parse().expect("a URL made of parts of URLs");
        for (name, value) in headers {
            if ![AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING].contains(name) {
                request.headers_mut().append(name, value.clone());
            }
        }
        let (parts, body) = self.client.execute(request).await?.into_parts();
        Ok((parts.status, parts.headers, body.bytes().await?))
    }
}

fn query_of(parts: &Parts) -> HashMap<String, String> {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// Returns a string member of a JSON object.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

pub(super) fn xml(status: StatusCode, text: String) -> Answer {
    let answer = Response::builder().status(status).header(CONTENT_TYPE, "application/xml");
    answer.body(Full::from(text)).expect("a status and a header")
}

/// Returns an error response of the XML API.
pub(super) fn refusal(status: StatusCode, code: &str) -> Answer {
    xml(status, format!("<Error><Code>{}</Code></Error>", escaped(code)))
}

/// Escapes `&`, `<` and `>` for XML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
