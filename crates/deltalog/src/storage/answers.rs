//! Records how a store has responded to a failed request, and makes an error from it.
//!
//! The clients of `object_store` distinguish only a few kinds of failures, and describe all others as text. Therefore
//! the layer below them (`cloud::http`) records the response itself: its status, code, message and request id. The
//! record belongs to the call that has sent the request.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::runtime::interrupt::Interrupted;

tokio::task_local! {
    static LAST: RefCell<Option<Box<Note>>>;
}

/// The last failure of a request.
#[cfg_attr(not(feature = "_cloud"), expect(dead_code, reason = "stores of callers note nothing"))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    /// The store refused the request.
    Refused(Refusal),
    /// The response came from a console or a proxy, not from a store.
    NotAStore(Request),
    /// There was no response. `cause` says why.
    NoAnswer { request: Request, cause: String, reason: NoAnswerReason },
}

/// The reason why there was no response.
#[cfg_attr(not(feature = "_cloud"), expect(dead_code, reason = "stores of callers note nothing"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoAnswerReason {
    /// No connection could be made.
    Unreachable,
    /// The store did not respond for this long. This includes the time of earlier requests.
    Silent(Duration),
    /// The connection was lost.
    Broken,
}

/// The names of a store's settings, which are mentioned in hints.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// The settings for the caller's credentials.
    pub(super) credentials: &'static str,
    /// The settings with which requests are signed.
    pub(super) secret: &'static str,
    /// The settings that determine the host name of the store.
    pub(super) host: &'static str,
    /// The setting for how long the store may take to respond.
    pub(super) silence: &'static str,
}

/// The setting for how long a store that uses HTTP may take to respond.
#[cfg_attr(not(feature = "_cloud"), expect(dead_code, reason = "custom stores have no settings"))]
pub(super) const SILENCE_OF_HTTP: &str = "the storage option 'read_timeout' limits the time for which a store may be \
                                          silent in one request, 'retry_timeout' in all of them";

/// A request, without any part that may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// The names of the settings of the store that received the request.
    pub(super) settings: &'static Settings,
    pub(super) method: String,
    /// The host, with the port unless it is the default one.
    pub(super) host: String,
    /// The encoded path, which contains the bucket and the key.
    pub(super) path: String,
    pub(super) purpose: Purpose,
}

/// The purpose of the request, if its method does not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "_cloud"), expect(dead_code, reason = "stores of callers note nothing"))]
pub(super) enum Purpose {
    List,
    Delete,
    Other,
}

/// A response that is not a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) request: Request,
    pub(super) status: u16,
    /// The store's own code for the reason, such as `NoSuchKey`.
    pub(super) code: Option<String>,
    pub(super) message: Option<String>,
    /// More text in Azure's responses to unauthorized requests. It is never shown, because it may quote a signature.
    pub(super) detail: Option<String>,
    pub(super) request_id: Option<String>,
    /// The region of the bucket, if the response names it.
    pub(super) region: Option<String>,
}

/// Runs `request`. Returns its output, and the last failure that was recorded while it ran.
pub(super) async fn noted<T>(request: impl Future<Output = T>) -> (T, Option<Box<Note>>) {
    let noting = async move {
        let output = request.await;
        (output, LAST.with(RefCell::take))
    };
    LAST.scope(RefCell::default(), noting).await
}

/// Records a failure for the call of this crate that has sent the request. Does nothing if the request is not part of a
/// call of this crate.
#[cfg(feature = "_cloud")]
pub(super) fn note(note: Note) {
    let _ = LAST.try_with(|last| last.replace(Some(Box::new(note))));
}

/// Discards the failures that were recorded for this call so far.
pub(super) fn forget() {
    let _ = LAST.try_with(RefCell::take);
}

/// Returns whether the response to the last request began normally but ended too early. Returns false if the request is
/// not part of a call of this crate.
#[cfg(feature = "_cloud")]
pub(super) fn is_cut(error: &object_store::Error) -> bool {
    let is_noted = LAST.try_with(|last| last.borrow().is_some()).unwrap_or(true);
    !is_noted && source_of::<object_store::client::HttpError>(error).is_some()
}

