//! Checks the versions that readers have seen.

use super::Case;
use crate::judge::history::{Intent, Outcome};

pub(super) fn views(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let Some(Outcome::Saw(view)) = &operation.outcome else { continue };
        let state = usize::try_from(view.version).ok().and_then(|version| case.log.states.get(version));
        let Some(state) = state else { return Err(format!("{operation}: there is no such version")) };
        if matches!(operation.intent, Intent::Read(Some(wanted)) if wanted != view.version) {
            return Err(format!("{operation}: another version was returned"));
        }
        if state.files != view.files || state.progress != view.progress {
            return Err(format!("{operation}: the version is {state:?}"));
        }
    }
    Ok(())
}

pub(super) fn freshness(case: &Case) -> Result<(), String> {
    for operation in &case.operations {
        let (Intent::Read(None), Some(Outcome::Saw(view))) = (&operation.intent, &operation.outcome) else {
            continue;
        };
        if view.before.is_some_and(|before| before > view.version) {
            return Err(format!("{operation}: the handle was newer before"));
        }
        let newest = case.known_before(operation);
        if case.listings_are_strong && newest > Some(view.version) {
            return Err(format!("{operation}: version {newest:?} was known before"));
        }
    }
    Ok(())
}
