//! The methods of the server that tests call.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::buckets::{Buckets, Condition, Object};
use super::requests::Request;
use super::rules::{Rule, Rules};
use super::running::Running;
use super::settings::Settings;
use super::{Shared, listener, lock};

/// An S3 server on a free port of 127.0.0.1, with its own threads. It stops when it is dropped.
///
/// Its methods access the contents directly, without requests, so no faults apply. They panic if a bucket does not
/// exist.
#[derive(Debug)]
pub struct S3Server {
    shared: Arc<Shared>,
    first_settings: Settings,
    running: Running,
}

impl S3Server {
    /// Starts a server without buckets.
    ///
    /// # Panics
    ///
    /// Panics if the system has no free port or cannot start a thread.
    pub fn start() -> Self {
        Self::start_with(Settings::default())
    }

    /// Starts a server with these settings.
    ///
    /// # Panics
    ///
    /// Panics if the system has no free port or cannot start a thread.
    pub fn start_with(settings: Settings) -> Self {
        let shared = Arc::new(Shared::default());
        *lock(&shared.settings) = settings.clone();
        let running = listener::start(shared.clone());
        Self { shared, first_settings: settings, running }
    }

    /// Returns the URL of the server.
    pub fn endpoint(&self) -> String {
        self.running.endpoint()
    }

    /// Returns the options with which deltalog opens a table on this server.
    pub fn options(&self) -> Vec<(String, String)> {
        let Settings { access_key, secret_key, region, .. } = self.settings();
        let options = [
            ("aws_endpoint", self.endpoint()),
            ("aws_access_key_id", access_key),
            ("aws_secret_access_key", secret_key),
            ("aws_region", region.unwrap_or_else(|| "us-east-1".to_owned())),
            ("aws_allow_http", "true".to_owned()),
        ];
        options.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Returns the settings.
    pub fn settings(&self) -> Settings {
        self.shared.settings()
    }

    /// Changes the settings that apply to later requests.
    pub fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut lock(&self.shared.settings));
    }

    /// Creates a bucket if it does not exist.
    pub fn create_bucket(&self, name: &str) {
        self.shared.buckets().create(name);
    }

    /// Returns whether a bucket exists.
    pub fn has_bucket(&self, name: &str) -> bool {
        self.shared.buckets().get(name).is_ok()
    }

    /// Deletes all buckets, rules and recorded requests, and restores the settings with which the server was started.
    pub fn reset(&self) {
        *self.shared.buckets() = Buckets::default();
        *lock(&self.shared.settings) = self.first_settings.clone();
        self.faults([]);
        self.shared.log().clear();
    }

    /// Replaces all rules and resets their counters.
    pub fn faults(&self, rules: impl IntoIterator<Item = Rule>) {
        *self.shared.rules() = Rules::new(rules.into_iter().collect());
    }

    /// Returns the recorded requests, in the order in which they ended. A request is recorded before its response is
    /// sent.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log().clone()
    }

    /// Returns the recorded requests and clears the record.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.shared.log())
    }

    /// Writes an object.
    pub fn put_object(&self, bucket: &str, key: &str, content: impl Into<Bytes>) {
        self.fill(bucket, [(key.to_owned(), content.into())]);
    }

    /// Writes many objects. If their contents are clones of each other, they share memory.
    pub fn fill(&self, bucket: &str, objects: impl IntoIterator<Item = (String, Bytes)>) {
        let mut buckets = self.shared.buckets();
        let bucket = buckets.get_mut(bucket).expect("the bucket exists");
        for (key, content) in objects {
            let object = Object::new(content);
            bucket.put(key, object, &Condition::Always).expect("a write without a condition succeeds");
        }
    }

    /// Returns the contents of an object.
    pub fn get_object(&self, bucket: &str, key: &str) -> Option<Bytes> {
        let buckets = self.shared.buckets();
        let bucket = buckets.get(bucket).expect("the bucket exists");
        bucket.objects.get(key).map(|object| object.bytes.clone())
    }

    /// Removes an object; returns whether it existed.
    pub fn delete_object(&self, bucket: &str, key: &str) -> bool {
        let mut buckets = self.shared.buckets();
        buckets.get_mut(bucket).expect("the bucket exists").objects.remove(key).is_some()
    }

    /// Sets the modification time of an object; returns whether the object exists.
    pub fn set_modified(&self, bucket: &str, key: &str, time: SystemTime) -> bool {
        let mut buckets = self.shared.buckets();
        let object = buckets.get_mut(bucket).expect("the bucket exists").objects.get_mut(key);
        object.map(|object| object.modified = time).is_some()
    }

    /// Returns all keys with the given prefix, sorted.
    pub fn keys(&self, bucket: &str, prefix: &str) -> Vec<String> {
        let buckets = self.shared.buckets();
        let objects = &buckets.get(bucket).expect("the bucket exists").objects;
        let below = objects.range(prefix.to_owned()..).map(|(key, _)| key);
        below.take_while(|key| key.starts_with(prefix)).cloned().collect()
    }

    /// Returns the key of each multipart upload that is neither completed nor aborted.
    pub fn open_uploads(&self, bucket: &str) -> Vec<String> {
        self.shared.buckets().get(bucket).expect("the bucket exists").uploads.keys()
    }
}
