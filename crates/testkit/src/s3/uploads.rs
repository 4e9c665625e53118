//! Multipart uploads that have been neither completed nor aborted.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use super::buckets::{Etag, Object, Refusal};

#[derive(Debug, Default)]
struct Upload {
    key: String,
    parts: BTreeMap<i32, Object>,
}

#[derive(Debug, Default)]
pub(super) struct Uploads {
    open: BTreeMap<String, Upload>,
    created: u64,
}

impl Uploads {
    /// Begins an upload, and returns its id.
    pub(super) fn create(&mut self, key: &str) -> String {
        self.created += 1;
        let id = format!("upload-{}", self.created);
        self.open.insert(id.clone(), Upload { key: key.to_owned(), parts: BTreeMap::new() });
        id
    }

    fn upload(&mut self, key: &str, id: &str) -> Result<&mut Upload, Refusal> {
        self.open.get_mut(id).filter(|upload| upload.key == key).ok_or(Refusal::NoSuchUpload)
    }

    /// Stores a part. It replaces an earlier part with the same number.
    pub(super) fn put(&mut self, key: &str, id: &str, number: i32, bytes: Bytes) -> Result<Etag, Refusal> {
        let part = Object::new(bytes);
        let etag = part.etag;
        self.upload(key, id)?.parts.insert(number, part);
        Ok(etag)
    }

    /// Returns the object that consists of the parts `named`, given by number and entity tag. The upload stays open.
    pub(super) fn assemble(
        &mut self,
        key: &str,
        id: &str,
        named: &[(i32, String)],
        minimum_part: usize,
    ) -> Result<Object, Refusal> {
        let upload = self.upload(key, id)?;
        if named.is_empty() {
            return Err(Refusal::InvalidPart);
        }
        if !named.is_sorted_by(|(before, _), (number, _)| before < number) {
            return Err(Refusal::InvalidPartOrder);
        }
        let found = named.iter().map(|(number, tag)| {
            upload.parts.get(number).filter(|part| part.etag.to_string() == *tag).ok_or(Refusal::InvalidPart)
        });
        let parts = found.collect::<Result<Vec<_>, _>>()?;
        if parts[..parts.len() - 1].iter().any(|part| part.bytes.len() < minimum_part) {
            return Err(Refusal::EntityTooSmall);
        }
        let (mut content, mut digests) = (BytesMut::new(), Vec::new());
        for part in &parts {
            content.extend_from_slice(&part.bytes);
            digests.extend_from_slice(&part.etag.digest);
        }
        let mut object = Object::new(content.freeze());
        object.etag = Etag { digest: Etag::of(&digests).digest, parts: parts.len() };
        Ok(object)
    }

    /// Removes an upload, because it was completed or aborted.
    pub(super) fn close(&mut self, key: &str, id: &str) -> Result<(), Refusal> {
        self.upload(key, id)?;
        self.open.remove(id);
        Ok(())
    }

    /// Returns the keys of the open uploads.
    pub(super) fn keys(&self) -> Vec<String> {
        self.open.values().map(|upload| upload.key.clone()).collect()
    }
}
