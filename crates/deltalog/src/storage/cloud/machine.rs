//! The credentials of a machine or a container for S3. They are used if no other credentials are configured.
//!
//! - As in AWS's own tools, the first service that is configured provides the credentials. A service that is only
//!   partly configured is an error. Otherwise, the client would try the next service, and finally the machine's
//!   metadata service, which provides the credentials of another IAM role.
//! - `AWS_EC2_METADATA_DISABLED` disables the metadata service. ("AWS SDKs and Tools Reference Guide: IMDS credential
//!   provider")

use std::env;
use std::sync::Arc;

use object_store::CredentialProvider;
use object_store::aws::{AmazonS3ConfigKey as Key, AwsCredential};

use super::is_true;
use super::provider::failure;
use crate::error::{Error, ErrorKind};

const DISABLED: &str = "AWS_EC2_METADATA_DISABLED";

/// The reason why no service can provide credentials.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal {
    text: &'static str,
    hint: &'static str,
}

impl Refusal {
    /// Returns the reason why the configured services cannot be asked for credentials, if there is one. `has` returns
    /// whether a setting is present.
    pub(super) fn of(has: impl Fn(Key) -> bool) -> Option<Self> {
        let is_disabled = env::var(DISABLED).is_ok_and(|value| is_true(&value));
        let (token, role) = (has(Key::WebIdentityTokenFile), has(Key::RoleArn));
        let full = has(Key::ContainerCredentialsFullUri);
        match () {
            () if token && role => None,
            () if token => Some(Self {
                text: "the web identity token file has no role",
                hint: "set AWS_ROLE_ARN, too, or unset AWS_WEB_IDENTITY_TOKEN_FILE",
            }),
            () if has(Key::ContainerCredentialsRelativeUri) => None,
            () if full && has(Key::ContainerAuthorizationTokenFile) => None,
            () if full => Some(Self {
                text: "the container's service for credentials has no token file",
                hint: "set AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, or unset AWS_CONTAINER_CREDENTIALS_FULL_URI",
            }),
            () if is_disabled => Some(Self {
                text: "there are no credentials, and the environment variable AWS_EC2_METADATA_DISABLED forbids \
                       asking the machine's metadata service for them",
                hint: "pass the storage options 'aws_access_key_id' and 'aws_secret_access_key', a profile, or a \
                       credential provider",
            }),
            () => None,
        }
    }
}

#[async_trait::async_trait]
impl CredentialProvider for Refusal {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        Err(failure(Error::new(ErrorKind::PermissionDenied, self.text).with_hint(self.hint)))
    }
}
