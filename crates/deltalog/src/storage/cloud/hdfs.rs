//! Hadoop's file system: `hdfs://host:port/path`, or `hdfs://nameservice/path`.
//!
//! - As in Hadoop, a name without a port is a name service if the settings list name nodes for it. Otherwise it is a
//!   host, with Hadoop's default port.
//! - The settings are Hadoop's own: the files in `$HADOOP_CONF_DIR` (or `$HADOOP_HOME/etc/hadoop`), and options with
//!   the names of these settings, such as `dfs.ha.namenodes.NAME`, which override the files.
//! - A file is written to a temporary path next to its own and then renamed, so that it becomes visible as a whole. To
//!   create a file only if it is absent, it is renamed without overwriting, which the name node does in one step. If
//!   there is no response to a change, the client does not send it again.
//! - The client itself would wait forever for a name node that does not respond, and minutes for the other nodes of a
//!   name service. So each step is limited to the time that a store may take to respond (`retry_timeout`): a request,
//!   the next entries of a listing, the next bytes of a file. Only parts of large files are written with the client's
//!   own limit of one minute.

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use hdfs_native::client::WriteOptions;
use hdfs_native::{ClientBuilder, HdfsError};
use hdfs_native_object_store::HdfsObjectStore;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result as StoreResult,
};
use url::Url;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::runtime::spelling::nearest;
use crate::storage::answers::{self, NoAnswerReason, Note, Purpose, Request, Settings};
use crate::storage::cache::settings;
use crate::storage::remote::{Client, Recipe};
use crate::storage::runtime;

use super::options::{SILENCE, duration};
use super::patience::{self, Silence};
use super::{Place, canonical};

/// The prefixes of the names of Hadoop's settings.
const OF_HADOOP: [&str; 4] = ["dfs.", "fs.", "hadoop.", "ipc."];

/// The setting for how many times a request is sent to a name node. With Hadoop's default of 15, this takes minutes, so
/// that a second name node has time to take over. A host with a port has no second name node.
const ATTEMPTS: &str = "dfs.client.failover.max.attempts";

/// The port of a name node, if the URL has none.
const PORT: u16 = 8020;

/// The names of the options that are not settings of Hadoop.
const NAMES: [&str; 5] = [
    // The directory with Hadoop's `core-site.xml` and `hdfs-site.xml`, instead of `HADOOP_CONF_DIR`.
    "hdfs_config_dir",
    // The keytab file with the key of `hdfs_kerberos_principal`.
    "hdfs_kerberos_keytab",
    // The Kerberos principal that logs in, instead of the ticket from `kinit`.
    "hdfs_kerberos_principal",
    // The user name in a cluster without Kerberos.
    "hdfs_user",
    // How long HDFS may be silent in total, over a request and its retries, before a call fails. Default: 30s.
    "retry_timeout",
];

/// The number of bytes of a file that are written at a time.
const PIECE: usize = 1 << 20;

const SETTINGS: Settings = Settings {
    credentials: "kinit, or 'hdfs_kerberos_principal' and 'hdfs_kerberos_keytab'",
    secret: "'hdfs_kerberos_keytab'",
    host: "the name node in the location, and Hadoop's settings",
    silence: "the storage option 'retry_timeout' limits the time for which HDFS may be silent",
};

pub(super) fn open(url: &Url, options: &[(&str, &str)], has_provider: bool) -> Result<Place> {
    if has_provider {
        return Err(Error::invalid_argument("HDFS does not accept a credential provider").with_hint(
            "log in with kinit, or pass the options 'hdfs_kerberos_principal' and 'hdfs_kerberos_keytab'",
        ));
    }
    if !url.has_host() {
        return Err(Error::invalid_argument("the location names no name node")
            .with_hint("write hdfs://host:port/path, or hdfs://nameservice/path"));
    }
    let mut settings = HdfsSettings::of(options)?;
    let url = canonical(url)?;
    if url.port().is_some() && !settings.hadoop.iter().any(|(name, _)| name == ATTEMPTS) {
        settings.hadoop.push((ATTEMPTS.to_owned(), "3".to_owned()));
    }
    let server = format!("hdfs://{}", url.authority());
    let has_port = url.port().is_some();
    let patience = Patience {
        host: url.authority().to_owned().into(),
        limit: settings.silence.unwrap_or(SILENCE),
        silence: Arc::default(),
    };
    let recipe = Recipe::new(move || {
        let runtime = runtime::handle().map_err(|error| failed(error.into()))?;
        let build =
            |server: &str| settings.builder().with_url(server).with_io_runtime(runtime.clone()).build();
        let client = match build(&server) {
            // The client reports a name service without name nodes only by the text of this error.
            Err(HdfsError::InvalidArgument(what)) if !has_port && what.contains("No NameNode") => {
                build(&format!("{server}:{PORT}"))
            }
            built => built,
        };
        let client = client.map_err(failed)?;
        let store: Arc<dyn ObjectStore> = Arc::new(Store {
            files: HdfsObjectStore::new(client.clone()),
            client,
            patience: patience.clone(),
        });
        Ok(Client {
            once: Arc::clone(&store),
            store,
            pages: None,
            has_directories: true,
            reads_ends: true,
            is_proven: Arc::new(true.into()),
            #[cfg(feature = "s3")]
            dynamodb: None,
        })
    });
    Ok(Place { url, recipe, log_store_scheme: None })
}

