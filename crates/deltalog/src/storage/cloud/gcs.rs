//! Google Cloud Storage: `gs://bucket/path`.

use object_store::ClientConfigKey::AllowHttp;
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey as Key};
use url::Url;

use super::options::Options;
use super::{Traits, bucket, canonical, check_endpoint, check_texts, recipe};
use crate::error::{Error, Result};
use crate::storage::remote::Recipe;

/// The names of options, for those who misspell them.
const NAMES: [&str; 6] = [
    "google_application_credentials",
    "google_base_url",
    "google_bearer_token",
    "google_service_account",
    "google_service_account_key",
    "google_skip_signature",
];

pub(super) fn open(url: &Url, mut options: Options) -> Result<(Url, Recipe)> {
    let retries = options.retries()?;
    let mut builder = GoogleCloudStorageBuilder::from_env();
    for (key, value) in options.keys("Google Cloud Storage", &NAMES)? {
        if let Key::Bucket = key {
            return Err(Error::invalid_argument("a storage option names a bucket")
                .with_hint("leave it out: the bucket is part of the location"));
        }
        builder = builder.with_config(key, value);
    }
    let endpoint = builder.get_config_value(&Key::BaseUrl);
    check_endpoint(endpoint.as_deref(), builder.get_config_value(&Key::Client(AllowHttp)).as_deref())?;
    check_texts(&[Key::BearerToken], |key| builder.get_config_value(key))?;
    let bucket = bucket(url)?;
    let traits =
        Traits { reads_ends: true, unproven: endpoint.map(|endpoint| format!("{endpoint} {bucket}")) };
    let builder = builder.with_bucket_name(bucket);
    let recipe = recipe(
        builder,
        retries,
        traits,
        |builder, connector, retries, first: Option<&GoogleCloudStorage>| {
            let builder = builder.with_http_connector(connector).with_retry(retries);
            match first {
                Some(first) => builder.with_credentials(first.credentials().clone()).build(),
                None => builder.build(),
            }
        },
    );
    Ok((canonical(url)?, recipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known() {
        for name in NAMES {
            assert!(name.parse::<Key>().is_ok(), "{name}");
        }
    }
}
