"""Converting errors between Python and the JVM, and finding out what Spark's errors say about tables."""
