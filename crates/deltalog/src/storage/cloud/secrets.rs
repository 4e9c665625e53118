//! Hides the secrets of a request, because servers may repeat them in their responses.

use bytes::Bytes;
use object_store::client::HttpRequest;
use url::form_urlencoded;

/// The text that replaces a secret.
const HIDDEN: &str = "***";

/// Headers whose values are secret or grant access.
const HEADERS: [&str; 6] = [
    "authorization",
    "proxy-authorization",
    "x-amz-security-token",
    "x-amz-server-side-encryption-customer-key",
    "x-aws-ec2-metadata-token",
    "x-ms-encryption-key",
];

/// Parameters in URLs and forms whose values are secret or grant access.
const PARAMETERS: [&str; 11] = [
    "sig",
    "x-amz-signature",
    "x-amz-security-token",
    "x-goog-signature",
    "client_secret",
    "client_assertion",
    "assertion",
    "refresh_token",
    "subject_token",
    "password",
    "webidentitytoken",
];

/// The minimum length of a secret. Shorter strings occur within ordinary words.
const SHORTEST: usize = 6;

/// The secrets that a request contains.
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn of(request: &HttpRequest) -> Self {
        let mut found = Vec::new();
        for name in HEADERS {
            let values = request.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
            // Servers may repeat a header as a whole, the part after its scheme, or only the signature in it.
            found.extend(values.flat_map(|value| {
                let parts = value.split([' ', ',']).map(|part| part.trim_start_matches("Signature="));
                let parts = parts.filter(|part| !part.starts_with("SignedHeaders=")).map(str::to_owned);
                std::iter::once(value.to_owned()).chain(parts.collect::<Vec<_>>())
            }));
        }
        let form = request.body().as_bytes().and_then(|body| std::str::from_utf8(body).ok());
        let is_form = request
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().ends_with(b"urlencoded"));
        for pairs in [request.uri().query(), form.filter(|_| is_form)].into_iter().flatten() {
            for pair in pairs.split('&') {
                let Some((name, encoded)) = pair.split_once('=') else { continue };
                if PARAMETERS.contains(&name.to_ascii_lowercase().as_str()) {
                    let decoded =
                        form_urlencoded::parse(pair.as_bytes()).map(|(_, value)| value.into_owned());
                    found.extend(decoded);
                    found.push(encoded.to_owned());
                }
            }
        }
        found.retain(|secret| secret.len() >= SHORTEST && !secret.starts_with("AWS4-"));
        // A secret that contains another one must be replaced first.
        found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(found)
    }

    /// Hides the secrets in a server's response. A response that is not text is returned unchanged.
    pub(super) fn hide(&self, answer: Bytes) -> Bytes {
        let Ok(text) = std::str::from_utf8(&answer) else { return answer };
        let is_there = |secret: &&String| text.contains(secret.as_str());
        let found: Vec<&String> = self.0.iter().filter(is_there).collect();
        match found.is_empty() {
            true => answer,
            false => found
                .iter()
                .fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), HIDDEN))
                .into(),
        }
    }
}
