//! Object-store servers of other projects, which tests start and use.
//!
//! `make .cache/servers/.complete .cache/hdfs/.complete` installs them. Each runs on a free port with its own empty
//! directory, and ends when its value is dropped. If the test process ends in any other way, even by SIGKILL, the
//! server ends too, and its directory is removed ([`process`]).
//!
//! | server | protocol | creates if absent |
//! | --- | --- | --- |
//! | [`VersityGw`] | S3 | yes |
//! | [`Azurite`] | Azure Blob Storage | yes |
//! | [`FakeGcs`] | Google Cloud Storage, by a front of our own | yes |
//! | [`Dynalite`] | DynamoDB | yes, items |
//! | [`Hdfs`] | Hadoop's | a rename that does not overwrite |

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
