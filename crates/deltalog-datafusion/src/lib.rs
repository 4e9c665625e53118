//! Delta tables in DataFusion 55: [`DeltaTableProvider`] over a [`deltalog::Snapshot`].
//!
//! deltalog's scan evaluates filters, projections and limits, and skips files, row groups and pages. It also handles
//! deletion vectors, column mapping, type widening and partitions, so tables with any supported feature can be
//! queried. DataFusion answers `count(*)`, `min` and `max` from the log if it contains exact values. `INSERT INTO`
//! and `INSERT OVERWRITE` commit through deltalog's transactions.
//!
//! ```ignore
//! let snapshot = Snapshot::open(&Storage::open("trips", [])?, None)?;
//! let context = SessionContext::new();
//! context.register_table("trips", Arc::new(DeltaTableProvider::new(&snapshot)?))?;
//! context.sql("SELECT city, sum(km) FROM trips WHERE km > 5 GROUP BY city").await?.show().await?;
//! context.sql("INSERT INTO trips VALUES ('Bern', 3.0)").await?.collect().await?;
//! ```
//!
//! An error of deltalog becomes the root cause of DataFusion's error: `error.find_root()` is `External`, and contains
//! a [`deltalog::Error`] with its kind.
//!
//! | file | what it does |
//! | --- | --- |
//! | `provider` | the table that DataFusion uses for planning |
//! | `condition` | translates filters |
//! | `planning` | lists the files of a scan, and divides them into partitions |
//! | `statistics` | the number of rows and the bounds of a scan, from the log |
//! | `scan` | the scan that DataFusion executes |
//! | `insert` | the INSERT that DataFusion executes |
//! | `blocking` | runs blocking calls of the core on their own threads |

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
