//! Tests of the crate's guarantees for commits, replay and the log. They use stores that fail, many writers, and
//! comparisons with a naive replay.
//!
//! All tests are in one binary, because linking takes most of the build time.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

mod altered;
mod auto_compacted;
mod background;
mod bases;
mod bloom_filters;
mod checkpoints;
mod checksums;
mod clean_up;
mod cloned;
mod clustered;
mod commit_costs;
mod commit_rule;
mod common;
mod compactions;
mod conflicts;
mod converted;
mod counts;
mod crash_points;
mod defined;
mod drop_races;
mod dropped_features;
mod duties;
mod engine_cloned;
mod engine_optimized;
mod evolved;
mod followers;
mod fragments;
mod handles;
mod histories;
mod iceberg;
mod kept_checksums;
mod killed;
#[path = "../kills/mod.rs"]
mod kills;
mod log_files;
mod manifests;
mod many_writers;
mod optimized;
mod optimized_overtaken;
mod own_rows;
mod pending_writes;
mod prepared;
mod protected_logs;
mod recomputed;
mod repaired;
mod restored;
mod row_changes;
mod row_copies;
mod row_deletes;
mod staged;
mod syncs;
mod threads;
mod times;
mod vacuum;
mod vacuum_and_restore;
mod vacuum_sources;
mod wide_rows;
mod written_checkpoints;
mod written_checkpoints_overtaken;
mod z_ordered;
