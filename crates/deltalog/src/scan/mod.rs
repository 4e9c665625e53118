//! Reading a snapshot.
