"""Structured Streaming in classic sessions: tables as sources of streams."""
