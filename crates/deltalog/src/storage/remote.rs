//! A remote store. Its requests block the caller.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions,
    PutOptions, PutPayload,
};

use super::answers::{self, Failure};
use super::budget::{self, Budget};
use super::driver::Driver;
use super::list::Depth;
use super::parts::Parts;
#[cfg(feature = "_cloud")]
use crate::runtime::per_process::PerProcess;

/// The maximum number of concurrent requests of one call.
const PARALLEL: usize = 8;

/// How many times a page of a listing is requested again because the response ended too early.
const CUT_PAGES: usize = 3;

/// A store, and the driver that determines which thread runs its requests.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    clients: Arc<Clients>,
    driver: Driver,
    reads: Reads,
}

/// The limits for concurrent reads.
#[derive(Clone, Debug)]
pub(super) struct Reads {
    /// The budget of memory for data that is read ahead.
    pub(super) budget: Arc<Budget>,
    /// The number of files to read at the same time; `None` if this crate decides.
    pub(super) concurrency: Option<usize>,
}

impl Default for Reads {
    /// Returns the limits for stores without options. These stores share one budget.
    fn default() -> Self {
        static BUDGET: LazyLock<Arc<Budget>> = LazyLock::new(|| Budget::new(budget::DEFAULT));
        Self { budget: Arc::clone(&BUDGET), concurrency: None }
    }
}

/// A weak reference to a store. It does not keep the store alive when no table uses the store any more.
#[cfg(feature = "_cloud")]
#[derive(Debug)]
pub(super) struct WeakRemote(std::sync::Weak<Clients>, Driver, Reads);

#[cfg(feature = "_cloud")]
impl WeakRemote {
    pub(super) fn upgrade(&self) -> Option<Remote> {
        self.0.upgrade().map(|clients| Remote { clients, driver: self.1, reads: self.2.clone() })
    }
}

/// The clients of one store.
#[derive(Debug)]
enum Clients {
    /// A client that the caller provides.
    Given(Client),
    /// Clients that each process creates for itself, because their connections belong to the async runtime of a
    /// process.
    #[cfg(feature = "_cloud")]
    Made(PerProcess<Client>, Recipe),
}

/// A function that creates a client.
#[cfg(feature = "_cloud")]
pub(super) struct Recipe(Box<dyn Fn() -> object_store::Result<Client> + Send + Sync>);

/// The client of a store, in several variants.
#[derive(Clone)]
pub(super) struct Client {
    /// The client that sends a request again if there is no response.
    pub(super) store: Arc<dyn ObjectStore>,
    /// The client that sends every request only once. It creates commits.
    pub(super) once: Arc<dyn ObjectStore>,
    /// The client that lists page by page.
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    /// Whether the store has directories, which can be listed without the files in nested directories.
    pub(super) has_directories: bool,
    /// Whether the end of an object can be read without knowing the object's size.
    pub(super) reads_ends: bool,
    /// Whether it is known that creating an object in this store never replaces one. If not, this is tested before the
    /// first commit.
    pub(super) is_proven: Arc<AtomicBool>,
    /// The client that decides commits.
    #[cfg(feature = "s3")]
    pub(super) dynamodb: Option<Arc<super::cloud::DynamoDb>>,
}

/// One page of a listing.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) objects: Vec<ObjectMeta>,
    /// The nested directories, if the page was requested with a delimiter. The page does not contain the keys in them.
    pub(super) prefixes: Vec<Path>,
    /// The token with which the next page is requested.
    pub(super) token: Option<String>,
}

type Result<T, E = Failure> = std::result::Result<T, E>;

#[cfg(feature = "_cloud")]
impl Recipe {
    pub(super) fn new(make: impl Fn() -> object_store::Result<Client> + Send + Sync + 'static) -> Self {
        Self(Box::new(make))
    }
}