#[cfg(not(feature = "_cloud"))]
pub(super) fn is_cut(_: &object_store::Error) -> bool {
    false
}

/// A request that failed.
#[derive(Debug)]
pub(super) struct Failure {
    error: object_store::Error,
    note: Option<Box<Note>>,
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        Self { error, note: None }
    }
}

impl From<Interrupted> for Failure {
    fn from(interrupted: Interrupted) -> Self {
        object_store::Error::Generic { store: "deltalog", source: Box::new(interrupted) }.into()
    }
}

/// The reason why there are no credentials for a request. The request was not sent.
#[derive(Debug)]
pub(super) struct ProviderFailure(pub(super) Error);

impl fmt::Display for ProviderFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ProviderFailure {}

/// The kind of a failure, as the user sees it.
struct Verdict {
    kind: ErrorKind,
    message: Cow<'static, str>,
    hint: Option<String>,
}

impl Verdict {
    fn new(kind: ErrorKind, message: &'static str) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl Failure {
    pub(super) fn new(error: object_store::Error, note: Option<Box<Note>>) -> Self {
        Self { error, note }
    }

    fn refusal(&self) -> Option<&Refusal> {
        match self.note.as_deref() {
            Some(Note::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }

    fn code(&self) -> &str {
        self.refusal().and_then(|refusal| refusal.code.as_deref()).unwrap_or_default()
    }

    /// Returns whether the object does not exist. Returns false if the whole bucket is missing, because this may only
    /// mean that the location is wrong.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self.error, object_store::Error::NotFound { .. }) && !is_bucket_missing(self.code())
    }

    /// Returns whether the object already existed when it was to be created. Returns false for a mere conflict with
    /// another request, because that does not prove that the object exists.
    pub(super) fn is_existing(&self) -> bool {
        matches!(self.error, object_store::Error::AlreadyExists { .. })
            && self.refusal().is_none_or(|refusal| refusal.status != 409 || names_existing(self.code()))
    }

    /// Returns whether the object did not satisfy the condition of a put.
    pub(super) fn is_changed(&self) -> bool {
        matches!(self.error, object_store::Error::Precondition { .. }) || self.is_existing()
    }

    pub(super) fn is_not_implemented(&self) -> bool {
        matches!(self.error, object_store::Error::NotImplemented { .. }) || self.code() == "NotImplemented"
    }

    /// Returns whether the store has answered that the object has no bytes in the requested range.
    pub(super) fn is_beyond_end(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.status == 416)
    }

    /// Returns whether the request was not sent because a credential provider failed.
    pub(super) fn is_unsent(&self) -> bool {
        source_of::<ProviderFailure>(&self.error).is_some()
    }

    /// Returns the crate's error for this failure, without the location of the file.
    pub(super) fn into_error(self) -> Error {
        let Self { error, note } = self;
        if let Some(Interrupted) = source_of(&error) {
            return Interrupted.into();
        }
        // If a credential provider has failed, its own error is returned, without the wrapper around it.
        let error = match error {
            object_store::Error::Generic { store, source } => match source.downcast::<ProviderFailure>() {
                Ok(failure) => return failure.0,
                Err(source) => object_store::Error::Generic { store, source },
            },
            error => error,
        };
        if let Some(ProviderFailure(error)) = source_of(&error) {
            return error.again();
        }
        Self { error, note }.into_error_of_store()
    }

    fn into_error_of_store(self) -> Error {
        let Verdict { kind, message, hint } = self.verdict();
        let error = Error::new(kind, message.into_owned());
        let error = match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        };
        match (kind, self.note) {
            (ErrorKind::FileNotFound, _) => error,
            (_, Some(note)) => error.with_source(note.to_string()),
            (_, None) => error.with_source(self.error),
        }
    }

