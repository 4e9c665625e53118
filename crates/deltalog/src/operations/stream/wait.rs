//! Waits for new rows of a stream.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::admission::StreamLimits;
use super::offset::StreamOffset;
use super::table_stream::TableStream;
use crate::error::Result;
use crate::runtime::interrupt;

/// The maximum time that a waiting stream sleeps before it checks again whether it was closed.
const SLICE: Duration = Duration::from_millis(100);

impl TableStream {
    /// Waits for rows after `start`, and returns the offset of the next batch as [`TableStream::latest`] does.
    /// Returns `None` if nothing new comes within `patience`, or if the stream has ended: see
    /// [`TableStream::end_at_newest`] and [`TableStream::close`].
    ///
    /// If `patience` is `None`, there is no time limit.
    ///
    /// # Errors
    /// Returns the same errors as [`TableStream::latest`].
    pub fn wait(
        &self,
        start: Option<&StreamOffset>,
        limits: StreamLimits,
        patience: Option<Duration>,
    ) -> Result<Option<StreamOffset>> {
        let environment = self.environment();
        let began_ms = environment.now_ms();
        loop {
            if self.is_closed().load(Ordering::Relaxed) {
                return Ok(None);
            }
            let found = self.latest(start, limits)?;
            if found.is_some() && found.as_ref() != start {
                return Ok(found);
            }
            let waited = Duration::from_millis(environment.ms_since(began_ms));
            let left = patience.map_or(SLICE, |patience| patience.saturating_sub(waited));
            // There is nothing new, so a stream with an end has reached its end.
            if left.is_zero() || self.is_bounded() {
                return Ok(None);
            }
            environment.sleep(left.min(SLICE));
            interrupt::check()?;
        }
    }

    /// Closes the stream. Calls of [`TableStream::wait`] in all threads return, and later calls return at once.
    pub fn close(&self) {
        self.is_closed().store(true, Ordering::Relaxed);
    }
}
