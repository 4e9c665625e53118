//! Decides which requests are allowed: they must be signed with the known access key, and have the right session
//! token.

use std::sync::Arc;

use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Result, s3_error};

use super::Shared;

pub(super) struct Access(pub(super) Arc<Shared>);

#[async_trait::async_trait]
impl S3Auth for Access {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let settings = self.0.settings();
        if access_key == settings.access_key {
            return Ok(SecretKey::from(settings.secret_key.as_str()));
        }
        Err(s3_error!(
            InvalidAccessKeyId,
            "The AWS Access Key Id you provided does not exist in our records."
        ))
    }
}

#[async_trait::async_trait]
impl S3Access for Access {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        if context.credentials().is_none() {
            return Err(s3_error!(AccessDenied, "Access Denied"));
        }
        let token = context.headers().get("x-amz-security-token").and_then(|token| token.to_str().ok());
        match self.0.settings().session_token.as_deref() {
            Some(right) if token != Some(right) => {
                Err(s3_error!(InvalidToken, "The provided token is malformed or otherwise invalid."))
            }
            _ => Ok(()),
        }
    }
}
