"""Delta tables for Python and Spark without the JVM connector."""
