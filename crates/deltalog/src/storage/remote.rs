//! A remote store, whose requests block the caller.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use futures::executor::block_on;
use object_store::path::Path;
use object_store::{
    Error, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions,
    PutOptions, PutPayload, Result,
};

use super::runtime;

/// A store, and who drives its requests.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    store: Arc<dyn ObjectStore>,
    driver: Driver,
}

/// Who drives the requests of a store.
#[derive(Clone, Copy, Debug)]
enum Driver {
    /// The runtime of the process, for stores that wait for a network.
    Runtime,
    /// The calling thread, for stores that never wait for anything.
    Caller,
}

impl Driver {
    fn run<T: Send + 'static>(self, request: impl Future<Output = T> + Send + 'static) -> Result<T> {
        match self {
            Self::Runtime => runtime::run(request)
                .map_err(|error| Error::Generic { store: "deltalog", source: Box::new(error) }),
            Self::Caller => Ok(block_on(request)),
        }
    }
}

impl Remote {
    pub(super) fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, driver: Driver::Runtime }
    }

    /// Takes a store whose requests are complete when they are polled first. They run on the thread of the caller.
    pub(super) fn immediate(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, driver: Driver::Caller }
    }

    fn run<T, F>(&self, request: impl FnOnce(Arc<dyn ObjectStore>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.driver.run(request(Arc::clone(&self.store)))?
    }

    /// Returns the objects below `prefix` whose path is greater than `after`.
    pub(super) fn list(&self, prefix: Path, after: Path) -> Result<Vec<ObjectMeta>> {
        self.run(|store| async move {
            store.list_with_offset(Some(&prefix), &after).try_collect::<Vec<_>>().await
        })
    }

    pub(super) fn head(&self, path: Path) -> Result<ObjectMeta> {
        self.run(|store| async move { store.head(&path).await })
    }

    /// Reads a whole object, and what the store says of it.
    pub(super) fn get(&self, path: Path) -> Result<(Bytes, ObjectMeta)> {
        self.run(|store| async move {
            let found = store.get(&path).await?;
            let meta = found.meta.clone();
            Ok((found.bytes().await?, meta))
        })
    }

    pub(super) fn put(&self, path: Path, bytes: PutPayload, mode: PutMode) -> Result<()> {
        let options = PutOptions { mode, ..PutOptions::default() };
        self.run(|store| async move { store.put_opts(&path, bytes, options).await.map(drop) })
    }

    pub(super) fn delete(&self, path: Path) -> Result<()> {
        self.run(|store| async move { store.delete(&path).await })
    }

    /// Begins an upload in parts.
    pub(super) fn upload(&self, path: Path) -> Result<Parts> {
        let options = PutMultipartOptions::default();
        let upload = self.run(|store| async move { store.put_multipart_opts(&path, options).await })?;
        Ok(Parts { upload: Some(upload), driver: self.driver })
    }
}

/// An upload in parts that has begun.
#[derive(Debug)]
pub(super) struct Parts {
    /// None while a request is running, and after one that has panicked.
    upload: Option<Box<dyn MultipartUpload>>,
    driver: Driver,
}

impl Parts {
    /// Runs a request of the upload, which goes to the driver and comes back with the answer.
    fn run<T, F>(&mut self, request: impl FnOnce(Box<dyn MultipartUpload>) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = (Box<dyn MultipartUpload>, Result<T>)> + Send + 'static,
    {
        let Some(upload) = self.upload.take() else {
            return Err(Error::Generic { store: "deltalog", source: "the upload has failed before".into() });
        };
        let (upload, answer) = self.driver.run(request(upload))?;
        self.upload = Some(upload);
        answer
    }

    pub(super) fn put(&mut self, part: Vec<u8>) -> Result<()> {
        self.run(|mut upload| async move {
            let done = upload.put_part(part.into()).await;
            (upload, done)
        })
    }

    pub(super) fn complete(&mut self) -> Result<()> {
        self.run(|mut upload| async move {
            let done = upload.complete().await.map(drop);
            (upload, done)
        })
    }

    pub(super) fn abort(&mut self) -> Result<()> {
        self.run(|mut upload| async move {
            let done = upload.abort().await;
            (upload, done)
        })
    }
}
