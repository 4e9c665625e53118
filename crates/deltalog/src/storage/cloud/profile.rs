//! Uses the profiles of AWS's tools, from the files `~/.aws/config` and `~/.aws/credentials`, through the crate
//! `aws-config`.
//!
//! A profile may contain access keys; the name of a program that prints credentials (`credential_process`); a role to
//! assume with the credentials of another profile, of the environment or of the machine (`source_profile`,
//! `credential_source`); a web identity; or a session of IAM Identity Center (single sign-on), for which a person has
//! logged in before (`aws sso login`).
//!
//! - The order of the sources is the same as in AWS's own clients: options, environment, profile, web identity,
//!   container, machine. If the option `aws_profile` or the variable `AWS_PROFILE` names a profile, it must have
//!   credentials. Otherwise, the profile `default` is used if it has any.
//! - The files are read for the first request that needs them, and again when the credentials expire. Temporary
//!   credentials with an unknown expiration are read again after some minutes, because a tool may have replaced them.
//! - Requests are sent through the store's connector, with its TLS settings, proxy and limits.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_config::Region;
use aws_config::meta::region::ProvideRegion;
use aws_config::profile::{ProfileFileCredentialsProvider, ProfileFileRegionProvider};
use aws_config::provider_config::ProviderConfig;
use aws_credential_types::provider::ProvideCredentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::http::{
    HttpConnector as SmithyConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use object_store::aws::{AwsCredential, AwsCredentialProvider};
use object_store::client::{HttpClient, HttpConnector};
use object_store::{ClientOptions, CredentialProvider as Provider};

use super::http::Connector;
use super::provider::{Convert, Renewed, failure};
use crate::error::{Error, ErrorKind, Result};
use crate::storage::credentials::{CredentialProvider, Credentials};
use crate::storage::runtime;

/// The time after which temporary credentials with an unknown expiration are read again.
const UNKNOWN_END: Duration = Duration::from_secs(5 * 60);

/// The [`Error::reason`] of an error that only means that the profile has no credentials.
const NONE: &str = "no_credentials";

/// A profile in AWS's configuration files. It need not exist, unless the user has named it.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    /// The name; `None` for the profile that the environment names, or `default`.
    name: Option<String>,
    /// Whether the user has named the profile. If so, it must exist.
    is_named: bool,
}

impl Profile {
    /// Returns the profile `name`. If `name` is `None`, returns the profile that the environment names, or `default`.
    pub(super) fn new(name: Option<String>) -> Self {
        let is_named = name.is_some() || std::env::var_os("AWS_PROFILE").is_some();
        Self { name, is_named }
    }

    /// Returns the region of the profile, if it has one.
    pub(super) fn region(&self) -> Result<Option<String>> {
        let mut provider = ProfileFileRegionProvider::builder();
        if let Some(name) = &self.name {
            provider = provider.profile_name(name);
        }
        let provider = provider.build();
        let region = runtime::start(async move { provider.region().await }).and_then(|region| region.wait());
        let region = region.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "the profile could not be read").with_source(error)
        })?;
        Ok(region.map(|region| region.as_ref().to_owned()))
    }

    /// Returns whether the user has named the profile. If so, it must have credentials.
    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }

    fn shown(&self) -> String {
        match self.name.clone().or_else(|| std::env::var("AWS_PROFILE").ok()) {
            Some(name) => format!("the profile '{name}'"),
            None => "the profile 'default'".to_owned(),
        }
    }

    /// Returns a provider of the profile's credentials. If the profile has none, it uses `rest`.
    pub(super) fn credentials(
        self,
        region: String,
        client: HttpClient,
        convert: Convert<AwsCredential>,
        rest: Option<AwsCredentialProvider>,
    ) -> AwsCredentialProvider {
        let reader = Arc::new(Reader { profile: self, region, client });
        let profile = Renewed::new(reader, convert);
        Arc::new(Chain { profile, is_empty: AtomicBool::new(false), rest })
    }
}

/// Returns the existing files for profiles, with their times and sizes.
pub(super) fn files() -> Vec<(String, String)> {
    let home = || std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE")).map(PathBuf::from);
    let file = |(variable, name): (&str, &str)| {
        let named = std::env::var_os(variable).map(PathBuf::from);
        let path = named.or_else(|| Some(home()?.join(".aws").join(name)))?;
        let meta = path.metadata().ok()?;
        Some((path.display().to_string(), format!("{:?} {}", meta.modified().ok(), meta.len())))
    };
    let all = [("AWS_CONFIG_FILE", "config"), ("AWS_SHARED_CREDENTIALS_FILE", "credentials")];
    all.into_iter().filter_map(file).collect()
}

