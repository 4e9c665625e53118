"""Structured Streaming in classic sessions: tables as sources and sinks of streams."""
