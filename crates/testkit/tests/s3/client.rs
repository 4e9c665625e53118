//! Creates a server, and clients for it.

use std::time::Duration;

use deltalog_testkit::s3::S3Server;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{ClientOptions, RetryConfig};

pub(crate) const BUCKET: &str = "tables";

/// Starts a server with a bucket.
pub(crate) fn server() -> S3Server {
    let server = S3Server::start();
    server.create_bucket(BUCKET);
    server
}

/// Returns the settings of a client that connects to `server` without retries.
pub(crate) fn builder(server: &S3Server) -> AmazonS3Builder {
    // If the whole workspace is built, `reqwest` requires a cryptography provider even for plain HTTP. Installing it
    // a second time fails, which is not a problem.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = server.settings();
    AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_bucket_name(BUCKET)
        .with_region("us-east-1")
        .with_access_key_id(settings.access_key)
        .with_secret_access_key(settings.secret_key)
        .with_client_options(options())
        .with_retry(retries(0))
}

pub(crate) fn options() -> ClientOptions {
    ClientOptions::new().with_allow_http(true).with_timeout(Duration::from_secs(60))
}

pub(crate) fn retries(count: usize) -> RetryConfig {
    RetryConfig { max_retries: count, ..RetryConfig::default() }
}

pub(crate) fn client(server: &S3Server) -> AmazonS3 {
    builder(server).build().unwrap()
}

/// Runs a future of a client to its end.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