    fn verdict(&self) -> Verdict {
        use ErrorKind::{FileNotFound, PermissionDenied, Unavailable};
        if self.is_missing() {
            return Verdict::new(FileNotFound, "the file is not there");
        }
        match (self.note.as_deref(), &self.error) {
            (Some(note), _) if note.request().is_for_credentials() => {
                Verdict::new(PermissionDenied, "no credentials for the store were found").hint(format!(
                    "pass them as storage options ({}), or set the environment variables of the store's own tools",
                    note.request().settings.credentials
                ))
            }
            (Some(Note::Refused(refusal)), _) => refusal.verdict(),
            (Some(Note::NotAStore(_)), _) => {
                Verdict::new(Unavailable, "the endpoint is not a store: it answered with a web page")
                    .hint("check the endpoint; the console of a store often has another port")
            }
            (Some(Note::NoAnswer { reason: NoAnswerReason::Silent(waited), request, .. }), _) => Verdict {
                kind: Unavailable,
                message: format!("the store gave no answer for {:.1} s", waited.as_secs_f64()).into(),
                hint: Some(format!(
                    "check the endpoint and the network, or wait for longer: {}",
                    request.settings.silence
                )),
            },
            (Some(Note::NoAnswer { reason: NoAnswerReason::Unreachable, request, .. }), _) => {
                Verdict::new(Unavailable, "the store cannot be reached").hint(format!(
                    "check the endpoint ({}), the network and the proxy",
                    request.settings.host
                ))
            }
            // A path below a file cannot exist, so this counts as not found.
            (None, error) if io_kind(error) == Some(std::io::ErrorKind::NotADirectory) => {
                Verdict::new(FileNotFound, "the file is not there")
            }
            (None, error) if io_kind(error) == Some(std::io::ErrorKind::PermissionDenied) => {
                Verdict::new(PermissionDenied, "the store refused access")
            }
            (
                _,
                object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. },
            ) => Verdict::new(PermissionDenied, "the store refused access"),
            _ => Verdict::new(Unavailable, "the store failed"),
        }
    }
}

impl Note {
    fn request(&self) -> &Request {
        match self {
            Self::Refused(refusal) => &refusal.request,
            Self::NotAStore(request) | Self::NoAnswer { request, .. } => request,
        }
    }
}

impl Request {
    /// Returns whether the request was sent to a service that issues credentials to machines and containers.
    fn is_for_credentials(&self) -> bool {
        let host = self.host.split(':').next().unwrap_or_default();
        matches!(host, "169.254.169.254" | "169.254.170.2" | "169.254.170.23" | "metadata.google.internal")
    }

    fn verb(&self) -> &'static str {
        match (self.method.as_str(), self.purpose) {
            (_, Purpose::List) => "list objects",
            (_, Purpose::Delete) | ("DELETE", _) => "delete objects",
            ("GET" | "HEAD", _) => {
                "read objects, and to list them (or the store does not say which are missing)"
            }
            _ => "write objects",
        }
    }
}

