//! Delta tables in DataFusion 55: [`DeltaTableProvider`] over a [`deltalog::Snapshot`].
//!
//! The scan of deltalog evaluates filters, projections and limits, and skips files, row groups and pages. It also
//! handles deletion vectors, column mapping, type widening and partitions, so tables with any supported feature can be
//! queried. DataFusion answers `count(*)`, `min` and `max` from the log where it has exact values. `INSERT INTO` and
//! `INSERT OVERWRITE` commit through deltalog's transactions.
//!
//! ```ignore
//! let snapshot = Snapshot::open(&Storage::open("trips", [])?, None)?;
//! let context = SessionContext::new();
//! context.register_table("trips", Arc::new(DeltaTableProvider::new(&snapshot)?))?;
//! context.sql("SELECT city, sum(km) FROM trips WHERE km > 5 GROUP BY city").await?.show().await?;
//! context.sql("INSERT INTO trips VALUES ('Bern', 3.0)").await?.collect().await?;
//! ```
//!
//! Errors of deltalog are the cause of the error of DataFusion: `error.find_root()` is `External`, and its content a
//! [`deltalog::Error`] with its kind.
//!
//! | file | what it does |
//! | --- | --- |
//! | `provider` | the table, as DataFusion plans with it |
//! | `condition` | translates filters |
//! | `planning` | lists the files of a scan, and divides them into partitions |
//! | `statistics` | what the log shows about the rows of a scan |
//! | `scan` | the scan, as DataFusion executes it |
//! | `insert` | INSERT, as DataFusion executes it |
//! | `blocking` | calls of the core, which block, on threads of their own |

mod blocking;
mod condition;
mod error;
mod insert;
mod planning;
mod provider;
mod scan;
mod shown;
mod statistics;

pub use provider::DeltaTableProvider;
