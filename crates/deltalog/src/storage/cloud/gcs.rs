//! Google Cloud Storage: `gs://bucket/path`.

use object_store::ClientConfigKey::AllowHttp;
use object_store::gcp::{
    GcpCredential, GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey as Key,
};
use url::Url;

use super::options::Options;
use super::provider::{printable, wrong_kind};
use super::{
    Builder as _, Place, Provider, Traits, bucket, builder, canonical, check_endpoint, check_provider,
    check_texts, complete, named_twice, recipe,
};
use crate::error::Result;
use crate::storage::answers::{SILENCE_OF_HTTP, Settings};
use crate::storage::credentials::Secret;

/// The names of the options for Google Cloud Storage. If a user misspells one, the most similar name is suggested.
const NAMES: [&str; 6] = [
    // The file with Google's application default credentials.
    "google_application_credentials",
    // The URL of the store, if it is not Google's.
    "google_base_url",
    // An access token.
    "google_bearer_token",
    // The file with the key of a service account.
    "google_service_account",
    // The key of a service account, as JSON.
    "google_service_account_key",
    // Sends requests without credentials, for public buckets. Default: false.
    "google_skip_signature",
];

/// The names of options for credentials. They cannot be combined with a credential provider.
const SECRETS: [&str; 5] = [
    "google_application_credentials",
    "google_bearer_token",
    "google_service_account",
    "google_service_account_key",
    "google_skip_signature",
];

/// The names of the settings, as they are mentioned in hints.
const SETTINGS: Settings = Settings {
    credentials: "'google_service_account', 'google_application_credentials' or 'google_bearer_token'",
    secret: "'google_service_account' or 'google_application_credentials'",
    host: "'google_base_url'",
    silence: SILENCE_OF_HTTP,
};

builder!(GoogleCloudStorageBuilder, GoogleCloudStorage, credential, SETTINGS);

fn credential(secret: Secret) -> Result<GcpCredential> {
    match secret {
        Secret::BearerToken(token) => Ok(GcpCredential { bearer: printable(token)? }),
        _ => Err(wrong_kind("an OAuth token")),
    }
}

pub(super) fn open(url: &Url, mut options: Options, provider: Provider) -> Result<Place> {
    let retries = options.retries()?;
    options.set_time_limits("google_");
    let mut builder = GoogleCloudStorageBuilder::from_env();
    let keys = options.keys("Google Cloud Storage", &NAMES)?;
    check_provider(&provider, &keys, &SECRETS)?;
    for (key, value) in keys {
        if let Key::Bucket = key {
            return Err(named_twice("bucket"));
        }
        builder = builder.with_config(key, value);
    }
    let endpoint = builder.get_config_value(&Key::BaseUrl);
    check_endpoint(endpoint.as_deref(), builder.get_config_value(&Key::Client(AllowHttp)).as_deref())?;
    check_texts(&[Key::BearerToken], |key| builder.get_config_value(key))?;
    let traits = Traits { reads_ends: true, unproven: endpoint, complete: complete() };
    let builder = builder.with_bucket_name(bucket(url)?);
    let url = canonical(url)?;
    let recipe =
        recipe(&url, builder, retries, traits, move |builder, _| Ok(builder.with_provider(&provider)));
    Ok(Place { url, recipe, log_store_scheme: None })
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
