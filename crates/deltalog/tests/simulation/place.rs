//! Where the table of a run is.

use deltalog::Storage;
use deltalog::engine::parallel::stay_alone;
use deltalog_testkit::simulation::{Process, Simulation};
use url::Url;

use crate::bucket::Bucket;

/// The directory of the table in the store.
pub const ROOT: &str = "t";

/// The store of a run.
pub enum Place {
    /// The simulation's.
    Simulated,
    /// A bucket of a server.
    Bucket(Bucket),
}

impl Place {
    /// Returns the table for a process.
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

    /// Makes `per_mille` of 1,000 requests to a server fail. Requests of the simulation fail as its profile says.
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

    /// Shows the final files to the simulation.
    pub fn collect(&self, simulation: &mut Simulation) {
        if let Self::Bucket(bucket) = self {
            bucket.collect(simulation);
        }
    }

    /// Returns whether a process can wait for another day.
    pub fn has_days(&self) -> bool {
        matches!(self, Self::Simulated)
    }
}
