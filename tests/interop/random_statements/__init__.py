"""Random DELETE, UPDATE, MERGE and INSERT on Spark, beside the JVM connector."""
