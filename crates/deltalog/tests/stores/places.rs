//! Creates places for tables, in every kind of store.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use deltalog::Storage;
use deltalog_testkit::s3::{S3Server, Settings};
use deltalog_testkit::servers::{Azurite, Dynalite, FakeGcs, Hdfs, VersityGw};
use tempfile::TempDir;

static S3_SERVER: LazyLock<S3Server> = LazyLock::new(S3Server::start);
static OVERWRITING: LazyLock<S3Server> =
    LazyLock::new(|| S3Server::start_with(Settings { ignores_conditions: true, ..Settings::default() }));
static DYNALITE: LazyLock<Dynalite> = LazyLock::new(Dynalite::start);
static VERSITYGW: LazyLock<VersityGw> = LazyLock::new(VersityGw::start);
static AZURITE: LazyLock<Azurite> = LazyLock::new(Azurite::start);
static FAKE_GCS: LazyLock<FakeGcs> = LazyLock::new(FakeGcs::start);
static HDFS: LazyLock<Hdfs> = LazyLock::new(Hdfs::start);

/// An empty directory, or an empty bucket of a server.
pub struct Place {
    /// The location, without a slash at its end.
    pub root: String,
    /// The settings for a client of the store.
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
        Self::in_server(&S3_SERVER)
    }

    /// Returns an empty bucket in which DynamoDB coordinates the commits.
    pub fn dynamodb() -> Self {
        Self::s3_server().coordinated(&DYNALITE)
    }

    /// Returns an empty bucket with a coordinator. The bucket's server ignores the condition of a put-if-absent and
    /// replaces the object.
    pub fn overwriting() -> Self {
        Self::in_server(&OVERWRITING).coordinated(&DYNALITE)
    }

    /// Returns the same place, in which a DynamoDB server coordinates the commits. The DynamoDB table is named after
    /// the bucket.
    pub fn coordinated(mut self, server: &Dynalite) -> Self {
        let table = self.root.replace("://", "-");
        let options = [
            ("log_store", "dynamodb".to_owned()),
            ("dynamodb_table", table),
            ("dynamodb_endpoint", server.endpoint()),
        ];
        self.options.extend(options.map(|(name, value)| (name.to_owned(), value)));
        self
    }

    /// Returns an empty bucket of `server`.
    pub fn in_server(server: &S3Server) -> Self {
        let bucket = new_bucket();
        server.create_bucket(&bucket);
        Self::remote(format!("s3://{bucket}"), server.options())
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

    pub fn hdfs() -> Self {
        Self::remote(format!("{}/{}", HDFS.root(), new_bucket()), Vec::new())
    }

    /// Returns the same place, with these values for options of its clients. An empty value removes an option.
    pub fn with(mut self, changes: &[(&str, &str)]) -> Self {
        self.options.retain(|(name, _)| !changes.iter().any(|(changed, _)| name == changed));
        let set = changes.iter().filter(|(_, value)| !value.is_empty());
        self.options.extend(set.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self
    }

    /// Returns a bucket that does not exist, in the same store.
    pub fn misspelled(mut self) -> Self {
        self.root = self.root.replacen("bucket", "tpyo", 1);
        self
    }

    /// Returns the same place for clients that use, instead of the account's key, a signature with these permissions
    /// and this expiry time.
    pub fn signed(self, permissions: &str, until: &str) -> Self {
        let bucket = self.root.split_once("://").unwrap().1.split('@').next().unwrap().to_owned();
        let signature = AZURITE.signature(&bucket, permissions, until);
        self.with(&[("azure_storage_account_key", ""), ("azure_storage_sas_token", &signature)])
    }

    /// Returns the same place in Google Cloud Storage for clients without permission to list.
    pub fn without_lists(self) -> Self {
        self.with(&[("google_bearer_token", FAKE_GCS.token_without_lists())])
    }

    fn remote(root: String, options: Vec<(String, String)>) -> Self {
        Self { root, options, directory: None }
    }

    /// Creates an empty object with exactly this name, without deltalog.
    ///
    /// # Panics
    /// If the store does not support such objects, or cannot create this one.
    pub fn create_marker(&self, key: &str) {
        let (scheme, rest) = self.root.split_once("://").unwrap();
        let bucket = rest.split('@').next().unwrap();
        match scheme {
            "s3" if self.options == S3_SERVER.options() => S3_SERVER.put_object(bucket, key, ""),
            // Azure would remove the slash at the end of the name.
            "abfss" if key.ends_with('/') => {}
            "abfss" => AZURITE.create_marker(bucket, &key.replace(' ', "%20")),
            "gs" => FAKE_GCS.create_marker(bucket, key),
            _ => panic!("no marker can be made in {}", self.root),
        }
    }

    pub fn is_hdfs(&self) -> bool {
        self.root.starts_with("hdfs:")
    }

    pub fn is_local(&self) -> bool {
        self.directory.is_some()
    }

    pub fn is_coordinated(&self) -> bool {
        self.options.iter().any(|(name, _)| name == "log_store")
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
