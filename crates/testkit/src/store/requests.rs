//! The requests of a store, with the faults that the director chooses.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::DateTime;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::director::{Answer, Call, Op};
use super::fault::Fault;
use super::objects::{Effect, Entry, Object, Refusal};
use super::upload::Upload;
use super::{Store, crash, denied, exists, lost, missing};

impl Store {
    /// Makes a change, with the fault that the director chooses. Returns the number of the change.
    pub(super) fn change(&self, op: Op, path: &Path, effect: Effect) -> Result<u64> {
        let call = Call { op, path: path.to_string() };
        let fault = self.director.begin(&call);
        let now_ms = self.director.now_ms();
        let content = match &effect {
            Effect::Put(bytes) | Effect::Create(bytes) | Effect::Update(bytes, _) => {
                Answer::Content(bytes.clone())
            }
            Effect::Delete => Answer::Done,
        };
        let refused = |refusal: Refusal| match refusal {
            Refusal::Exists => exists(path.as_ref()),
            Refusal::IsAnother => Error::Precondition { path: path.to_string(), source: "412".into() },
        };
        let Some(fault) = fault else {
            let changed = self.objects().change(path.as_ref(), effect, now_ms);
            self.director.end(&call, if changed.is_ok() { content } else { Answer::Exists });
            return changed.map_err(refused);
        };
        if let Fault::Late(after_ms) = fault {
            self.objects().defer(path.as_ref(), effect, now_ms + after_ms);
        } else if fault.has_effect() {
            // The response is lost, so its result does not matter.
            let _ = self.objects().change(path.as_ref(), effect, now_ms);
        }
        self.director.end(&call, Answer::Failed(fault));
        Err(failure(fault, path.as_ref()))
    }

    /// Reads an object, with the fault that the director chooses. Returns it, and whether the response ends in the
    /// middle.
    fn object(&self, path: &Path) -> Result<(Object, bool)> {
        let call = Call { op: Op::Get, path: path.to_string() };
        let fault = self.director.begin(&call);
        if let Some(fault) = fault.filter(|fault| *fault != Fault::Torn) {
            self.director.end(&call, Answer::Failed(fault));
            return Err(failure(fault, path.as_ref()));
        }
        let found = self.objects().get(path.as_ref()).cloned();
        let answer = match (&found, fault) {
            (_, Some(fault)) => Answer::Failed(fault),
            (Some(object), None) => Answer::Content(object.bytes.clone()),
            (None, None) => Answer::Missing,
        };
        self.director.end(&call, answer);
        Ok((found.ok_or_else(|| missing(path.as_ref()))?, fault.is_some()))
    }

    fn entries(&self, prefix: &Path, after: &Path) -> Result<Vec<ObjectMeta>> {
        let call = Call { op: Op::List, path: prefix.to_string() };
        if let Some(fault) = self.director.begin(&call) {
            self.director.end(&call, Answer::Failed(fault));
            return Err(failure(fault, prefix.as_ref()));
        }
        let began = self.objects().changes();
        self.director.pause();
        let entries = self.objects().list(prefix.as_ref(), after.as_ref());
        let entries = self.director.shown(entries, began);
        self.director.end(&call, Answer::Entries(entries.len()));
        Ok(entries.into_iter().map(meta).collect())
    }
}

/// Returns the error of a request that failed with `fault`. If the fault is a crash, does not return.
pub(super) fn failure(fault: Fault, path: &str) -> Error {
    match fault {
        Fault::LostBefore | Fault::LostAfter | Fault::Late(_) | Fault::Torn => lost(),
        Fault::ExistsBefore | Fault::ExistsAfter => exists(path),
        Fault::Denied | Fault::DeniedAfter => denied(path),
        Fault::CrashBefore | Fault::CrashAfter => crash(),
    }
}

fn meta(entry: Entry) -> ObjectMeta {
    ObjectMeta {
        // The path was part of a request, so it is valid.
        location: Path::parse(entry.path).unwrap_or_default(),
        last_modified: DateTime::from_timestamp_millis(entry.modified_ms).unwrap_or_default(),
        size: entry.size,
        e_tag: Some(entry.number.to_string()),
        version: None,
    }
}

fn written(number: u64) -> PutResult {
    PutResult { e_tag: Some(number.to_string()), version: None, extensions: Default::default() }
}

#[async_trait]
impl ObjectStore for Store {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let bytes = Bytes::from(payload);
        let (op, effect) = match options.mode {
            PutMode::Overwrite => (Op::Put, Effect::Put(bytes)),
            PutMode::Create => (Op::Create, Effect::Create(bytes)),
            PutMode::Update(version) => {
                let number = version.e_tag.and_then(|tag| tag.parse().ok()).unwrap_or_default();
                (Op::Put, Effect::Update(bytes, number))
            }
        };
        self.change(op, location, effect).map(written)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Upload::new(self.clone(), location.clone())))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let (object, is_torn) = self.object(location)?;
        let Object { bytes, modified_ms, number, appeared } = object;
        let size = bytes.len() as u64;
        let meta = meta(Entry { path: location.to_string(), size, modified_ms, number, appeared });
        options.check_preconditions(&meta)?;
        if options.head && is_torn {
            return Err(lost());
        }
        let range = match options.range {
            None => 0..size,
            Some(range) => range
                .as_range(size)
                .map_err(|error| Error::Generic { store: "testkit", source: error.to_string().into() })?,
        };
        let mut chunks = vec![Ok(bytes.slice(range.start as usize..range.end as usize))];
        if is_torn {
            let middle = (range.start + range.end) / 2;
            chunks = vec![Ok(bytes.slice(range.start as usize..middle as usize)), Err(lost())];
        }
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::iter(chunks).boxed()),
            meta,
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = Arc::new(self.clone());
        let delete = move |location: Result<Path>| {
            let location = location?;
            store.change(Op::Delete, &location, Effect::Delete).map(|_| location)
        };
        locations.map(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.list_with_offset(prefix, &Path::default())
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let entries = self.entries(prefix.unwrap_or(&Path::default()), offset);
        stream::iter(
            entries.map_or_else(|error| vec![Err(error)], |found| found.into_iter().map(Ok).collect()),
        )
        .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = prefix.cloned().unwrap_or_default();
        let mut result =
            ListResult { common_prefixes: Vec::new(), objects: Vec::new(), extensions: Default::default() };
        for entry in self.entries(&prefix, &Path::default())? {
            let mut names = entry.location.prefix_match(&prefix).into_iter().flatten();
            let directory =
                names.next().zip(names.next()).map(|(directory, _)| prefix.clone().join(directory));
            drop(names);
            match directory {
                None => result.objects.push(entry),
                Some(directory) if result.common_prefixes.last() == Some(&directory) => {}
                Some(directory) => result.common_prefixes.push(directory),
            }
        }
        Ok(result)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let bytes = self.objects().get(from.as_ref()).map(|found| found.bytes.clone());
        let bytes = bytes.ok_or_else(|| missing(from.as_ref()))?;
        let effect = match options.mode {
            CopyMode::Overwrite => Effect::Put(bytes),
            CopyMode::Create => Effect::Create(bytes),
        };
        self.change(Op::Copy, to, effect).map(drop)
    }
}
