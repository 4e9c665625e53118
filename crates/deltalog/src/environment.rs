//! Time and randomness, which come in from outside so that a test can hold them still.

use std::sync::Arc;

use uuid::Uuid;

/// Where the time and new ids come from. Cheap to clone.
#[derive(Clone)]
pub struct Environment {
    clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    uuids: Arc<dyn Fn() -> Uuid + Send + Sync>,
}

impl Environment {
    /// The system's clock and random ids.
    pub fn system() -> Self {
        Self { clock: Arc::new(|| chrono::Utc::now().timestamp_millis()), uuids: Arc::new(Uuid::new_v4) }
    }

    /// A clock and a source of ids of the caller's.
    pub fn new(
        clock: impl Fn() -> i64 + Send + Sync + 'static,
        uuids: impl Fn() -> Uuid + Send + Sync + 'static,
    ) -> Self {
        Self { clock: Arc::new(clock), uuids: Arc::new(uuids) }
    }

    /// Milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// A new id.
    pub fn uuid(&self) -> Uuid {
        (self.uuids)()
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::system()
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Environment")
    }
}
