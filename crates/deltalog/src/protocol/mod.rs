//! What the protocol says: actions, schema, table features, paths. No I/O.
