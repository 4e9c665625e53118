//! Amazon S3, and other stores with the same interface: `s3://bucket/path`.

use std::sync::Arc;

use object_store::ClientConfigKey::AllowHttp;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key, AwsCredential};
use object_store::{ClientOptions, RetryConfig};
use url::Url;

use super::dynamodb::DynamoDb;
use super::http::Connector;
use super::log_store::{self, Asked};
use super::machine::Refusal;
use super::options::Options;
use super::profile::{self, Profile};
use super::provider::{printable, wrong_kind};
use super::{
    Builder, Place, Provider, Traits, bucket, builder, canonical, check_endpoint, check_provider,
    check_texts, is_true, named_twice, recipe,
};
use crate::error::{Error, Result};
use crate::storage::answers::{SILENCE_OF_HTTP, Settings};
use crate::storage::credentials::Secret;

/// The names of the options for S3. If a user misspells one, the most similar name is suggested.
const NAMES: [&str; 29] = [
    // The access key id.
    "aws_access_key_id",
    // The same as `allow_http`.
    "aws_allow_http",
    // The checksum algorithm for objects that are written: `sha256`.
    "aws_checksum_algorithm",
    // The file with the token that a container needs to get its credentials.
    "aws_container_authorization_token_file",
    // The URL from which a container gets its credentials.
    "aws_container_credentials_full_uri",
    // The path from which a container gets its credentials, on the host of the container service.
    "aws_container_credentials_relative_uri",
    // The region, if `aws_region` is not set.
    "aws_default_region",
    // Deletes objects one by one, for stores without bulk deletion. Default: false.
    "aws_disable_bulk_delete",
    // Writes no tags to objects, for stores without tags. Default: false.
    "aws_disable_tagging",
    // The same as `aws_endpoint_url`.
    "aws_endpoint",
    // The URL of the store, if it is not Amazon's.
    "aws_endpoint_url",
    // The URL of the store, for S3 alone, if it is not Amazon's.
    "aws_endpoint_url_s3",
    // The URL of the service that issues credentials for a role.
    "aws_endpoint_url_sts",
    // Allows version 1 of the machine's metadata service. Default: false.
    "aws_imdsv1_fallback",
    // The URL of the machine's metadata service.
    "aws_metadata_endpoint",
    // The name of a profile in `~/.aws/config` and `~/.aws/credentials`.
    PROFILE,
    // The region of the bucket.
    "aws_region",
    // Makes the caller pay for requests, as some buckets require. Default: false.
    "aws_request_payer",
    // The role to assume with a web identity.
    "aws_role_arn",
    // The session name for that role.
    "aws_role_session_name",
    // Says that the bucket is a directory bucket. Default: false.
    "aws_s3_express",
    // The secret access key.
    "aws_secret_access_key",
    // How the store encrypts objects: `AES256`, `aws:kms`, `aws:kms:dsse` or `sse-c`.
    "aws_server_side_encryption",
    // The session token of temporary credentials.
    "aws_session_token",
    // Sends requests without credentials, for public buckets. Default: false.
    "aws_skip_signature",
    // Encrypts with a KMS key that the bucket keeps.
    "aws_sse_bucket_key_enabled",
    // The key for `sse-c`, encoded in Base64.
    "aws_sse_customer_key_base64",
    // The id of the key in KMS.
    "aws_sse_kms_key_id",
    // Puts the bucket into the host name instead of the path. Default: false.
    "aws_virtual_hosted_style_request",
];

/// The names of options for credentials. They cannot be combined with a credential provider.
const SECRETS: [&str; 6] = [
    "aws_access_key_id",
    "aws_role_arn",
    "aws_secret_access_key",
    "aws_session_token",
    "aws_skip_signature",
    "aws_web_identity_token_file",
];

/// The names of options for credentials of machines and containers. They take precedence over a profile that the user
/// has not named.
const MACHINES: [&str; 4] = [
    "aws_container_authorization_token_file",
    "aws_container_credentials_full_uri",
    "aws_container_credentials_relative_uri",
    "aws_metadata_endpoint",
];

/// The name of the option for a profile.
const PROFILE: &str = "aws_profile";

/// The names of the settings, as they are mentioned in hints.
const SETTINGS: Settings = Settings {
    credentials: "'aws_access_key_id' and 'aws_session_token'",
    secret: "'aws_secret_access_key'",
    host: "'aws_endpoint_url' and 'aws_region'",
    silence: SILENCE_OF_HTTP,
};

builder!(AmazonS3Builder, AmazonS3, credential, SETTINGS);

fn credential(secret: Secret) -> Result<AwsCredential> {
    let Secret::AccessKey { id, secret, session_token } = secret else {
        return Err(wrong_kind("an access key"));
    };
    let token = session_token.map(printable).transpose()?;
    Ok(AwsCredential { key_id: printable(id)?, secret_key: printable(secret)?, token })
}

