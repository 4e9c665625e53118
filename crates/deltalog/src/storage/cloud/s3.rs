//! Amazon S3, and stores with its interface: `s3://bucket/path`.

use object_store::ClientConfigKey::AllowHttp;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key, AwsCredential};
use url::Url;

use super::options::Options;
use super::provider::{printable, wrong_kind};
use super::{
    Provider, Traits, bucket, builder, canonical, check_endpoint, check_provider, check_texts, named_twice,
    recipe,
};
use crate::error::{Error, Result};
use crate::storage::credentials::Secret;
use crate::storage::remote::Recipe;

/// The names of options, for those who misspell them.
const NAMES: [&str; 28] = [
    "aws_access_key_id",
    "aws_allow_http",
    "aws_checksum_algorithm",
    "aws_container_authorization_token_file",
    "aws_container_credentials_full_uri",
    "aws_container_credentials_relative_uri",
    "aws_default_region",
    "aws_disable_bulk_delete",
    "aws_disable_tagging",
    "aws_endpoint",
    "aws_endpoint_url",
    "aws_endpoint_url_s3",
    "aws_endpoint_url_sts",
    "aws_imdsv1_fallback",
    "aws_metadata_endpoint",
    "aws_region",
    "aws_request_payer",
    "aws_role_arn",
    "aws_role_session_name",
    "aws_s3_express",
    "aws_secret_access_key",
    "aws_server_side_encryption",
    "aws_session_token",
    "aws_skip_signature",
    "aws_sse_bucket_key_enabled",
    "aws_sse_customer_key_base64",
    "aws_sse_kms_key_id",
    "aws_virtual_hosted_style_request",
];

/// The names of options for credentials, which a provider excludes.
const SECRETS: [&str; 6] = [
    "aws_access_key_id",
    "aws_role_arn",
    "aws_secret_access_key",
    "aws_session_token",
    "aws_skip_signature",
    "aws_web_identity_token_file",
];

builder!(AmazonS3Builder, AmazonS3, credential);

fn credential(secret: Secret) -> Result<AwsCredential> {
    let Secret::AccessKey { id, secret, session_token } = secret else {
        return Err(wrong_kind("an access key"));
    };
    let token = session_token.map(printable).transpose()?;
    Ok(AwsCredential { key_id: printable(id)?, secret_key: printable(secret)?, token })
}

pub(super) fn open(url: &Url, mut options: Options, provider: Provider) -> Result<(Url, Recipe)> {
    let retries = options.retries()?;
    options.set_time_limits("aws_");
    let mut builder = AmazonS3Builder::from_env();
    let keys = options.keys("S3", &NAMES)?;
    check_provider(&provider, &keys, &SECRETS)?;
    for (key, value) in keys {
        match key {
            Key::Bucket => {
                return Err(named_twice("bucket"));
            }
            // A commit is a put that must not replace anything.
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
    check_endpoint(endpoint.as_deref(), builder.get_config_value(&Key::Client(AllowHttp)).as_deref())?;
    check_texts(&[Key::AccessKeyId, Key::SecretAccessKey, Key::Token, Key::Region], |key| {
        builder.get_config_value(key)
    })?;
    let is_amazons = |endpoint: &String| endpoint.trim_end_matches('/').ends_with(".amazonaws.com");
    let traits = Traits { reads_ends: true, unproven: endpoint.filter(|endpoint| !is_amazons(endpoint)) };
    let builder = builder.with_bucket_name(bucket(url)?);
    let url = canonical(url)?;
    let recipe = recipe(&url, builder, retries, traits, provider);
    Ok((url, recipe))
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
