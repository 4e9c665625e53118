//! How long a store may be silent.
//!
//! ```text
//! request ──(bytes leave)── silence ── answer ──(bytes come)── silence ── …
//!                           └─ at most `read_timeout` each
//! request ── silence ── again ── silence ── again …  at most `retry_timeout`, or 30 s, altogether
//! ```
//!
//! - Silence is measured from the last byte that has left or come. A large body may take as long as it needs.
//! - What a store is silent for adds up over the requests of a client, until there is any answer. So a call that tries
//!   one request after another does not wait for each of them as if it were the first one.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
};
use object_store::{PutPayload, Result};
use tokio::time::{Instant, Sleep, sleep, timeout_at};

/// The bytes of a body that leave at a time.
const PIECE: usize = 64 << 10;

/// The least time that a request may take, however long the store has been silent before.
const LEAST: Duration = Duration::from_millis(100);

/// The share of the limit after which a request is not sent again.
const LAST_SHARE: (u32, u32) = (5, 6);

/// How long a store may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Within one request.
    pub(super) once: Option<Duration>,
    /// Altogether.
    pub(super) altogether: Duration,
}

impl Limits {
    /// Returns how long a request may take after a silence.
    pub(super) fn left(&self, waited: Duration) -> Duration {
        self.altogether.saturating_sub(waited).max(LEAST)
    }

    /// Returns whether a request is not sent again after a silence.
    pub(super) fn are_over(&self, waited: Duration) -> bool {
        let (part, whole) = LAST_SHARE;
        waited >= self.altogether * part / whole
    }
}

/// How long a store has been silent.
#[derive(Debug, Default)]
pub(super) struct Silence(Mutex<Option<(Instant, Instant)>>);

impl Silence {
    /// Returns since when there has been no answer, to a request that begins now.
    fn begin(&self, altogether: Duration) -> Instant {
        let now = Instant::now();
        let silent = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match silent {
            // Longer ago, it was another failure.
            Some((since, last)) if now.saturating_duration_since(last) < altogether => since,
            _ => now,
        }
    }

    fn go_on(&self, since: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((since, Instant::now()));
    }

    fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A request without an answer.
pub(super) struct Unanswered {
    pub(super) error: HttpError,
    /// How long the store has been silent.
    pub(super) waited: Duration,
    /// Whether the request must not be sent again.
    pub(super) is_last: bool,
}

/// Sends a request, and waits for its answer while bytes leave or not too much time has passed.
pub(super) async fn send(
    client: &HttpClient,
    request: HttpRequest,
    limits: Limits,
    silence: &Silence,
) -> Result<HttpResponse, Unanswered> {
    let since = silence.begin(limits.altogether);
    let limit = limits.once.map(|once| once.min(limits.left(since.elapsed())));
    let clock = Clock::default();
    let mut sending = std::pin::pin!(client.execute(noted(request, &clock)));
    let answer = loop {
        let Some(limit) = limit else { break sending.await };
        match timeout_at(clock.last() + limit, &mut sending).await {
            Ok(answer) => break answer,
            Err(_) if clock.last().elapsed() < limit => {}
            Err(_) => break Err(silent(limit)),
        }
    };
    match answer {
        Ok(response) => {
            silence.end();
            let (parts, body) = response.into_parts();
            let body = match limits.once {
                Some(limit) => HttpResponseBody::new(Timed { body, limit, pause: None }),
                None => body,
            };
            Ok(HttpResponse::from_parts(parts, body))
        }
        Err(error) => {
            silence.go_on(since);
            let waited = since.elapsed();
            Err(Unanswered { error, waited, is_last: limits.are_over(waited) })
        }
    }
}

fn silent(limit: Duration) -> HttpError {
    let text = format!("no byte has left or come for {:.1} s", limit.as_secs_f64());
    HttpError::new(HttpErrorKind::Timeout, io::Error::new(io::ErrorKind::TimedOut, text))
}

/// When a byte has left last.
#[derive(Clone)]
struct Clock(Arc<Mutex<Instant>>);

impl Default for Clock {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Clock {
    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a body, which is dropped when it has left.
struct Piece(Bytes, Clock);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        *self.1.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Returns the same request, whose body notes when its bytes leave.
fn noted(request: HttpRequest, clock: &Clock) -> HttpRequest {
    // A body in one piece is that of a small request, and its length is told by the client.
    if request.body().as_bytes().is_some() || request.body().content_length() <= PIECE {
        return request;
    }
    request.map(|mut body| {
        let mut pieces = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
            let Ok(bytes) = frame.into_data() else { continue };
            let starts = (0..bytes.len()).step_by(PIECE);
            let piece = |start: usize| bytes.slice(start..bytes.len().min(start + PIECE));
            pieces.extend(starts.map(|start| Bytes::from_owner(Piece(piece(start), clock.clone()))));
        }
        HttpRequestBody::from(PutPayload::from_iter(pieces))
    })
}

/// The body of an answer, which fails if nothing comes for too long.
struct Timed {
    body: HttpResponseBody,
    limit: Duration,
    /// `None` while bytes come.
    pause: Option<Pin<Box<Sleep>>>,
}

impl fmt::Debug for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timed").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Body for Timed {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.pause = None;
            return Poll::Ready(frame);
        }
        let limit = self.limit;
        let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(pause.as_mut().poll(context));
        self.pause = None;
        Poll::Ready(Some(Err(silent(limit))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use object_store::client::HttpService;
    use tokio::runtime::Builder;

    use super::*;

    /// A store that never answers.
    #[derive(Debug)]
    struct Silent;

    #[async_trait::async_trait]
    impl HttpService for Silent {
        async fn call(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
            std::future::pending().await
        }
    }

    fn put(payload: PutPayload) -> HttpRequest {
        HttpRequest::new(payload.into())
    }

    /// A large body may take as long as it needs.
    #[test]
    fn bytes_that_leave_are_noted() {
        let bytes: Vec<u8> = (0..3 * PIECE + 1).map(|at| (at % 251) as u8).collect();
        let clock = Clock::default();
        let request =
            noted(put(PutPayload::from_iter([bytes.clone().into(), Bytes::from_static(b"end")])), &clock);
        assert_eq!(request.body().content_length(), bytes.len() + 3);
        let (mut body, mut read) = (request.into_body(), Vec::new());
        let mut context = Context::from_waker(Waker::noop());
        let begun = clock.last();
        while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut context) {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE);
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, [bytes.as_slice(), b"end"].concat());
        // The payload of the request has the pieces, too.
        assert_eq!(clock.last(), begun);
        drop(body);
        assert!(clock.last() > begun);
    }

    #[test]
    fn silence_adds_up_to_the_limit() {
        let limits = Limits { once: Some(Duration::from_millis(20)), altogether: Duration::from_millis(400) };
        let (client, silence) = (HttpClient::new(Silent), Silence::default());
        let run = |work| Builder::new_current_thread().enable_time().build().unwrap().block_on(work);
        let ask =
            || run(async { send(&client, put(PutPayload::new()), limits, &silence).await.err().unwrap() });
        let mut times = 1;
        while !ask().is_last {
            times += 1;
        }
        assert!(times > 1);
        // The next request is not the first one without an answer.
        let next = ask();
        assert_eq!(next.error.kind(), HttpErrorKind::Timeout);
        assert!(next.is_last && next.waited >= limits.altogether * 5 / 6);
        silence.end();
        assert!(!ask().is_last);
    }
}
