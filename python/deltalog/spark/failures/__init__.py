"""Converts errors between Python and the JVM, and finds the tables that Spark's errors are about."""
