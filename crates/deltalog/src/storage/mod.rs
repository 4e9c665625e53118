//! The only I/O.
