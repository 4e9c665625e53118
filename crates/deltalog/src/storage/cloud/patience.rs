//! Limits how long a store may take to respond.
//!
//! ```text
//! request ──(bytes leave)── silence ── answer ──(bytes come)── silence ── …
//!                           └─ at most `read_timeout` each, and all that is left for the last one
//! request ── silence ── again ── silence ── again …  at most `retry_timeout`, or 30 s, altogether
//! ```
//!
//! - A silence is the time since the last byte was sent or received. A large body may take as long as it needs.
//! - The silences of a store add up over the requests of a client, until there is any response. So a call that sends
//!   one request after another does not wait the full time for each of them.
//! - A store that was silent gets further chances: every request has some time for a response, and after twice the
//!   limit, the silence is counted from zero again, even if requests were sent all the time.

use std::collections::VecDeque;
use std::convert::Infallible;
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
use reqwest::Client;
use tokio::time::{Instant, Sleep, sleep, timeout_at};
use url::Url;

/// The number of bytes of a body that are sent at a time.
const PIECE: usize = 64 << 10;

/// The fraction of the total limit that every request gets, however long the store was silent before. It is needed
/// because after an outage, a request also needs time for a connection.
const LEAST_SHARE: u32 = 15;

/// The fraction of the total limit after which a request is not sent again.
const LAST_SHARE: (u32, u32) = (5, 6);

/// How long a store may take to respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// The limit within one request.
    pub(super) once: Option<Duration>,
    /// The limit over several requests.
    pub(super) altogether: Duration,
}

impl Limits {
    /// Returns how much time is left for a request if the store was silent for `waited` before.
    pub(super) fn left(&self, waited: Duration) -> Duration {
        self.altogether.saturating_sub(waited).max(self.altogether / LEAST_SHARE)
    }

    /// Returns how long the store may be silent within a request, if it was silent for `waited` before. If no later
    /// request could have as much time, this request gets all the remaining time, so that a store that always takes
    /// slightly longer than the limit can still respond.
    fn of_request(&self, waited: Duration) -> Option<Duration> {
        let once = self.once?;
        let left = self.left(waited);
        let is_last = self.are_over(waited + once) || left < once * 2;
        // A request only gets all the remaining time if the store was already silent for a whole request, and not yet
        // for the total limit.
        let is_between = (once..self.altogether).contains(&waited);
        Some(if is_last && is_between { left } else { once.min(left) })
    }

    /// Returns whether a request should not be sent again if the store was silent for `waited`.
    pub(super) fn are_over(&self, waited: Duration) -> bool {
        let (part, whole) = LAST_SHARE;
        waited >= self.altogether * part / whole
    }
}

/// Records how long a store has been silent.
#[derive(Debug, Default)]
pub(super) struct Silence(Mutex<Option<(Instant, Instant)>>);

