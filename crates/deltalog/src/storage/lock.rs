//! Locks of files and directories, which writers in other processes respect if they take them as well.

use std::fs::{File, TryLockError};
use std::io;
use std::time::Duration;

use crate::runtime::{clock, interrupt};

/// A file or directory that this process has locked.
#[derive(Debug)]
pub(super) struct Locked(File);

impl Locked {
    /// Locks a file or directory. Returns `None` if it is locked by others at each of `tries` times, which are `pause`
    /// apart, or if the call is interrupted.
    ///
    /// # Errors
    /// Returns an error if the file system has no locks.
    pub(super) fn new(file: File, tries: u32, pause: Duration) -> io::Result<Option<Self>> {
        for _ in 0..tries {
            if interrupt::check().is_err() {
                break;
            }
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self(file))),
                Err(TryLockError::WouldBlock) => clock::pause(pause),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    pub(super) fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    /// Unlocks the file explicitly. Closing it is not enough: if a child process was forked in the meantime, the file
    /// is open there, too.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}
