//! Multipart uploads, which fake-gcs-server itself does not support.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::ETAG;
use hyper::{Response, StatusCode};

use super::front::{Answer, refusal, xml};
use crate::servers::process::unique;

/// The parts that were stored so far, by the id of their upload and their number.
#[derive(Debug, Default)]
pub(super) struct Uploads(Mutex<HashMap<String, BTreeMap<u32, Bytes>>>);

/// The reason why an upload cannot be completed.
pub(super) enum Refused {
    NoUpload,
    InvalidPart,
}

impl Refused {
    pub(super) fn answer(&self) -> Answer {
        match self {
            Self::NoUpload => no_upload(),
            Self::InvalidPart => refusal(StatusCode::BAD_REQUEST, "InvalidPart"),
        }
    }
}

impl Uploads {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, BTreeMap<u32, Bytes>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self) -> Answer {
        let id = unique("upload");
        self.lock().insert(id.clone(), BTreeMap::new());
        let id = format!("<UploadId>{id}</UploadId>");
        xml(StatusCode::OK, format!("<InitiateMultipartUploadResult>{id}</InitiateMultipartUploadResult>"))
    }

    pub(super) fn put(&self, id: &str, number: Option<u32>, content: Bytes) -> Answer {
        let mut uploads = self.lock();
        match (uploads.get_mut(id), number) {
            (Some(parts), Some(number)) => {
                parts.insert(number, content);
                let answer = Response::builder().header(ETAG, format!("\"{id}-{number}\""));
                answer.body(Full::default()).expect("a header of letters and digits")
            }
            (None, _) => no_upload(),
            (_, None) => refusal(StatusCode::BAD_REQUEST, "InvalidArgument"),
        }
    }

    pub(super) fn abort(&self, id: &str) -> Answer {
        if self.lock().remove(id).is_none() {
            return no_upload();
        }
        let answer = Response::builder().status(StatusCode::NO_CONTENT);
        answer.body(Full::default()).expect("a status")
    }

    /// Ends an upload, and returns its parts, joined in the order that the request's XML states.
    pub(super) fn complete(&self, id: &str, wanted: &[u8]) -> Result<Bytes, Refused> {
        let mut uploads = self.lock();
        let Some(parts) = uploads.get(id) else { return Err(Refused::NoUpload) };
        let wanted = String::from_utf8_lossy(wanted);
        let mut whole = Vec::new();
        for text in wanted.split("<PartNumber>").skip(1) {
            let number = text.split('<').next().and_then(|number| number.parse().ok());
            match number.and_then(|number: u32| parts.get(&number)) {
                Some(part) => whole.extend_from_slice(part),
                None => return Err(Refused::InvalidPart),
            }
        }
        uploads.remove(id);
        Ok(whole.into())
    }

    /// Converts the response to the put of the whole object into a response to the completion of an upload.
    pub(super) fn completed(put: Answer) -> Answer {
        if put.status() != StatusCode::OK {
            return put;
        }
        let (mut head, _) = put.into_parts();
        let tag = head.headers.remove(ETAG);
        let tag = tag.as_ref().and_then(|tag| tag.to_str().ok()).unwrap_or_default();
        let tag = format!("<ETag>{tag}</ETag>");
        let body = format!("<CompleteMultipartUploadResult>{tag}</CompleteMultipartUploadResult>");
        Response::from_parts(head, Full::from(body))
    }
}

fn no_upload() -> Answer {
    refusal(StatusCode::NOT_FOUND, "NoSuchUpload")
}
