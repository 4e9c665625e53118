"""Writes: Spark's Parquet writer writes the files; the core checks and commits them."""
