//! Limits the speed at which bytes are sent, and ends bodies too early.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use tokio::time::{Instant, sleep_until};

/// The number of bytes that are sent at once if the speed is limited.
const CHUNK: usize = 64 << 10;

pub(super) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A channel with limited bandwidth. The whole server has one, and each request has one of its own.
#[derive(Debug, Default)]
pub(super) struct Line(Mutex<Option<Instant>>);

impl Line {
    /// Waits until all earlier bytes and then `size` more bytes have passed at this speed.
    pub(super) async fn pass(&self, size: usize, bytes_per_second: Option<u64>) {
        let Some(speed) = bytes_per_second else { return };
        let needed = Duration::from_secs_f64(size as f64 / speed.max(1) as f64);
        let until = {
            let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let until = free.map_or_else(Instant::now, |free| free.max(Instant::now())) + needed;
            *free = Some(until);
            until
        };
        sleep_until(until).await;
    }
}

/// The channels through which a body is sent, each with its speed.
#[derive(Debug, Clone)]
pub(super) struct Lines(pub(super) [(Arc<Line>, Option<u64>); 2]);

impl Lines {
    pub(super) async fn pass(&self, size: usize) {
        for (line, speed) in &self.0 {
            line.pass(size, *speed).await;
        }
    }

    fn are_fast(&self) -> bool {
        self.0.iter().all(|(_, speed)| speed.is_none())
    }
}

/// Returns a body of `content`. If the content has more than `end` bytes, the body ends with an error after `end`
/// bytes.
pub(super) fn body(content: Bytes, end: usize, lines: Lines) -> Body {
    let is_cut = end < content.len();
    if !is_cut && lines.are_fast() {
        return Full::new(content).map_err(|never| match never {}).boxed_unsync();
    }
    let chunk = if lines.are_fast() { content.len() } else { CHUNK };
    let step = move |(at, lines): (usize, Lines)| {
        let content = content.clone();
        async move {
            if at >= end {
                if is_cut && at == end {
                    // The body is pending once, so that the bytes that it has already returned are sent.
                    tokio::task::yield_now().await;
                    let cut = io::Error::new(io::ErrorKind::ConnectionAborted, "the body is cut");
                    return Some((Err(cut), (at + 1, lines)));
                }
                return None;
            }
            let next = end.min(at + chunk);
            lines.pass(next - at).await;
            Some((Ok(Frame::data(content.slice(at..next))), (next, lines)))
        }
    };
    StreamBody::new(stream::unfold((0, lines), step)).boxed_unsync()
}
