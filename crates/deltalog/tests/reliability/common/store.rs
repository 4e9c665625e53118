//! A store in memory that records its calls and fails on demand.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Get,
    List,
    /// A put that may replace an object.
    Put,
    /// A put-if-absent.
    Create,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub op: Op,
    pub path: String,
}

/// The way in which a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request has no effect, and there is no answer.
    LostBefore,
    /// The request takes effect, but there is no answer.
    LostAfter,
    /// The request has no effect, and the answer is that the file already exists.
    ExistsBefore,
    /// The request takes effect, but the answer is that the file already exists.
    ExistsAfter,
    /// The request has no effect, and the answer is that permission is denied.
    Denied,
    /// The request takes effect, but the answer is that permission is denied.
    DeniedAfter,
}

type Script = Box<dyn FnMut(usize, &Call) -> Option<Fault> + Send>;

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    script: Option<Script>,
    hidden: Vec<String>,
    shows_twice: bool,
}

/// A store in memory that records its calls and fails on demand.
#[derive(Clone, Default)]
pub struct FaultyStore {
    inner: Arc<InMemory>,
    state: Arc<Mutex<State>>,
}

impl FaultyStore {
    /// Makes `script` decide whether each further call fails. It receives the number of the call, starting at
    /// 0, and the call.
    pub fn fail(&self, script: impl FnMut(usize, &Call) -> Option<Fault> + Send + 'static) {
        let mut state = self.state.lock().unwrap();
        state.calls.clear();
        state.script = Some(Box::new(script));
    }

    /// Hides files whose names end with `ending` from listings. They can still be read by name.
    pub fn hide(&self, ending: &str) {
        self.state.lock().unwrap().hidden.push(ending.to_owned());
    }

    /// Makes listings contain each file twice, as overlapping pages would.
    pub fn show_twice(&self) {
        self.state.lock().unwrap().shows_twice = true;
    }

    /// Ends the failures.
    pub fn heal(&self) {
        self.state.lock().unwrap().script = None;
    }

    /// Returns the calls since the last time, and forgets them.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }

    fn call(&self, op: Op, path: &Path) -> Option<Fault> {
        let state = &mut *self.state.lock().unwrap();
        let call = Call { op, path: path.to_string() };
        let number = state.calls.len();
        let fault = state.script.as_mut().and_then(|script| script(number, &call));
        state.calls.push(call);
        fault
    }
}

fn lost() -> Error {
    Error::Generic { store: "faulty", source: "connection reset".into() }
}

fn denied(path: &Path) -> Error {
    Error::PermissionDenied { path: path.to_string(), source: "403".into() }
}

/// Returns the answer under `fault` instead of `answer`.
fn disturbed<T>(fault: Option<Fault>, path: &Path, answer: Result<T>) -> Result<T> {
    match fault {
        None => answer,
        Some(Fault::LostBefore | Fault::LostAfter) => Err(lost()),
        Some(Fault::ExistsBefore | Fault::ExistsAfter) => {
            Err(Error::AlreadyExists { path: path.to_string(), source: "412".into() })
        }
        Some(Fault::Denied | Fault::DeniedAfter) => Err(denied(path)),
    }
}

fn has_effect(fault: Option<Fault>) -> bool {
    !matches!(fault, Some(Fault::LostBefore | Fault::ExistsBefore | Fault::Denied))
}

impl std::fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FaultyStore")
    }
}

impl std::fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FaultyStore")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let fault = self.call(if opts.mode == PutMode::Create { Op::Create } else { Op::Put }, location);
        let answer =
            if has_effect(fault) { self.inner.put_opts(location, payload, opts).await } else { Err(lost()) };
        disturbed(fault, location, answer)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let fault = self.call(Op::Get, location);
        let answer = self.inner.get_opts(location, options).await;
        disturbed(fault, location, answer)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.list_with_offset(prefix, &Path::default())
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.call(Op::List, prefix.unwrap_or(&Path::default())) {
            None => {
                let (hidden, times) = {
                    let state = self.state.lock().unwrap();
                    (state.hidden.clone(), if state.shows_twice { 2 } else { 1 })
                };
                let shown = move |meta: &Result<ObjectMeta>| {
                    !meta.as_ref().is_ok_and(|meta| {
                        hidden.iter().any(|ending| meta.location.as_ref().ends_with(ending))
                    })
                };
                let files = self
                    .inner
                    .list_with_offset(prefix, offset)
                    .filter(move |meta| std::future::ready(shown(meta)));
                let twice = files.flat_map(move |meta| match meta {
                    Ok(meta) => stream::iter(vec![meta; times].into_iter().map(Ok).collect::<Vec<_>>()),
                    Err(error) => stream::iter(vec![Err(error)]),
                });
                twice.boxed()
            }
            Some(Fault::Denied | Fault::DeniedAfter) => {
                stream::once(std::future::ready(Err(denied(offset)))).boxed()
            }
            Some(_) => stream::once(std::future::ready(Err(lost()))).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
