"""Reads: snapshots as relations of Spark, planned by Rust."""
