"""Runs random DELETE, UPDATE, MERGE and INSERT statements on Spark, and compares deltalog with the JVM connector."""