/// The arguments for creating a client.
#[derive(Default)]
struct HdfsSettings {
    hadoop: Vec<(String, String)>,
    config_dir: Option<String>,
    user: Option<String>,
    principal: Option<String>,
    keytab: Option<String>,
    silence: Option<Duration>,
}

impl HdfsSettings {
    /// Reads the settings from the options of the store.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown name. The hint suggests the known name that is most similar.
    fn of(options: &[(&str, &str)]) -> Result<Self> {
        let mut settings = Self::default();
        for &(name, value) in options {
            let value = value.to_owned();
            match name.to_ascii_lowercase().as_str() {
                "hdfs_config_dir" => settings.config_dir = Some(value),
                "hdfs_user" => settings.user = Some(value),
                "hdfs_kerberos_principal" => settings.principal = Some(value),
                "hdfs_kerberos_keytab" => settings.keytab = Some(value),
                "retry_timeout" => settings.silence = Some(duration("retry_timeout", &value)?),
                // Hadoop's names are case-sensitive.
                _ if OF_HADOOP.iter().any(|beginning| name.starts_with(beginning)) => {
                    settings.hadoop.push((name.to_owned(), value));
                }
                _ => {
                    let error =
                        Error::invalid_argument(format!("there is no storage option '{name}' for HDFS"));
                    let names = NAMES.iter().chain(&settings::NAMES).copied();
                    return Err(match nearest(name, names) {
                        Some(near) => error.with_hint(format!("spell it '{near}'")),
                        None => error.with_hint(
                            "pass settings of Hadoop under their own names, such as dfs.client.use.datanode.hostname",
                        ),
                    });
                }
            }
        }
        Ok(settings)
    }

    fn builder(&self) -> ClientBuilder {
        let mut builder = ClientBuilder::new().with_config(self.hadoop.iter().cloned());
        if let Some(directory) = &self.config_dir {
            builder = builder.with_config_dir(directory);
        }
        if let Some(user) = &self.user {
            builder = builder.with_user(user);
        }
        if let Some(principal) = &self.principal {
            builder = builder.with_kerberos_principal(principal);
        }
        match &self.keytab {
            Some(keytab) => builder.with_kerberos_keytab(keytab),
            None => builder,
        }
    }
}

/// How long to wait for a file system.
#[derive(Debug, Clone)]
struct Patience {
    host: Arc<str>,
    limit: Duration,
    silence: Arc<Silence>,
}

impl Patience {
    /// Waits for the response to a request. `verb` says what the request does with the file or directory `path`.
    async fn wait<T>(&self, verb: &str, path: &str, answer: impl Future<Output = T>) -> io::Result<T> {
        let waited = match patience::wait(answer, self.limit, &self.silence).await {
            Ok(answer) => return Ok(answer),
            Err(waited) => waited,
        };
        let request = Request {
            settings: &SETTINGS,
            method: verb.to_owned(),
            host: self.host.to_string(),
            path: path.to_owned(),
            purpose: Purpose::Other,
        };
        let cause = format!("nothing was received for {:.1} s", waited.as_secs_f64());
        let error = io::Error::new(io::ErrorKind::TimedOut, cause.clone());
        answers::note(Note::NoAnswer { request, cause, reason: NoAnswerReason::Silent(waited) });
        Err(error)
    }

