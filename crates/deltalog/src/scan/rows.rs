//! The rows of data files.