impl Client {
    fn given(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            once: Arc::clone(&store),
            store,
            pages: None,
            has_directories: false,
            reads_ends: true,
            is_proven: Arc::new(true.into()),
            #[cfg(feature = "s3")]
            dynamodb: None,
        }
    }
}

impl Remote {
    pub(super) fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self::with(Clients::Given(Client::given(store)), Driver::Runtime, Reads::default())
    }

    /// Wraps a store whose requests are complete when they are polled for the first time. They run on the calling
    /// thread.
    pub(super) fn immediate(store: Arc<dyn ObjectStore>) -> Self {
        Self::with(Clients::Given(Client::given(store)), Driver::Caller, Reads::default())
    }

    fn with(clients: Clients, driver: Driver, reads: Reads) -> Self {
        Self { clients: Arc::new(clients), driver, reads }
    }

    /// Creates clients from a recipe, and creates new ones in a forked child process.
    #[cfg(feature = "_cloud")]
    pub(super) fn made(recipe: Recipe, reads: Reads) -> object_store::Result<Self> {
        let made = PerProcess::new();
        made.get_or_make(&recipe.0, drop)?;
        Ok(Self::with(Clients::Made(made, recipe), Driver::Runtime, reads))
    }

    #[cfg(feature = "_cloud")]
    pub(super) fn downgrade(&self) -> WeakRemote {
        WeakRemote(Arc::downgrade(&self.clients), self.driver, self.reads.clone())
    }

    pub(super) fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Returns a number that identifies this store among all open stores.
    pub(super) fn id(&self) -> usize {
        Arc::as_ptr(&self.clients).addr()
    }

    /// Returns whether responses take time.
    pub(super) fn waits(&self) -> bool {
        matches!(self.driver, Driver::Runtime)
    }

    /// Returns whether it is known that creating an object in this store never replaces one.
    pub(super) fn is_proven(&self) -> Result<bool> {
        Ok(self.client()?.is_proven.load(Ordering::Relaxed))
    }

    /// Records that creating an object in this store does not replace one.
    pub(super) fn prove(&self) -> Result<()> {
        self.client()?.is_proven.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn client(&self) -> Result<Client> {
        Ok(match &*self.clients {
            Clients::Given(client) => client.clone(),
            #[cfg(feature = "_cloud")]
            Clients::Made(made, recipe) => made.get_or_make(&recipe.0, drop)?.clone(),
        })
    }

    pub(super) fn run<T, F>(&self, request: impl FnOnce(Client) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let (answer, note) = self.driver.run(request(self.client()?))?;
        answer.map_err(|error| Failure::new(error, note))
    }

    /// Returns the objects of `directory` whose path is greater than `after`, in any order. The result may contain
    /// other objects as well.
    pub(super) fn list(&self, directory: Path, after: Option<Path>, depth: Depth) -> Result<Vec<ObjectMeta>> {
        self.run(|client| async move {
            match client.pages {
                Some(pages) => list_pages(&*pages, &directory, after.as_ref(), depth).await,
                None if client.has_directories && depth == Depth::One => {
                    Ok(client.store.list_with_delimiter(Some(&directory)).await?.objects)
                }
                None => {
                    let after = after.unwrap_or_else(|| directory.clone());
                    client.store.list_with_offset(Some(&directory), &after).try_collect().await
                }
            }
        })
    }

    /// Returns whether the store can list page by page.
    pub(super) fn has_pages(&self) -> Result<bool> {
        Ok(self.client()?.pages.is_some())
    }

    /// Returns whether the store has directories, which can be listed without the files in nested directories.
    pub(super) fn has_directories(&self) -> Result<bool> {
        Ok(self.client()?.has_directories)
    }

    /// Returns one page of the keys that begin with `prefix`. The store must be able to list page by page.
    pub(super) fn page(&self, prefix: String, options: PaginatedListOptions) -> Result<Page> {
        self.run(|client| async move {
            let Some(pages) = client.pages else {
                let (operation, implementer) = ("list page by page".to_owned(), client.store.to_string());
                return Err(object_store::Error::NotImplemented { operation, implementer });
            };
            let prefix = Some(prefix.as_str()).filter(|prefix| !prefix.is_empty());
            let page = page(&*pages, prefix, &options).await?;
            Ok(Page {
                objects: page.result.objects,
                prefixes: page.result.common_prefixes,
                token: page.page_token,
            })
        })
    }

    /// Returns the files and directories that are directly in a directory.
    pub(super) fn directory(&self, path: Path) -> Result<Page> {
        self.run(|client| async move {
            let found = client.store.list_with_delimiter(Some(&path)).await?;
            Ok(Page { objects: found.objects, prefixes: found.common_prefixes, token: None })
        })
    }

    /// Returns all objects below a directory, at any depth.
    pub(super) fn all(&self, directory: Path) -> Result<Vec<ObjectMeta>> {
        self.run(|client| async move { client.store.list(Some(&directory)).try_collect().await })
    }

    pub(super) fn head(&self, path: Path) -> Result<ObjectMeta> {
        self.run(|client| async move { client.store.head(&path).await })
    }

    /// Reads a whole object, and returns it with its metadata.
    pub(super) fn get(&self, path: Path) -> Result<(Bytes, ObjectMeta)> {
        self.run(|client| async move { whole(client.store.get(&path).await?).await })
    }

    /// Reads the last `length` bytes of an object, or the whole object if it is shorter, and returns them with its
    /// metadata. If the store cannot read the end of an object directly, the size is requested first.
    pub(super) fn end(&self, path: Path, length: u64) -> Result<(Bytes, ObjectMeta)> {
        self.run(|client| async move {
            let mut options = GetOptions::default();
            if client.reads_ends {
                options.range = Some(GetRange::Suffix(length));
            } else {
                let found = client.store.head(&path).await?;
                if found.size == 0 {
                    return Ok((Bytes::new(), found));
                }
                options.range = Some(GetRange::Bounded(found.size.saturating_sub(length)..found.size));
                options.if_match = strong(found.e_tag);
            }
            whole(client.store.get_opts(&path, options).await?).await
        })
    }

    /// Does the same as [`Remote::end`], but returns `None` if the object still has the tag `e_tag`.
    pub(super) fn end_unless(
        &self,
        path: Path,
        length: u64,
        e_tag: String,
    ) -> Result<Option<(Bytes, ObjectMeta)>> {
        self.run(|client| async move {
            let mut options = GetOptions::default();
            if client.reads_ends {
                options.range = Some(GetRange::Suffix(length));
                options.if_none_match = Some(e_tag);
            } else {
                let found = client.store.head(&path).await?;
                if found.e_tag.as_ref() == Some(&e_tag) {
                    return Ok(None);
                }
                if found.size == 0 {
                    return Ok(Some((Bytes::new(), found)));
                }
                options.range = Some(GetRange::Bounded(found.size.saturating_sub(length)..found.size));
                options.if_match = strong(found.e_tag);
            }
            match client.store.get_opts(&path, options).await {
                Err(object_store::Error::NotModified { .. }) => Ok(None),
                found => whole(found?).await.map(Some),
            }
        })
    }

    /// Reads several ranges of an object in parallel. Fails if the object no longer has the tag `e_tag`.
    pub(super) fn ranges(
        &self,
        path: Path,
        e_tag: Option<String>,
        ranges: Vec<Range<u64>>,
    ) -> Result<Vec<Bytes>> {
        self.run(|client| async move {
            let requests = ranges.into_iter().map(|range| {
                let options = GetOptions {
                    range: Some(GetRange::Bounded(range)),
                    if_match: e_tag.clone(),
                    ..GetOptions::default()
                };
                let (store, path) = (Arc::clone(&client.store), path.clone());
                async move { store.get_opts(&path, options).await?.bytes().await }
            });
            stream::iter(requests).buffered(PARALLEL).try_collect().await
        })
    }

    pub(super) fn put(&self, path: Path, bytes: PutPayload, mode: PutMode) -> Result<()> {
        let options = PutOptions { mode, ..PutOptions::default() };
        self.run(|client| async move { client.store.put_opts(&path, bytes, options).await.map(drop) })
    }

    /// Creates an object unless it exists, with a request that is only sent once. Returns the tag of the object.
    pub(super) fn create(&self, path: Path, bytes: PutPayload) -> Result<Option<String>> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.run(|client| async move { client.once.put_opts(&path, bytes, options).await })?;
        Ok(put.e_tag)
    }

    pub(super) fn delete(&self, path: Path) -> Result<()> {
        self.run(|client| async move { client.store.delete(&path).await })
    }

    /// Deletes objects. In stores that support it, one request deletes many of them. Objects that do not exist are
    /// ignored.
    pub(super) fn delete_all(&self, paths: Vec<Path>) -> Result<()> {
        self.run(|client| async move {
            let paths = stream::iter(paths.into_iter().map(Ok)).boxed();
            let mut answers = client.store.delete_stream(paths);
            while let Some(answer) = answers.next().await {
                match answer {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
    }

    /// Begins an upload in parts.
    pub(super) fn upload(&self, path: Path) -> Result<Parts> {
        let options = PutMultipartOptions::default();
        let upload =
            self.run(|client| async move { client.store.put_multipart_opts(&path, options).await })?;
        Ok(Parts::new(upload, self.driver))
    }
}

/// Returns the entity tag if it identifies the bytes of an object, and `None` if it is weak. A weak tag (`W/"…"`), as
/// proxies create it, only means that the content is equivalent: `If-Match` never holds for it, and ranges of objects
/// with such a tag must not be combined. (RFC 9110, 8.8.1 and 13.1.1.)
pub(super) fn strong(e_tag: Option<String>) -> Option<String> {
    e_tag.filter(|e_tag| !e_tag.starts_with("W/"))
}

/// Reads the whole body of a response.
async fn whole(found: GetResult) -> object_store::Result<(Bytes, ObjectMeta)> {
    let meta = found.meta.clone();
    Ok((found.bytes().await?, meta))
}

/// Lists a page. If a response is cut off, requests the page again, because the client itself does not: the client only
/// repeats a request until a response begins. If the response then ends too early, it requests the rest of an object,
/// but not the rest of a page.
async fn page(
    store: &dyn PaginatedListStore,
    prefix: Option<&str>,
    options: &PaginatedListOptions,
) -> object_store::Result<PaginatedListResult> {
    for _ in 0..CUT_PAGES {
        answers::forget();
        match store.list_paginated(prefix, options.clone()).await {
            Err(error) if answers::is_cut(&error) => tracing::debug!(%error, "a listing was cut off"),
            answered => return answered,
        }
    }
    store.list_paginated(prefix, options.clone()).await
}

async fn list_pages(
    store: &dyn PaginatedListStore,
    directory: &Path,
    after: Option<&Path>,
    depth: Depth,
) -> object_store::Result<Vec<ObjectMeta>> {
    let prefix = match directory.as_ref() {
        "" => None,
        directory => Some(format!("{directory}/")),
    };
    let mut options = PaginatedListOptions {
        offset: after.map(|after| after.as_ref().to_owned()),
        delimiter: (depth == Depth::One).then_some("/".into()),
        ..PaginatedListOptions::default()
    };
    let mut found = Vec::new();
    loop {
        let page = page(store, prefix.as_deref(), &options).await?;
        found.extend(page.result.objects);
        match page.page_token {
            Some(token) => options.page_token = Some(token),
            None => return Ok(found),
        }
    }
}

#[cfg(feature = "_cloud")]
impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recipe").finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    /// Leaves out the settings of the store, because they may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
