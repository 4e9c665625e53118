//! Time, sleep and randomness, which come in from outside so that tests can control them.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

/// The source of the time, of pauses, of new ids and of randomness. Cheap to clone.
#[derive(Clone)]
pub struct Environment {
    clock: Arc<dyn Fn() -> i64 + Send + Sync>,
    uuids: Arc<dyn Fn() -> Uuid + Send + Sync>,
    sleep: Arc<dyn Fn(Duration) + Send + Sync>,
    random: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl Environment {
    /// Returns an environment with the system's clock, pauses and randomness.
    pub fn system() -> Self {
        Self::new(|| chrono::Utc::now().timestamp_millis(), Uuid::new_v4)
    }

    /// Returns an environment with this clock, in milliseconds since the epoch, and this source of ids. Pauses and
    /// randomness are those of the system.
    pub fn new(
        clock: impl Fn() -> i64 + Send + Sync + 'static,
        uuids: impl Fn() -> Uuid + Send + Sync + 'static,
    ) -> Self {
        Self {
            clock: Arc::new(clock),
            uuids: Arc::new(uuids),
            sleep: Arc::new(std::thread::sleep),
            random: Arc::new(random),
        }
    }

    /// Replaces the function that pauses the calling thread.
    #[must_use]
    pub fn with_sleep(self, sleep: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self { sleep: Arc::new(sleep), ..self }
    }

    /// Replaces the source of random numbers.
    #[must_use]
    pub fn with_random(self, random: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { random: Arc::new(random), ..self }
    }

    /// Returns the time in milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// Returns a new id.
    pub fn uuid(&self) -> Uuid {
        (self.uuids)()
    }

    /// Pauses the calling thread.
    pub fn sleep(&self, duration: Duration) {
        (self.sleep)(duration);
    }

    /// Returns a random number.
    pub fn random(&self) -> u64 {
        (self.random)()
    }
}

/// Returns a random number from the system. Both halves of a random id have fixed bits, so they are combined.
fn random() -> u64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    high.rotate_left(32) ^ low
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
