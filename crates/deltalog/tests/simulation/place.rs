//! The place of a run's table: the simulated store, or a bucket on a server.

use deltalog::Storage;
use deltalog::engine::parallel::stay_alone;
use deltalog_testkit::simulation::{Process, Simulation};
use url::Url;

use crate::bucket::Bucket;

/// The directory of the table in the store.
pub const ROOT: &str = "t";

/// The simulated store of a run.
pub enum Place {
    /// The simulation's own store.
    Simulated,
    /// A bucket of a server.
    Bucket(Bucket),
}

impl Place {
    /// Opens the table for a process.
    pub fn open(&self, process: &Process) -> Storage {
        match self {
            Self::Simulated => {
                stay_alone();
                let url = Url::parse(&format!("memory:///{ROOT}")).unwrap();
                Storage::with_immediate_store(url, process.store()).unwrap()
            }
            Self::Bucket(bucket) => {
                let options = bucket.server.options();
                let options = options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                Storage::open(&format!("s3://{}/{ROOT}", bucket.name), options).unwrap()
            }
        }
    }

    /// Makes `per_mille` of 1,000 requests to a server fail. In the simulation, the profile determines which requests
    /// fail.
    pub fn fail(&self, per_mille: u64, seed: u64) {
        if let Self::Bucket(bucket) = self {
            bucket.fail(per_mille, seed);
        }
    }

    /// Lets all requests to a server succeed again.
    pub fn heal(&self) {
        if let Self::Bucket(bucket) = self {
            bucket.heal();
        }
    }

    /// Copies the final files of a server to the simulation's store, where they are checked.
    pub fn collect(&self, simulation: &mut Simulation) {
        if let Self::Bucket(bucket) = self {
            bucket.collect(simulation);
        }
    }

    /// Returns whether processes can wait for days, which is only possible with simulated time.
    pub fn has_days(&self) -> bool {
        matches!(self, Self::Simulated)
    }
}