pub(super) fn open(url: &Url, mut options: Options, provider: Provider) -> Result<Place> {
    let retries = options.retries()?;
    options.set_time_limits("aws_");
    let log_store = Asked::take(&mut options)?;
    let name = options.take(PROFILE).or_else(|| options.take("profile"));
    let names = [NAMES.as_slice(), log_store::NAMES.as_slice()].concat();
    let keys: Vec<(Key, String)> = options.keys("S3", &names)?;
    check_provider(&provider, &keys, &SECRETS)?;
    let secret = keys.iter().map(|(key, _)| key.as_ref()).find(|key| SECRETS.contains(key));
    if let Some(other) = secret.or(provider.is_some().then_some("a credential provider"))
        && name.is_some()
    {
        let text = format!("the storage option '{PROFILE}' and {other} cannot be passed together");
        return Err(Error::invalid_argument(text).with_hint("leave one of them out"));
    }
    let has_others = secret.is_some() || keys.iter().any(|(key, _)| MACHINES.contains(&key.as_ref()));
    let mut builder = AmazonS3Builder::from_env();
    let mut client = ClientOptions::default();
    for (key, value) in keys {
        if let Key::Client(key) = key {
            client = client.with_config(key, &value);
        }
        match key {
            Key::Bucket => {
                return Err(named_twice("bucket"));
            }
            // A commit requires a put that does not replace an existing object, so this option is refused.
            Key::ConditionalPut if value != "etag" => {
                return Err(Error::invalid_argument(
                    "commits need conditional puts, which 'aws_conditional_put' turns off",
                )
                .with_hint("leave it out"));
            }
            key => builder = builder.with_config(key, value),
        }
    }
    let endpoint = builder.get_config_value(&Key::S3Endpoint).or(builder.get_config_value(&Key::Endpoint));
    let allows_http = builder.get_config_value(&Key::Client(AllowHttp));
    check_endpoint(endpoint.as_deref(), allows_http.as_deref())?;
    check_texts(&[Key::AccessKeyId, Key::SecretAccessKey, Key::Token, Key::Region], |key| {
        builder.get_config_value(key)
    })?;
    if endpoint.is_none() {
        check_bucket(bucket(url)?)?;
    }
    let profile = Profile::new(name.clone());
    if builder.get_config_value(&Key::Region).is_none()
        && let Some(region) = profile.region()?
    {
        builder = builder.with_region(region);
    }
    let has = |key| builder.get_config_value(&key).is_some();
    let is_signed = !builder.get_config_value(&Key::SkipSignature).is_some_and(|value| is_true(&value));
    let has_keys = has(Key::AccessKeyId) || has(Key::SecretAccessKey);
    let counts = name.is_some() || !(has_others || has_keys);
    let profile = (provider.is_none() && is_signed && counts).then_some(profile);
    let is_amazons = |endpoint: &String| endpoint.trim_end_matches('/').ends_with(".amazonaws.com");
    let log_store = log_store.settings(builder.get_config_value(&Key::Region), allows_http.as_deref())?;
    let log_store_scheme = log_store.as_ref().map(|settings| settings.scheme.clone());
    let traits: Traits<AmazonS3> = Traits {
        reads_ends: true,
        unproven: endpoint.filter(|endpoint| !is_amazons(endpoint)),
        complete: Box::new(move |client, store, connector| {
            if let Some(settings) = &log_store {
                let credentials = store.credentials().clone();
                let dynamodb = DynamoDb::new(connector.last()?, credentials, settings.clone());
                client.dynamodb = Some(Arc::new(dynamodb));
            }
            Ok(())
        }),
    };
    let asks_machine = provider.is_none() && is_signed && !has_keys;
    if let Some(refusal) = asks_machine.then(|| Refusal::of(has)).flatten() {
        builder = builder.with_credentials(Arc::new(refusal));
    }
    let builder = builder.with_bucket_name(bucket(url)?);
    let url = canonical(url)?;
    let prepare = move |builder: AmazonS3Builder, connector: &Connector| match &profile {
        Some(profile) => with_profile(builder, profile, connector, client.clone()),
        None => Ok(builder.with_provider(&provider)),
    };
    let recipe = recipe(&url, builder, retries, traits, prepare);
    Ok(Place { url, recipe, log_store_scheme })
}

/// Refuses a bucket name that AWS does not allow (Amazon S3: "General purpose bucket naming rules"). The servers of
/// other vendors may allow it.
fn check_bucket(bucket: &str) -> Result<()> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = bucket.as_bytes();
    let is_valid = (3..=63).contains(&bytes.len())
        && bytes.iter().all(|byte| is_letter(*byte) || matches!(byte, b'-' | b'.'))
        && [bytes.first(), bytes.last()].into_iter().flatten().all(|byte| is_letter(*byte));
    match is_valid {
        true => Ok(()),
        false => Err(Error::invalid_argument(format!(
            "no bucket of Amazon S3 can have the name '{bucket}': names have 3 to 63 lower-case letters, digits, dots \
             and hyphens, and begin and end with a letter or a digit"
        ))
        .with_hint("check the location, or set the storage option 'aws_endpoint_url' for another store")),
    }
}

/// Uses the credentials of a profile. A profile that the user did not name may lack credentials. In that case,
/// the builder's other credentials are used.
fn with_profile(
    builder: AmazonS3Builder,
    profile: &Profile,
    connector: &Connector,
    options: ClientOptions,
) -> object_store::Result<AmazonS3Builder> {
    let region = builder.get_config_value(&Key::Region).unwrap_or_else(|| "us-east-1".to_owned());
    let client = profile::client(connector, options)?;
    let rest = match profile.is_named() {
        true => None,
        false => {
            let store = Builder::build(builder.clone(), connector.clone(), RetryConfig::default(), None)?;
            Some(store.credentials().clone())
        }
    };
    Ok(builder.with_credentials(profile.clone().credentials(region, client, credential, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known() {
        for name in NAMES.into_iter().filter(|name| *name != PROFILE) {
            assert!(name.parse::<Key>().is_ok(), "{name}");
        }
    }
}