impl Refusal {
    fn verdict(&self) -> Verdict {
        use ErrorKind::{InvalidArgument, PermissionDenied, Unavailable};
        let code = self.code.as_deref().unwrap_or_default();
        let Settings { credentials, secret, host, .. } = self.request.settings;
        match (self.status, code) {
            (_, code) if is_bucket_missing(code) => {
                Verdict::new(InvalidArgument, "the bucket or container does not exist")
                    .hint("check its name, and the account and endpoint of the store")
            }
            _ if self.is_of_another_region() => {
                Verdict::new(InvalidArgument, "the bucket is in another region").hint(match &self.region {
                    Some(region) => format!("set the storage option 'aws_region' to '{region}'"),
                    None => "set the storage option 'aws_region' to the bucket's region".to_owned(),
                })
            }
            (300..=399, _) => {
                Verdict::new(InvalidArgument, "the endpoint redirects requests to another place")
                    .hint(format!("check the endpoint ({host})"))
            }
            (_, "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" | "RequestExpired") => {
                expired(credentials)
            }
            // Azure has a single code for everything that can be wrong with a signature. (Azure Storage:
            // "Authentication and authorization errors".)
            (_, "AuthenticationFailed")
                if self.detail_has("time frame") || self.detail_has("expiry time") =>
            {
                expired(credentials)
            }
            (_, "AuthenticationFailed") if self.detail_has("date header") => clock(),
            (
                _,
                "InvalidAccessKeyId"
                | "InvalidToken"
                | "InvalidSecurity"
                | "NotSignedUp"
                | "UnrecognizedClientException",
            ) => Verdict::new(PermissionDenied, "the store does not know the access key")
                .hint(format!("check the key ({credentials}), and that the endpoint belongs to its account")),
            (_, "SignatureDoesNotMatch" | "AuthenticationFailed" | "InvalidSignatureException") => {
                signature(secret)
            }
            // Azurite sends the message of `AuthenticationFailed`, but with a different code.
            (403, "AuthorizationFailure") if self.says("failed to authenticate") => signature(secret),
            (_, "RequestTimeTooSkewed") => clock(),
            (401, _) => Verdict::new(PermissionDenied, "the store does not accept the credentials")
                .hint(format!("check or renew them ({credentials})")),
            (_, "AccessDeniedException") => Verdict::new(PermissionDenied, "DynamoDB refused access").hint(
                "the credentials need dynamodb:GetItem, PutItem and Query for the table (and CreateTable, \
                 DescribeTable if it does not exist yet)",
            ),
            (_, "ProvisionedThroughputExceededException" | "ThrottlingException") => {
                Verdict::new(Unavailable, "DynamoDB asks for fewer requests")
                    .hint("give the table more capacity, or try again later")
            }
            (412, _) => Verdict::new(Unavailable, "the file was replaced while it was read"),
            (403, _) => Verdict::new(PermissionDenied, "the store refused access")
                .hint(format!("the credentials need permission to {} here", self.request.verb())),
            (429, _) | (_, "SlowDown" | "ServerBusy" | "RequestLimitExceeded") => {
                Verdict::new(Unavailable, "the store asks for fewer requests")
                    .hint("try again later, or with fewer processes at once")
            }
            // The same request would be refused again, with these exceptions: a response without a code comes from a
            // proxy that does not understand the request, a timeout may not occur again, and a code of DynamoDB (ending
            // with "Exception") may be about the requests of other clients.
            (400, code) if !code.is_empty() && code != "RequestTimeout" && !code.ends_with("Exception") => {
                Verdict::new(InvalidArgument, "the store refused the request as invalid")
                    .hint("check the location and the storage options")
            }
            _ => Verdict::new(Unavailable, "the store failed"),
        }
    }

    fn says(&self, text: &str) -> bool {
        self.message.as_deref().is_some_and(|message| message.contains(text))
    }

    fn detail_has(&self, text: &str) -> bool {
        self.detail.as_deref().is_some_and(|detail| detail.contains(text))
    }

    /// Returns whether the request was sent to an S3 bucket in another region. Only S3 responds in this way.
    fn is_of_another_region(&self) -> bool {
        match self.code.as_deref().unwrap_or_default() {
            "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException" => true,
            "PermanentRedirect" | "TemporaryRedirect" => true,
            _ => matches!(self.status, 301 | 307) && self.region.is_some(),
        }
    }
}

fn expired(credentials: &str) -> Verdict {
    Verdict::new(ErrorKind::PermissionDenied, "the credentials have expired")
        .hint(format!("renew them ({credentials})"))
}

fn signature(secret: &str) -> Verdict {
    Verdict::new(ErrorKind::PermissionDenied, "the store refused the signature of the request")
        .hint(format!("check the secret key ({secret})"))
}

fn clock() -> Verdict {
    Verdict::new(ErrorKind::PermissionDenied, "the clock of this machine differs too much from the store's")
        .hint("set the clock")
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.host, self.path)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAStore(request) => write!(f, "the answer to {request} is a web page"),
            Self::NoAnswer { request, cause, .. } => write!(f, "no answer to {request}: {cause}"),
            Self::Refused(refusal) => {
                write!(f, "the answer to {} is {}", refusal.request, refusal.status)?;
                for part in [&refusal.code, &refusal.message].into_iter().flatten() {
                    write!(f, " {part}")?;
                }
                match &refusal.request_id {
                    Some(id) => write!(f, " (request id {id})"),
                    None => Ok(()),
                }
            }
        }
    }
}

fn is_bucket_missing(code: &str) -> bool {
    matches!(code, "NoSuchBucket" | "ContainerNotFound" | "FilesystemNotFound")
}

