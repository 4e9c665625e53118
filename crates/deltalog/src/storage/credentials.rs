//! Credentials that a program passes together with a table's location, instead of in options or environment variables.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::error::Result;

/// Provides credentials for a store. It is called before the first request, and again before the credentials expire.
///
/// - It is never called concurrently for the same store, and it may be slow: in the meantime, other requests use the
///   credentials that they already have.
/// - Tables that are open at the same time with the same provider and the same options share the credentials that it
///   returns.
///
/// ```
/// use std::sync::Arc;
/// use std::time::{Duration, SystemTime};
///
/// use deltalog::{Credentials, Storage};
///
/// # #[cfg(feature = "s3")] {
/// let provider = || {
///     let in_an_hour = SystemTime::now() + Duration::from_secs(3600);
///     Ok(Credentials::access_key("id", "secret", Some("session")).expiring_at(in_an_hour))
/// };
/// let storage = Storage::open_with_credentials("s3://bucket/table", [], Arc::new(provider))?;
/// # }
/// # Ok::<(), deltalog::Error>(())
/// ```
pub trait CredentialProvider: Send + Sync + 'static {
    /// Returns credentials that are valid now. This may block the calling thread.
    ///
    /// # Errors
    /// Any error. It becomes the error of the request that needs the credentials, so it must not contain a secret.
    fn credentials(&self) -> Result<Credentials>;

    /// Returns a name for use in error messages. It must not contain secrets.
    fn name(&self) -> String {
        std::any::type_name::<Self>().to_owned()
    }
}

impl<F: Fn() -> Result<Credentials> + Send + Sync + 'static> CredentialProvider for F {
    fn credentials(&self) -> Result<Credentials> {
        self()
    }
}

/// Credentials for a store, and how long they are valid. Unless [`expiring_at`](Self::expiring_at) or
/// [`asked_again_after`](Self::asked_again_after) is called, they never expire.
#[derive(Clone)]
#[cfg_attr(not(feature = "_cloud"), allow(dead_code, reason = "no store takes them"))]
pub struct Credentials {
    pub(super) secret: Secret,
    pub(super) expires_at: Option<SystemTime>,
    pub(super) ask_again_after: Option<Duration>,
}

#[derive(Clone)]
#[cfg_attr(
    not(all(feature = "s3", feature = "gcs", feature = "azure")),
    allow(dead_code, reason = "not every store takes each kind")
)]
pub(super) enum Secret {
    AccessKey { id: String, secret: String, session_token: Option<String> },
    AccountKey(String),
    SharedAccessSignature(String),
    BearerToken(String),
}

impl Credentials {
    fn new(secret: Secret) -> Self {
        Self { secret, expires_at: None, ask_again_after: None }
    }

    /// Creates credentials from an access key for S3. Temporary access keys have a session token.
    pub fn access_key(
        id: impl Into<String>,
        secret: impl Into<String>,
        session_token: Option<impl Into<String>>,
    ) -> Self {
        let session_token = session_token.map(Into::into);
        Self::new(Secret::AccessKey { id: id.into(), secret: secret.into(), session_token })
    }

    /// Creates credentials from the access key of an Azure storage account, in base64.
    pub fn account_key(key: impl Into<String>) -> Self {
        Self::new(Secret::AccountKey(key.into()))
    }

    /// Creates credentials from an Azure shared access signature, which is the query string of a URL.
    pub fn shared_access_signature(query: impl Into<String>) -> Self {
        Self::new(Secret::SharedAccessSignature(query.into()))
    }

    /// Creates credentials from an OAuth token for Google Cloud Storage or Azure.
    pub fn bearer_token(token: impl Into<String>) -> Self {
        Self::new(Secret::BearerToken(token.into()))
    }

    /// Sets when the credentials expire. The provider is called again five minutes before that. If they are valid for
    /// less than ten minutes, it is called again after half of that time.
    #[must_use]
    pub fn expiring_at(self, time: SystemTime) -> Self {
        Self { expires_at: Some(time), ..self }
    }

    /// Sets the time after which the provider is called again, for credentials with an unknown expiration.
    #[must_use]
    pub fn asked_again_after(self, time: Duration) -> Self {
        Self { ask_again_after: Some(time), ..self }
    }
}

impl fmt::Debug for Credentials {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}
