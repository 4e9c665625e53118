//! Writes an object to a remote store in parts.
//!
//! - The object becomes visible when it is complete, and then replaces an older one with the same name.
//! - An object of a single part is put with one request. A larger object is uploaded a few parts at a time, and only
//!   these parts are in memory.
//! - If the upload is dropped before it is complete, it is aborted. If that fails, its parts remain in the store until
//!   the store's own rules remove them. Readers never see these parts.

use std::io;

use super::Storage;
use super::parts::Parts;
use super::remote::Remote;
use crate::error::{Error, ErrorKind, Result};

/// The size of every part except the last. Stores require at least 5 MiB, and some require equal parts.
const PART_SIZE: usize = 8 << 20;

/// An object that is being written.
#[derive(Debug)]
pub(super) struct Upload {
    storage: Storage,
    store: Remote,
    path: String,
    /// The bytes that were not uploaded yet. They are less than a part.
    buffer: Vec<u8>,
    /// The total number of bytes.
    size: u64,
    parts: Option<Parts>,
}

impl Upload {
    pub(super) fn new(storage: Storage, store: Remote, path: &str) -> Self {
        Self { storage, store, path: path.to_owned(), buffer: Vec::new(), size: 0, parts: None }
    }

    /// Writes all of `bytes`.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.size += bytes.len() as u64;
        while self.buffer.len() >= PART_SIZE {
            let rest = self.buffer.split_off(PART_SIZE);
            let part = std::mem::replace(&mut self.buffer, rest);
            self.put_part(part).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Completes the object.
    ///
    /// # Errors
    /// `Unavailable`, `PermissionDenied`. The complete object may exist nevertheless.
    pub(super) fn finish(mut self) -> Result<()> {
        let rest = std::mem::take(&mut self.buffer);
        if self.parts.is_none() {
            return self.storage.put(&self.path, rest.into());
        }
        if !rest.is_empty() {
            self.put_part(rest)?;
        }
        match self.parts.as_mut().map(Parts::complete) {
            Some(Err(failure)) if failure.is_missing() => self.ensure_complete()?,
            Some(Err(failure)) => return Err(self.storage.error(&self.path, failure)),
            _ => {}
        }
        self.parts = None;
        Ok(())
    }

    /// Checks that the object exists. If the response to the request that completes the upload is lost, the client
    /// sends this request again, but many stores then no longer know the upload.
    fn ensure_complete(&self) -> Result<()> {
        match self.storage.head(&self.path)? {
            Some(found) if found.size == self.size => Ok(()),
            _ => Err(Error::new(ErrorKind::Unavailable, "the store has lost the upload of the file")
                .at_path(&self.path)
                .in_table(self.storage.url())),
        }
    }

    fn put_part(&mut self, part: Vec<u8>) -> Result<()> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            None => {
                let begun = self.store.upload(self.storage.path(&self.path)?);
                self.parts.insert(begun.map_err(|failure| self.storage.error(&self.path, failure))?)
            }
        };
        parts.put(part).map_err(|failure| self.storage.error(&self.path, failure))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(mut parts) = self.parts.take()
            && let Err(failure) = parts.abort()
            && !failure.is_missing()
        {
            let error = self.storage.error(&self.path, failure);
            tracing::warn!(%error, "an upload was not aborted");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use url::Url;

    use super::*;

    /// In these tests, requests run on the process's async runtime.
    fn stores() -> (Storage, Remote) {
        let store = Arc::new(InMemory::new());
        let url = Url::parse("memory:///t").unwrap();
        (Storage::with_store(url, Arc::clone(&store) as _).unwrap(), Remote::new(store))
    }

    #[test]
    fn objects_with_any_number_of_parts_have_all_bytes() {
        let (storage, store) = stores();
        for size in [0, 1, PART_SIZE - 1, PART_SIZE, PART_SIZE + 1, 2 * PART_SIZE, 2 * PART_SIZE + 7] {
            let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let mut upload = Upload::new(storage.clone(), store.clone(), "f");
            // The pieces that are written do not end where parts end.
            for piece in bytes.chunks(3 << 20) {
                upload.write(piece).unwrap();
                assert!(upload.buffer.len() < PART_SIZE);
            }
            upload.finish().unwrap();
            assert!(storage.read("f").unwrap() == bytes, "{size} bytes");
        }
    }

    /// The client sends the completing request again, at a time when the store no longer knows the upload.
    #[test]
    #[cfg(feature = "s3")]
    fn an_object_exists_although_the_last_response_was_lost() {
        use deltalog_testkit::s3::{ErrorAnswer, Fault, Kind, Rule, S3Server, When};

        let server = S3Server::start();
        server.create_bucket("tables");
        let options = server.options();
        let options = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let storage = Storage::open("s3://tables/t", options).unwrap();
        let write = |path: &str| {
            let mut file = storage.create_file(path)?;
            std::io::Write::write_all(&mut file, &vec![7; PART_SIZE + 1]).unwrap();
            file.finish()
        };
        let completing = |fault: Fault| Rule::new(fault).on(Kind::CompleteUpload);
        server.faults([completing(Fault::CloseAfter).when(When::First(1))]);
        assert_eq!(write("f").unwrap(), PART_SIZE as u64 + 1);
        assert_eq!(storage.head("f").unwrap().unwrap().size, PART_SIZE as u64 + 1);
        // This time, the upload is really lost.
        server.faults([completing(Fault::Error(ErrorAnswer::new("NoSuchUpload")))]);
        let error = write("g").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(storage.head("g").unwrap().is_none());
    }

    #[test]
    fn an_object_does_not_change_before_it_is_complete() {
        let (storage, store) = stores();
        storage.put("f", "old".into()).unwrap();
        let mut upload = Upload::new(storage.clone(), store.clone(), "f");
        upload.write(&vec![7; PART_SIZE + 1]).unwrap();
        assert_eq!(storage.read("f").unwrap(), "old");
        drop(upload);
        assert_eq!(storage.read("f").unwrap(), "old");
    }
}
