//! Data files that are being written, and files that an engine has written, as `add` actions.
