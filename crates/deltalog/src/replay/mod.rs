//! The one replay of a log segment.