impl Silence {
    /// Returns when the silence began, for a request that begins now.
    fn begin(&self, altogether: Duration) -> Instant {
        let now = Instant::now();
        let silent = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = |then: Instant| now.saturating_duration_since(then);
        match silent {
            // The recorded silence goes on, unless it is too old or has lasted for twice the limit.
            Some((since, last)) if passed(last) < altogether && passed(since) < altogether * 2 => since,
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

/// Waits for the response of a store whose client does not report when bytes are sent or received.
///
/// # Errors
/// If the store has been silent for too long, returns for how long.
#[cfg(feature = "hdfs")]
pub(super) async fn wait<T>(
    answer: impl Future<Output = T>,
    altogether: Duration,
    silence: &Silence,
) -> Result<T, Duration> {
    let since = silence.begin(altogether);
    let limits = Limits { once: None, altogether };
    match tokio::time::timeout(limits.left(since.elapsed()), answer).await {
        Ok(answer) => {
            silence.end();
            Ok(answer)
        }
        Err(_) => {
            silence.go_on(since);
            Err(since.elapsed())
        }
    }
}

/// A request without a response.
pub(super) struct Unanswered {
    pub(super) error: HttpError,
    /// How long the store has been silent.
    pub(super) waited: Duration,
    /// Whether the request must not be sent again.
    pub(super) is_last: bool,
}

/// Sends a request. Waits for its response as long as bytes are sent, or until the limit is reached. Large bodies are
/// sent by the client `large`, which has the same settings as `client`.
pub(super) async fn send(
    client: &HttpClient,
    large: &Client,
    request: HttpRequest,
    limits: Limits,
    silence: &Silence,
) -> Result<HttpResponse, Unanswered> {
    let clock = Clock::default();
    let is_large = request.body().as_bytes().is_none() && request.body().content_length() > PIECE;
    let sending = async {
        if is_large { send_large(large, request, &clock).await } else { client.execute(request).await }
    };
    let response = answered(sending, &clock, limits, silence).await?;
    Ok(match limits.once {
        Some(limit) => response.map(|body| HttpResponseBody::new(Timed { body, limit, pause: None })),
        None => response,
    })
}

/// Waits for a response.
async fn answered<T>(
    sending: impl Future<Output = Result<T, HttpError>>,
    clock: &Clock,
    limits: Limits,
    silence: &Silence,
) -> Result<T, Unanswered> {
    let since = silence.begin(limits.altogether);
    let limit = limits.of_request(since.elapsed());
    let mut sending = std::pin::pin!(sending);
    let answer = loop {
        let Some(limit) = limit else { break sending.await };
        match timeout_at(clock.last() + limit, &mut sending).await {
            Ok(answer) => break answer,
            Err(_) if clock.last().elapsed() < limit => {}
            Err(_) => break Err(silent(limit)),
        }
    };
    match answer {
        Ok(answer) => {
            silence.end();
            Ok(answer)
        }
        Err(error) => {
            silence.go_on(since);
            let waited = since.elapsed();
            Err(Unanswered { error, waited, is_last: limits.are_over(waited) })
        }
    }
}

fn silent(limit: Duration) -> HttpError {
    let text = format!("no byte was sent or received for {:.1} s", limit.as_secs_f64());
    HttpError::new(HttpErrorKind::Timeout, io::Error::new(io::ErrorKind::TimedOut, text))
}

/// Records when the last byte was sent.
#[derive(Debug, Clone)]
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

    fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// The body of a large request. It records when the client reads from it: the client does so whenever it can send more
/// bytes.
#[derive(Debug)]
struct Noted {
    pieces: VecDeque<Bytes>,
    left: u64,
    clock: Clock,
}

impl Noted {
    /// Copies the bytes of `body`.
    fn new(mut body: HttpRequestBody, clock: &Clock) -> Self {
        let (mut pieces, left) = (VecDeque::new(), body.content_length() as u64);
        let mut context = Context::from_waker(Waker::noop());
        // The bytes are in memory, so this never has to wait.
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
            let Ok(bytes) = frame.into_data() else { continue };
            let starts = (0..bytes.len()).step_by(PIECE);
            pieces.extend(starts.map(|start| bytes.slice(start..bytes.len().min(start + PIECE))));
        }
        Self { pieces, left, clock: clock.clone() }
    }
}

impl Body for Noted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.clock.note();
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Sends a request whose body is large.
async fn send_large(client: &Client, request: HttpRequest, clock: &Clock) -> Result<HttpResponse, HttpError> {
    let (parts, body) = request.into_parts();
    let url =
        Url::parse(&parts.uri.to_string()).map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
    let mut large = reqwest::Request::new(parts.method, url);
    *large.headers_mut() = parts.headers;
    *large.body_mut() = Some(reqwest::Body::wrap(Noted::new(body, clock)));
    let mut response = client.execute(large).await.map_err(failed)?;
    let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
    let mut answer = HttpResponse::new(HttpResponseBody::new(Answer(response.into())));
    (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
    Ok(answer)
}

/// Converts an error of the HTTP client as `object_store` does, with one exception: after an unrecognized error, the
/// request may have taken effect, so it is only sent again if that is harmless.
fn failed(error: reqwest::Error) -> HttpError {
    let error = error.without_url();
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else if error.is_decode() {
        HttpErrorKind::Decode
    } else if error.is_builder() || error.is_redirect() {
        HttpErrorKind::Unknown
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error)
}

/// The body of the response to a large request.
struct Answer(reqwest::Body);

impl Body for Answer {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        Pin::new(&mut self.0).poll_frame(context).map_err(failed)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// The body of a response. Reading it fails if no bytes arrive for too long.
struct Timed {
    body: HttpResponseBody,
    limit: Duration,
    /// The timer for the next bytes; `None` while bytes arrive.
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
    use object_store::PutPayload;
    use tokio::runtime::Builder;

    use super::*;

    /// A large body may take as long as it needs, because the times at which its bytes are sent are recorded.
    #[test]
    fn the_time_of_sent_bytes_is_recorded() {
        let bytes: Vec<u8> = (0..3 * PIECE + 1).map(|at| (at % 251) as u8).collect();
        let clock = Clock::default();
        let payload = PutPayload::from_iter([bytes.clone().into(), Bytes::from_static(b"end")]);
        let (mut body, mut read) = (Noted::new(payload.into(), &clock), Vec::new());
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let (before, left) = (clock.last(), body.size_hint().exact());
            assert_eq!(left, Some((bytes.len() + 3 - read.len()) as u64));
            let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut context) else { break };
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE && clock.last() > before);
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, [bytes.as_slice(), b"end"].concat());
    }

    /// A store that always takes longer than the limit for one request can still be used, if the total time suffices.
    #[test]
    fn the_last_request_gets_all_the_remaining_time() {
        let seconds = Duration::from_secs;
        let limits = Limits { once: Some(seconds(12)), altogether: seconds(30) };
        assert_eq!(limits.of_request(Duration::ZERO), Some(seconds(12)));
        assert_eq!(limits.of_request(seconds(12)), Some(seconds(18)));
        assert_eq!(limits.of_request(seconds(29)), Some(seconds(2)));
        assert_eq!(limits.of_request(seconds(40)), Some(seconds(2)));
        let quick = Limits { once: Some(seconds(1)), ..limits };
        assert_eq!(quick.of_request(seconds(23)), Some(seconds(1)));
        assert_eq!(quick.of_request(seconds(24)), Some(seconds(6)));
        assert_eq!(quick.of_request(seconds(40)), Some(seconds(1)));
        let slow = Limits { once: Some(seconds(25)), ..limits };
        assert_eq!(slow.of_request(Duration::ZERO), Some(seconds(25)));
        assert_eq!(Limits { once: None, ..limits }.of_request(seconds(12)), None);
    }

    #[test]
    fn silences_add_up_to_the_limit() {
        let limits = Limits { once: Some(Duration::from_millis(20)), altogether: Duration::from_millis(400) };
        let (runtime, silence) =
            (Builder::new_current_thread().enable_time().build().unwrap(), Silence::default());
        let ask = || {
            runtime.block_on(async {
                let never = std::future::pending::<Result<(), HttpError>>();
                answered(never, &Clock::default(), limits, &silence).await.err().unwrap()
            })
        };
        let mut times = 1;
        while !ask().is_last {
            times += 1;
        }
        assert!(times > 1);
        // Because the previous request was not answered, the next one gets less time.
        let next = ask();
        assert_eq!(next.error.kind(), HttpErrorKind::Timeout);
        assert!(next.is_last && next.waited >= limits.altogether * 5 / 6);
        silence.end();
        assert!(!ask().is_last);
    }

    /// Requests are sent without a pause, so the recorded silence never becomes too old. Nevertheless, the store's
    /// response must be received in the end.
    #[test]
    fn a_store_that_was_silent_can_respond_again() {
        let limits =
            Limits { once: Some(Duration::from_millis(200)), altogether: Duration::from_millis(600) };
        let (runtime, silence) =
            (Builder::new_current_thread().enable_time().build().unwrap(), Silence::default());
        let ask = |answer: Duration| {
            runtime.block_on(async {
                let answered_late = async {
                    sleep(answer).await;
                    Ok(())
                };
                answered(answered_late, &Clock::default(), limits, &silence).await.err()
            })
        };
        while ask(Duration::MAX).is_none_or(|unanswered| !unanswered.is_last) {}
        let tries = (1..100).find(|_| ask(Duration::from_millis(150)).is_none());
        assert!(tries.is_some(), "the store is never heard");
    }
}
