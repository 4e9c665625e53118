"""Random DELETE, UPDATE, MERGE and INSERT statements on Spark, compared with the JVM connector."""
