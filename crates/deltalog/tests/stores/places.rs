//! Places for tables, each in a store.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use deltalog::Storage;
use deltalog_testkit::s3::S3Server;
use deltalog_testkit::servers::{Azurite, FakeGcs, VersityGw};
use tempfile::TempDir;

static S3_SERVER: LazyLock<S3Server> = LazyLock::new(S3Server::start);
static VERSITYGW: LazyLock<VersityGw> = LazyLock::new(VersityGw::start);
static AZURITE: LazyLock<Azurite> = LazyLock::new(Azurite::start);
static FAKE_GCS: LazyLock<FakeGcs> = LazyLock::new(FakeGcs::start);

/// An empty directory, or an empty bucket of a server.
pub struct Place {
    /// The location, without a slash at its end.
    pub root: String,
    /// What a client of the store needs.
    pub options: Vec<(String, String)>,
    directory: Option<TempDir>,
}

impl Place {
    pub fn local() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_str().unwrap().to_owned();
        Self { root, options: Vec::new(), directory: Some(directory) }
    }

    pub fn s3_server() -> Self {
        let bucket = new_bucket();
        S3_SERVER.create_bucket(&bucket);
        Self::remote(format!("s3://{bucket}"), S3_SERVER.options())
    }

    pub fn versitygw() -> Self {
        let bucket = new_bucket();
        VERSITYGW.create_bucket(&bucket);
        Self::remote(format!("s3://{bucket}"), VERSITYGW.options())
    }

    pub fn azurite() -> Self {
        let bucket = new_bucket();
        AZURITE.create_bucket(&bucket);
        let account = AZURITE.account();
        Self::remote(format!("abfss://{bucket}@{account}.dfs.core.windows.net"), AZURITE.options())
    }

    pub fn fake_gcs() -> Self {
        let bucket = new_bucket();
        FAKE_GCS.create_bucket(&bucket);
        Self::remote(format!("gs://{bucket}"), FAKE_GCS.options())
    }

    fn remote(root: String, options: Vec<(String, String)>) -> Self {
        Self { root, options, directory: None }
    }

    pub fn is_local(&self) -> bool {
        self.directory.is_some()
    }

    /// Opens the table or directory `name`, which may not exist.
    pub fn open(&self, name: &str) -> Storage {
        let options = self.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Storage::open(&format!("{}/{name}", self.root), options).unwrap()
    }
}

fn new_bucket() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("bucket{}", COUNT.fetch_add(1, Ordering::Relaxed))
}
