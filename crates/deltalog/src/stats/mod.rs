//! Per-file statistics.
