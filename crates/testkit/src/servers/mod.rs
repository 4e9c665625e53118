//! Object-store servers of other projects, which tests start and use.
//!
//! `make .cache/servers/.complete .cache/hdfs/.complete` installs them. Each server runs on a free port, with its own
//! empty directory, and ends when its value is dropped. If the test process ends in any other way, even by SIGKILL,
//! the server ends as well, and its directory is removed ([`process`]).
//!
//! | server | protocol | can create a file only if it does not exist |
//! | --- | --- | --- |
//! | [`VersityGw`] | S3 | yes |
//! | [`Azurite`] | Azure Blob Storage | yes |
//! | [`FakeGcs`] | Google Cloud Storage, behind a front of this crate | yes |
//! | [`Dynalite`] | DynamoDB | yes, items |
//! | [`Hdfs`] | Hadoop's | by a rename that does not overwrite |

mod azurite;
mod dynalite;
mod fake_gcs;
mod hdfs;
mod installed;
mod process;
mod request;
mod versitygw;

pub use azurite::Azurite;
pub use dynalite::{Dynalite, Lost};
pub use fake_gcs::FakeGcs;
pub use hdfs::Hdfs;
pub use versitygw::VersityGw;