    /// Waits for each item of a stream.
    fn wait_for_each<T: Send + 'static>(
        &self,
        verb: &'static str,
        path: String,
        stream: BoxStream<'static, StoreResult<T>>,
    ) -> BoxStream<'static, StoreResult<T>> {
        let patience = self.clone();
        let items = stream::unfold(Some(stream), move |stream| {
            let (patience, path) = (patience.clone(), path.clone());
            async move {
                let mut stream = stream?;
                match patience.wait(verb, &path, stream.next()).await {
                    Ok(item) => Some((item?, Some(stream))),
                    Err(error) => Some((Err(silent(error)), None)),
                }
            }
        });
        // The stream may be polled again after its end: for an empty file, `object_store` requests the first bytes
        // twice.
        items.fuse().boxed()
    }
}

/// A file system in which a file only becomes visible when it is complete.
#[derive(Debug)]
struct Store {
    /// The store of `object_store`. It handles all requests except simple puts.
    files: HdfsObjectStore,
    client: hdfs_native::Client,
    patience: Patience,
}

impl Store {
    /// Writes a temporary file next to `path`, and renames it to `path`.
    async fn write(&self, path: &Path, payload: PutPayload, replaces: bool) -> Result<(), HdfsError> {
        let name = format!("/{path}");
        let (directory, last) = name.rsplit_once('/').unwrap_or(("", &name));
        let beside = format!("{directory}/.{last}.{}.tmp", Uuid::new_v4());
        let written = self.write_beside(&beside, payload).await;
        let renamed = match written {
            Ok(()) => {
                self.patience.wait("rename to", &name, self.client.rename(&beside, &name, replaces)).await?
            }
            Err(error) => Err(error),
        };
        // The temporary file is only deleted if the rename was refused. If there was no response, the rename may still
        // take effect later.
        let is_refused = matches!(&renamed, Err(HdfsError::AlreadyExists(_)));
        if is_refused {
            let deleted = self.patience.wait("delete", &beside, self.client.delete(&beside, false)).await;
            if let Err(error) = deleted.map_err(HdfsError::from).flatten() {
                tracing::debug!(file = beside, %error, "a temporary file was left behind");
            }
        }
        renamed
    }

    async fn write_beside(&self, path: &str, payload: PutPayload) -> Result<(), HdfsError> {
        let create = self.client.create(path, WriteOptions::default());
        let mut file = self.patience.wait("create", path, create).await??;
        for bytes in payload {
            for start in (0..bytes.len()).step_by(PIECE) {
                let piece = bytes.slice(start..bytes.len().min(start + PIECE));
                self.patience.wait("write", path, file.write_bytes(piece)).await??;
            }
        }
        self.patience.wait("close", path, file.close()).await?
    }
}

#[async_trait]
impl ObjectStore for Store {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        let replaces = match options.mode {
            PutMode::Create => false,
            PutMode::Overwrite => true,
            PutMode::Update(_) => {
                return Err(StoreError::NotImplemented {
                    operation: "a put with a condition on the file that is replaced".to_owned(),
                    implementer: "HDFS".to_owned(),
                });
            }
        };
        self.write(location, payload, replaces).await.map_err(failed)?;
        Ok(PutResult { e_tag: None, version: None, extensions: Default::default() })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        let created = self.files.put_multipart_opts(location, options);
        self.patience.wait("create", &shown(location), created).await.map_err(silent)?.map_err(told)
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        let path = shown(location);
        let found = self.files.get_opts(location, options);
        let mut found = self.patience.wait("read", &path, found).await.map_err(silent)?.map_err(told)?;
        found.payload = match found.payload {
            GetResultPayload::Stream(bytes) => {
                GetResultPayload::Stream(self.patience.wait_for_each("read", path, bytes))
            }
            other => other,
        };
        Ok(found)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        self.patience.wait_for_each("delete files", String::new(), self.files.delete_stream(locations))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        let path = prefix.map(shown).unwrap_or_default();
        self.patience.wait_for_each("list", path, self.files.list(prefix))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        let path = prefix.map(shown).unwrap_or_default();
        let listed = self.files.list_with_delimiter(prefix);
        self.patience.wait("list", &path, listed).await.map_err(silent)?.map_err(told)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        // The client writes these bytes itself, with its own time limit.
        self.files.copy_opts(from, to, options).await.map_err(told)
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HDFS")
    }
}

fn shown(location: &Path) -> String {
    format!("/{location}")
}

fn silent(error: io::Error) -> StoreError {
    failed(error.into())
}