/// Connects to the services that issue credentials for profiles.
pub(super) fn client(connector: &Connector, options: ClientOptions) -> object_store::Result<HttpClient> {
    // The services of containers and machines do not use TLS.
    connector.connect(&options.with_allow_http(true))
}

/// The credentials of a profile, followed by the other sources of credentials.
struct Chain {
    profile: Renewed<AwsCredential>,
    /// Whether the profile turned out to have no credentials.
    is_empty: AtomicBool,
    rest: Option<AwsCredentialProvider>,
}

#[async_trait::async_trait]
impl Provider for Chain {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let Some(rest) = &self.rest else { return self.profile.get().await.map_err(failure) };
        if !self.is_empty.load(Ordering::Relaxed) {
            match self.profile.get().await {
                Err(error) if error.reason() == Some(NONE) => self.is_empty.store(true, Ordering::Relaxed),
                found => return found.map_err(failure),
            }
        }
        rest.get_credential().await
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// A provider that reads the files, and requests credentials from the services that they name.
struct Reader {
    profile: Profile,
    region: String,
    client: HttpClient,
}

impl CredentialProvider for Reader {
    fn name(&self) -> String {
        self.profile.shown()
    }

    /// Runs on a thread of the runtime that may block.
    fn credentials(&self) -> Result<Credentials> {
        let client = self.client.clone();
        let config = ProviderConfig::without_region()
            .with_region(Some(Region::new(self.region.clone())))
            .with_http_client(http_client_fn(move |_, _| SharedHttpConnector::new(Ours(client.clone()))));
        let mut provider = ProfileFileCredentialsProvider::builder().configure(&config);
        if let Some(name) = &self.profile.name {
            provider = provider.profile_name(name);
        }
        let provider = provider.build();
        let found = tokio::runtime::Handle::current().block_on(provider.provide_credentials());
        let found = found.map_err(|error| self.failure(&error))?;
        let token = found.session_token();
        let credentials = Credentials::access_key(found.access_key_id(), found.secret_access_key(), token);
        Ok(match found.expiry() {
            Some(end) => credentials.expiring_at(end),
            None if token.is_some() => credentials.asked_again_after(UNKNOWN_END),
            None => credentials,
        })
    }
}

impl Reader {
    fn failure(&self, error: &CredentialsError) -> Error {
        let shown = self.profile.shown();
        let text = chain(error);
        if text.contains("login_session") || text.contains("credentials-login") {
            return Error::unsupported(format!("{shown} has a 'login_session', which is not supported"))
                .with_hint("in Python, pass a session of boto3 as credential_provider");
        }
        let failure = match error {
            CredentialsError::CredentialsNotLoaded(_) => {
                Error::new(ErrorKind::PermissionDenied, format!("{shown} has no credentials"))
                    .with_reason(NONE)
            }
            _ => Error::new(ErrorKind::PermissionDenied, format!("the credentials of {shown} failed")),
        };
        failure.with_source(text).with_hint(
            "check the files ~/.aws/config and ~/.aws/credentials; for single sign-on, log in again: aws sso login",
        )
    }
}

/// Returns the messages of an error and its sources, without repetitions.
fn chain(error: &dyn std::error::Error) -> String {
    let mut texts = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string().trim_end().to_owned();
        if !texts.contains(&text) {
            texts.push(text);
        }
        next = error.source();
    }
    texts.join(": ")
}

/// The store's connector, adapted for requests to AWS's services.
#[derive(Debug)]
struct Ours(HttpClient);

impl SmithyConnector for Ours {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = self.0.clone();
        HttpConnectorFuture::new(async move {
            let user = |error: Box<dyn std::error::Error + Send + Sync>| ConnectorError::user(error);
            let request = request.try_into_http1x().map_err(|error| user(error.into()))?;
            let (parts, body) = request.into_parts();
            let body = body.bytes().map(Bytes::copy_from_slice).unwrap_or_default();
            let request = http::Request::from_parts(parts, body.into());
            let io = |error: object_store::client::HttpError| ConnectorError::io(error.into());
            let (parts, body) = client.execute(request).await.map_err(io)?.into_parts();
            let body = body.bytes().await.map_err(io)?;
            HttpResponse::try_from(http::Response::from_parts(parts, SdkBody::from(body)))
                .map_err(|error| user(error.into()))
        })
    }
}
