//! Reads of the table.

use deltalog::Snapshot;
use deltalog_testkit::judge::Intent;

use crate::session::{Session, view};

/// Opens the newest version, which becomes the handle.
pub fn open(session: &mut Session<'_>) {
    session.operate("open", Intent::Read(None), |session, _| {
        let snapshot = Snapshot::open(&session.storage, None)?;
        let seen = view(&snapshot, None);
        session.handle = Some(snapshot);
        seen
    });
}

/// Refreshes the handle.
pub fn refresh(session: &mut Session<'_>) {
    let Some(handle) = session.handle.clone() else { return open(session) };
    session.operate("refresh", Intent::Read(None), |session, _| {
        let snapshot = handle.refresh()?;
        let seen = view(&snapshot, Some(handle.version()));
        session.handle = Some(snapshot);
        seen
    });
}

/// Opens the newest version, and reuses what the handle has already read.
pub fn reopen(session: &mut Session<'_>) {
    let Some(handle) = session.handle.clone() else { return open(session) };
    session.operate("reopen", Intent::Read(None), |session, _| {
        let snapshot = handle.reopen()?;
        let seen = view(&snapshot, None);
        session.handle = Some(snapshot);
        seen
    });
}

/// Opens a version that the handle knows to exist.
pub fn open_older(session: &mut Session<'_>) {
    let Some(newest) = session.handle.as_ref().map(Snapshot::version) else { return open(session) };
    let version = session.process.below(newest + 1);
    open_version(session, version);
}

/// Opens every version from the first to the handle's.
pub fn open_all(session: &mut Session<'_>) {
    let Some(newest) = session.handle.as_ref().map(Snapshot::version) else { return };
    for version in 0..=newest {
        open_version(session, version);
    }
}

fn open_version(session: &mut Session<'_>, version: u64) {
    session.operate("open a version", Intent::Read(Some(version)), |session, _| {
        view(&Snapshot::open(&session.storage, Some(version))?, None)
    });
}