/// Converts an error of HDFS to the kind of error that `object_store` has for it, and otherwise to a generic error.
fn failed(error: HdfsError) -> StoreError {
    let (path, error) = (String::new(), brief(error));
    match &error {
        HdfsError::FileNotFound(path) => StoreError::NotFound { path: path.clone(), source: error.into() },
        HdfsError::AlreadyExists(path) => {
            StoreError::AlreadyExists { path: path.clone(), source: error.into() }
        }
        HdfsError::RPCError(class, _) | HdfsError::FatalRPCError(class, _)
            if class.ends_with("AccessControlException") =>
        {
            StoreError::PermissionDenied { path, source: error.into() }
        }
        // A path below a file cannot exist.
        HdfsError::RPCError(class, _) if class.ends_with("ParentNotDirectoryException") => {
            StoreError::NotFound { path, source: error.into() }
        }
        HdfsError::SASLError(_) | HdfsError::GSSAPIError(..) | HdfsError::NoSASLMechanism => {
            StoreError::Unauthenticated { path, source: error.into() }
        }
        _ => StoreError::Generic { store: "HDFS", source: error.into() },
    }
}

/// Returns the error without the server's stack trace.
fn brief(error: HdfsError) -> HdfsError {
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    match error {
        HdfsError::RPCError(class, text) => HdfsError::RPCError(class, first(text)),
        HdfsError::FatalRPCError(class, text) => HdfsError::FatalRPCError(class, first(text)),
        HdfsError::AlreadyExists(text) => HdfsError::AlreadyExists(first(text)),
        HdfsError::FileNotFound(text) => HdfsError::FileNotFound(first(text)),
        error => error,
    }
}

/// Does the same as [`failed`] for an error of HDFS that `object_store` has wrapped. Returns other errors unchanged.
fn told(error: StoreError) -> StoreError {
    match error {
        StoreError::Generic { store, source } => match source.downcast::<HdfsError>() {
            Ok(error) => failed(*error),
            Err(source) => StoreError::Generic { store, source },
        },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use crate::error::ErrorKind;
    use crate::storage::Storage;

    fn refusal(url: &str, options: &[(&str, &str)]) -> String {
        Storage::open(url, options.iter().copied()).unwrap_err().to_string()
    }

    #[test]
    fn options_are_settings_of_hadoop_or_our_own() {
        let url = "hdfs://host:8020/t";
        for name in
            ["dfs.ha.namenodes.Lake", "hadoop.security.authentication", "hdfs_user", "HDFS_CONFIG_DIR"]
        {
            Storage::open(url, [(name, "x")]).unwrap();
        }
        assert!(refusal(url, &[("hdfs_usr", "x")]).contains("spell it 'hdfs_user'"));
        assert!(refusal(url, &[("aws_region", "x")]).contains("settings of Hadoop under their own names"));
    }

    #[test]
    fn a_location_must_name_a_name_node() {
        assert!(refusal("hdfs:///t", &[]).contains("names no name node"));
        assert!(refusal("hdfs://user@host/t", &[]).contains("contains credentials"));
    }

    /// A host without a port has Hadoop's default port.
    #[test]
    fn a_name_node_without_a_port_has_the_default_port() {
        let storage =
            Storage::open("hdfs://127.0.0.1/t", [("dfs.client.failover.max.attempts", "1")]).unwrap();
        let error = storage.read("f").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("refused"), "{error}");
    }

    /// Without a limit of our own, the client would wait forever.
    #[test]
    fn waiting_for_a_silent_name_node_ends_after_the_users_limit() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("hdfs://{}/t", silent.local_addr().unwrap());
        let storage = Storage::open(&url, [("retry_timeout", "400ms")]).unwrap();
        let reads: [&dyn Fn() -> crate::Result<()>; 2] =
            [&|| storage.read("f").map(|_| ()), &|| storage.head("f").map(|_| ())];
        for read in reads {
            let error = read().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            let text = error.to_string();
            assert!(text.contains("the store gave no answer for "), "{text}");
            assert!(text.contains(&format!("{}/t", silent.local_addr().unwrap())), "{text}");
            assert!(error.hint().is_some_and(|hint| hint.contains("'retry_timeout'")), "{error}");
        }
        assert!(refusal(&url, &[("retry_timeout", "soon")]).contains("is not a duration"));
    }

    /// If no name node can be reached, the error says so within seconds.
    #[test]
    fn an_unreachable_name_node_is_reported_within_seconds() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let storage = Storage::open(&format!("hdfs://127.0.0.1:{port}/t"), []).unwrap();
        let error = storage.read("f").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("refused"), "{error}");
    }
}
