//! Values that each process creates for itself.
//!
//! A forked child process has a copy of its parent's memory, but none of its threads. So if a value depends on threads,
//! such as an async runtime or the open connections of a client, the child creates a value of its own. It does not
//! touch its parent's value, whose state at the time of the fork is unknown.

use std::convert::Infallible;
use std::fmt;
use std::sync::OnceLock;

/// A value that each process creates for itself.
pub(crate) struct PerProcess<T>(OnceLock<Box<Owned<T>>>);

struct Owned<T> {
    process: u32,
    value: T,
    /// The value that a forked child process creates, because the child must not use `value`.
    next: PerProcess<T>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the value of this process. If it does not exist yet, the default is created.
    pub(crate) fn get(&self) -> &T
    where
        T: Default,
    {
        let value: Result<_, Infallible> = self.get_or_make(|| Ok(T::default()), drop);
        let Ok(value) = value;
        value
    }

    /// Returns the value of this process. If it does not exist yet, `make` creates it. If several threads create a
    /// value at the same time, all of them get the first one, and the other values are passed to `discard`.
    pub(crate) fn get_or_make<E>(
        &self,
        make: impl Fn() -> Result<T, E>,
        discard: impl Fn(T),
    ) -> Result<&T, E> {
        let process = std::process::id();
        let mut place = self;
        loop {
            match place.0.get() {
                Some(owned) if owned.process == process => return Ok(&owned.value),
                Some(parents) => place = &parents.next,
                None => {
                    let owned = Owned { process, value: make()?, next: Self::new() };
                    if let Err(late) = place.0.set(Box::new(owned)) {
                        discard(late.value);
                    }
                }
            }
        }
    }
}

impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerProcess").finish_non_exhaustive()
    }
}
