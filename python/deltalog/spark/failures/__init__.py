"""Converts errors between Python and the JVM."""