/// Returns whether `code`, in a response with status 409, means that the object exists. Azure sends this status where
/// other stores send 412.
fn names_existing(code: &str) -> bool {
    matches!(code, "BlobAlreadyExists" | "PathAlreadyExists")
}

/// Returns the kind of the I/O error that caused `error`, if there is one. `object_store` does not distinguish all
/// kinds.
fn io_kind(error: &object_store::Error) -> Option<std::io::ErrorKind> {
    source_of::<std::io::Error>(error).map(std::io::Error::kind)
}

/// Returns the first error of type `E` in the chain of errors that caused `error`.
fn source_of<E: std::error::Error + 'static>(error: &object_store::Error) -> Option<&E> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = source {
        if let Some(found) = current.downcast_ref() {
            return Some(found);
        }
        source = current.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings =
        Settings { credentials: "'id'", secret: "'secret'", host: "'endpoint'", silence: "'time'" };

    fn verdict(status: u16, code: Option<&str>, region: Option<&str>) -> Verdict {
        refusal(status, code, region, None).verdict()
    }

    fn refusal(status: u16, code: Option<&str>, region: Option<&str>, detail: Option<&str>) -> Refusal {
        let request = Request {
            settings: &SETTINGS,
            method: "GET".to_owned(),
            host: "host".to_owned(),
            path: "/bucket/key".to_owned(),
            purpose: Purpose::Other,
        };
        let text = |text: Option<&str>| text.map(str::to_owned);
        let (code, region, detail) = (text(code), text(region), text(detail));
        Refusal { request, status, code, message: None, detail, request_id: None, region }
    }

    /// Examples of the details that the service sends (Azure Storage: "Authentication and authorization errors").
    #[test]
    fn azure_describes_in_a_detail_what_is_wrong_with_a_signature() {
        let cases = [
            (
                "Signature not valid in the specified time frame: Start [x] - Expiry [y] - Current [z]",
                "expired",
            ),
            ("Request date header too old: 'Mon, 01 Jan 2024 00:00:00 GMT'", "clock"),
            (
                "The MAC signature found in the HTTP request 'abc' is not the same as any computed",
                "signature",
            ),
        ];
        for (detail, expected) in cases {
            let refusal = refusal(403, Some("AuthenticationFailed"), None, Some(detail));
            let Verdict { kind, message, hint } = refusal.verdict();
            assert_eq!(kind, ErrorKind::PermissionDenied);
            assert!(message.contains(expected), "{detail}: {message}");
            assert!(hint.is_some());
            assert!(!Note::Refused(refusal).to_string().contains("abc"));
        }
    }

    #[test]
    fn hints_name_the_settings_of_the_store() {
        for (status, code, setting) in [
            (403, Some("SignatureDoesNotMatch"), "'secret'"),
            (403, Some("InvalidAccessKeyId"), "'id'"),
            (400, Some("ExpiredToken"), "'id'"),
            (401, None, "'id'"),
            (301, None, "'endpoint'"),
        ] {
            let hint = verdict(status, code, None).hint.unwrap();
            assert!(hint.contains(setting), "{status} {code:?}: {hint}");
        }
    }

    /// Azure and Google Cloud Storage do not have the option `aws_region`.
    #[test]
    fn only_s3_has_buckets_in_other_regions() {
        let s3 = verdict(301, Some("PermanentRedirect"), None);
        assert!(s3.hint.unwrap().contains("'aws_region'"));
        // The response to a `HEAD` request only has headers.
        assert!(verdict(301, None, Some("eu-north-1")).hint.unwrap().contains("'eu-north-1'"));
        for code in [None, Some("ResourceMoved")] {
            let other = verdict(301, code, None);
            assert_eq!(other.message, "the endpoint redirects requests to another place");
            assert!(!other.hint.unwrap().contains("aws"));
        }
    }

    #[test]
    fn a_request_that_a_store_calls_invalid_is_not_sent_again() {
        assert_eq!(verdict(400, Some("InvalidArgument"), None).kind, ErrorKind::InvalidArgument);
        assert_eq!(verdict(400, Some("RequestTimeout"), None).kind, ErrorKind::Unavailable);
        // A proxy has sent this response.
        assert_eq!(verdict(400, None, None).kind, ErrorKind::Unavailable);
    }
}
