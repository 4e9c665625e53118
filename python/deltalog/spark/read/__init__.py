"""Reads: snapshots as relations of Spark's, planned by Rust."""
