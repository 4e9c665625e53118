//! A multipart upload that is in progress.

use std::collections::VecDeque;

use object_store::{Error, MultipartUpload};

use super::answers::Failure;
use super::driver::{Driver, Pending};
use crate::runtime::interrupt;

/// The number of parts that are uploaded at the same time.
const PARALLEL: usize = 4;

type Result<T> = std::result::Result<T, Failure>;
type Answer<T> = object_store::Result<T>;

/// The parts of an object that are still being uploaded. They are in memory.
#[derive(Debug)]
pub(super) struct Parts {
    /// `None` after a request was interrupted or has panicked, because the request owned the upload.
    upload: Option<Box<dyn MultipartUpload>>,
    under_way: VecDeque<Pending<Answer<()>>>,
    driver: Driver,
}

impl Parts {
    pub(super) fn new(upload: Box<dyn MultipartUpload>, driver: Driver) -> Self {
        Self { upload: Some(upload), under_way: VecDeque::new(), driver }
    }

    /// Starts to send the next part. If `PARALLEL` parts are already being sent, first waits for the oldest of them, so
    /// an error may be about an earlier part.
    pub(super) fn put(&mut self, part: Vec<u8>) -> Result<()> {
        if self.under_way.len() >= PARALLEL {
            self.wait_for_first()?;
        }
        let upload = self.upload.as_mut().ok_or_else(lost)?;
        let part = self.driver.start(upload.put_part(part.into()))?;
        self.under_way.push_back(part);
        Ok(())
    }

    /// Waits until all parts are uploaded, and completes the object.
    pub(super) fn complete(&mut self) -> Result<()> {
        while !self.under_way.is_empty() {
            self.wait_for_first()?;
        }
        self.run(|mut upload| async move {
            let done = upload.complete().await.map(drop);
            (upload, done)
        })
    }

    /// Aborts the upload. First waits for parts that are still being sent, because they would otherwise remain in the
    /// store.
    pub(super) fn abort(&mut self) -> Result<()> {
        interrupt::shielded(|| self.abort_shielded())
    }

    fn abort_shielded(&mut self) -> Result<()> {
        while !self.under_way.is_empty() {
            // It no longer matters whether this part was uploaded.
            let _ = self.wait_for_first();
        }
        self.run(|mut upload| async move {
            let done = upload.abort().await;
            (upload, done)
        })
    }

    fn wait_for_first(&mut self) -> Result<()> {
        match self.under_way.pop_front() {
            Some(part) => {
                let (answer, note) = part.wait()?;
                answer.map_err(|error| Failure::new(error, note))
            }
            None => Ok(()),
        }
    }

    /// Runs a request of the upload. The upload is moved to the driver, which returns it together with the response.
    fn run<F>(&mut self, request: impl FnOnce(Box<dyn MultipartUpload>) -> F) -> Result<()>
    where
        F: Future<Output = (Box<dyn MultipartUpload>, Answer<()>)> + Send + 'static,
    {
        let upload = self.upload.take().ok_or_else(lost)?;
        let ((upload, answer), note) = self.driver.run(request(upload))?;
        self.upload = Some(upload);
        answer.map_err(|error| Failure::new(error, note))
    }
}

fn lost() -> Failure {
    Error::Generic { store: "deltalog", source: "the upload has failed before".into() }.into()
}
