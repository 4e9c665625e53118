"""Writes: Spark's own Parquet writer writes the files, the core checks and commits."""
