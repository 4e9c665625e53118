//! The settings of the whole server.

use serde::{Deserialize, Serialize};

/// The settings of the whole server, which can be changed while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The only access key that the server accepts.
    pub access_key: String,
    /// The secret of the access key.
    pub secret_key: String,
    /// The session token that each request must contain; `None` if tokens are not checked.
    pub session_token: Option<String>,
    /// The region for which requests must be signed; `None` if all regions are accepted.
    pub region: Option<String>,
    /// The status of the response to a request that is signed for another region: 400, or 301 for a redirect.
    pub wrong_region_status: u16,
    /// Whether conditions of writes are ignored, as some S3-compatible stores do.
    pub ignores_conditions: bool,
    /// Whether responses to reads have weak entity tags, as behind a compressing proxy.
    pub weak_tags: bool,
    /// The maximum number of entries on a page of a listing.
    pub page_size: usize,
    /// The minimum size in bytes of a part that is not the last one.
    pub minimum_part: usize,
    /// The maximum number of bytes per second that the whole server receives and sends; `None` for no limit.
    pub bytes_per_second: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            access_key: "testkit".to_owned(),
            secret_key: "testkit-secret".to_owned(),
            session_token: None,
            region: None,
            wrong_region_status: 400,
            ignores_conditions: false,
            weak_tags: false,
            page_size: 1000,
            minimum_part: 5 << 20,
            bytes_per_second: None,
        }
    }
}
