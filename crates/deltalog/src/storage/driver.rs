//! Determines which thread runs the requests to a remote store.

use std::future::Future;
use std::io;

use futures::executor::block_on;

use super::answers::{self, Failure, Note};
use super::runtime::{self, Running};
use crate::runtime::interrupt::{self, Interrupted};

#[derive(Clone, Copy, Debug)]
pub(super) enum Driver {
    /// The threads of the process's async runtime, for stores that wait for a network.
    Runtime,
    /// The calling thread, for stores that never have to wait.
    Caller,
}

/// A request that was started.
#[derive(Debug)]
pub(super) enum Pending<T> {
    Running(Running<(T, Option<Box<Note>>)>),
    Done(T),
}

impl Driver {
    /// Starts a request, unless the call is interrupted. [`Driver::Runtime`] also records the last failure of the
    /// request.
    pub(super) fn start<T: Send + 'static>(
        self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<Pending<T>, Failure> {
        interrupt::check()?;
        match self {
            Self::Runtime => {
                runtime::start(answers::noted(request)).map(Pending::Running).map_err(without_runtime)
            }
            Self::Caller => Ok(Pending::Done(block_on(request))),
        }
    }

    /// Runs a request to completion. Returns its output, and the last failure that was recorded.
    pub(super) fn run<T: Send + 'static>(
        self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> Result<(T, Option<Box<Note>>), Failure> {
        self.start(request)?.wait()
    }
}

impl<T> Pending<T> {
    /// Waits for the request to complete.
    pub(super) fn wait(self) -> Result<(T, Option<Box<Note>>), Failure> {
        match self {
            Self::Running(running) => running.wait().map_err(without_runtime),
            Self::Done(output) => Ok((output, None)),
        }
    }
}

fn without_runtime(error: io::Error) -> Failure {
    if error.get_ref().is_some_and(|cause| cause.is::<Interrupted>()) {
        return Interrupted.into();
    }
    object_store::Error::Generic { store: "deltalog", source: Box::new(error) }.into()
}
