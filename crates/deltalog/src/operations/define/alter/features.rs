//! Adds features to the protocol of a table. (Protocol: "Supported Features".)

use serde_json::json;

use super::draft::Draft;
use super::enable;
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::protocol::TableFeature;
use crate::protocol::features::{READER_VERSION, WRITER_VERSION};

/// Adds the features `names` and the features that they require.
///
/// # Errors
/// Returns `InvalidArgument` for an unknown feature. Features that cannot be written are refused later, by the draft.
/// Also returns the errors of [`enable::follow_up`].
pub(super) fn add(draft: &mut Draft<'_>, names: &[String]) -> Result<Operation> {
    for name in names {
        draft.ask_for([named(name)?]);
    }
    upgrade(draft)
}

/// Upgrades the protocol to the versions `reader` and `writer`, and adds the features that they imply.
///
/// # Errors
/// Returns `InvalidArgument` for versions that the protocol does not define. Also returns the errors of [`add`].
pub(super) fn raise(draft: &mut Draft<'_>, reader: i32, writer: i32) -> Result<Operation> {
    for (side, version, newest) in [("reader", reader, READER_VERSION), ("writer", writer, WRITER_VERSION)] {
        if !(1..=newest).contains(&version) {
            return Err(Error::invalid_argument(format!(
                "there is no {side} version {version} of the protocol"
            ))
            .with_hint(format!("use a version from 1 to {newest}")));
        }
    }
    draft.versions = (reader, writer);
    let implied = draft.base.protocol().upgraded(reader, writer).writer_features();
    draft.ask_for(
        implied.into_iter().filter(|feature| !draft.base.protocol().supports(feature)).collect::<Vec<_>>(),
    );
    upgrade(draft)
}

fn upgrade(draft: &mut Draft<'_>) -> Result<Operation> {
    enable::follow_up(draft)?;
    let protocol = draft.protocol()?;
    let new = json!({
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "readerFeatures": protocol.reader_features,
        "writerFeatures": protocol.writer_features,
    });
    Ok(Operation::new("UPGRADE PROTOCOL").parameter("newProtocol", new.to_string()))
}

/// Returns the feature with this name, ignoring case.
///
/// # Errors
/// Returns `InvalidArgument` if there is no such feature.
pub(super) fn named(name: &str) -> Result<TableFeature> {
    TableFeature::known().find(|feature| feature.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
        Error::invalid_argument(format!("there is no table feature '{name}'"))
            .with_hint("use a name of the protocol, such as deletionVectors or columnMapping")
    })
}
