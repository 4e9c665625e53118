//! Clients of `object_store` that connect to the servers.

use std::sync::Arc;

use deltalog_testkit::servers::{Azurite, FakeGcs, VersityGw};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::azure::{MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};

pub(crate) fn s3(server: &VersityGw, bucket: &str) -> Arc<AmazonS3> {
    let builder = AmazonS3Builder::new().with_bucket_name(bucket);
    let configured = server
        .options()
        .into_iter()
        .fold(builder, |builder, (name, value)| builder.with_config(name.parse().unwrap(), value));
    Arc::new(configured.build().unwrap())
}

pub(crate) fn azure(server: &Azurite, container: &str) -> Arc<MicrosoftAzure> {
    let builder = MicrosoftAzureBuilder::new().with_container_name(container);
    let configured = server
        .options()
        .into_iter()
        .fold(builder, |builder, (name, value)| builder.with_config(name.parse().unwrap(), value));
    Arc::new(configured.build().unwrap())
}

pub(crate) fn gcs(server: &FakeGcs, bucket: &str) -> Arc<GoogleCloudStorage> {
    let builder = GoogleCloudStorageBuilder::new().with_bucket_name(bucket);
    let configured = server
        .options()
        .into_iter()
        .fold(builder, |builder, (name, value)| builder.with_config(name.parse().unwrap(), value));
    Arc::new(configured.build().unwrap())
}
