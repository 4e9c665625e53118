//! Multipart uploads. Nothing is visible until the last request, which is a put.

use async_trait::async_trait;
use futures::FutureExt;
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use super::Store;
use super::director::{Answer, Call, Op};
use super::objects::Effect;

/// A multipart upload.
#[derive(Debug)]
pub(super) struct Upload {
    store: Store,
    path: Path,
    parts: Vec<u8>,
}

impl Upload {
    pub(super) fn new(store: Store, path: Path) -> Self {
        Self { store, path, parts: Vec::new() }
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let sent = self.store.part(&self.path);
        if sent.is_ok() {
            data.iter().for_each(|bytes| self.parts.extend_from_slice(bytes));
        }
        std::future::ready(sent).boxed()
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let bytes = std::mem::take(&mut self.parts).into();
        let number = self.store.change(Op::Put, &self.path, Effect::Put(bytes))?;
        Ok(PutResult { e_tag: Some(number.to_string()), version: None, extensions: Default::default() })
    }

    async fn abort(&mut self) -> Result<()> {
        self.parts.clear();
        Ok(())
    }
}

impl Store {
    /// Sends a part, which has no visible effect.
    fn part(&self, path: &Path) -> Result<()> {
        let call = Call { op: Op::Part, path: path.to_string() };
        let fault = self.director.begin(&call);
        self.director.end(&call, fault.map_or(Answer::Done, Answer::Failed));
        fault.map_or(Ok(()), |fault| Err(super::requests::failure(fault, path.as_ref())))
    }
}
