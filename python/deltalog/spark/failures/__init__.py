"""Errors on their way between Python and the JVM, and what errors of Spark say about tables."""
