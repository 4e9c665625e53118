//! Python bindings of deltalog.
