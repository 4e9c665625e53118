//! The checks for reading and writing a table. Only this file determines which table features are implemented.

use super::{FeatureKind, READER_VERSION, TableFeature, WRITER_VERSION};
use crate::error::{Error, Result};
use crate::protocol::action::{Metadata, Protocol};

/// Whether a feature is implemented for readers or for writers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Support {
    /// Fully implemented, or without requirements for these clients.
    Full,
    /// Not implemented.
    Missing,
}

/// Returns whether a feature is implemented for readers.
fn reader_support(feature: &TableFeature) -> Support {
    match feature {
        // For readers, it is enough to know the name of `vacuumProtocolCheck`, because they do not vacuum.
        TableFeature::VacuumProtocolCheck | TableFeature::TimestampNtz | TableFeature::ColumnMapping => {
            Support::Full
        }
        TableFeature::DeletionVectors => Support::Full,
        // Type changes that are not widenings are refused when the schema is read.
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview => Support::Full,
        TableFeature::V2Checkpoint => Support::Full,
        TableFeature::VariantType | TableFeature::VariantTypePreview => Support::Full,
        TableFeature::VariantShredding | TableFeature::VariantShreddingPreview => Support::Full,
        // A writer feature has no requirements for readers, whichever list names it.
        feature if feature.kind() == Some(FeatureKind::Writer) => Support::Full,
        _ => Support::Missing,
    }
}

/// Returns whether a feature is implemented for writers.
fn writer_support(feature: &TableFeature) -> Support {
    match feature {
        // `ensure_removable` enforces this feature.
        TableFeature::AppendOnly => Support::Full,
        // Replaying the log preserves metadata domains, and two concurrent commits of the same domain conflict.
        TableFeature::DomainMetadata => Support::Full,
        // Each attempt to commit assigns timestamps and row ids again. Copied rows keep their ids (`row_copy`).
        TableFeature::InCommitTimestamp | TableFeature::RowTracking => Support::Full,
        TableFeature::TimestampNtz | TableFeature::VacuumProtocolCheck => Support::Full,
        // Checkpoints are written in all allowed forms, except as multi-part checkpoints.
        TableFeature::V2Checkpoint => Support::Full,
        // Usually, the changed rows can be derived from the file actions: files are removed as a whole or get deletion
        // vectors, and new files have only new rows. A statement whose changed rows cannot be derived in this way
        // writes change data files (`rewrite::row_writer`).
        TableFeature::DeletionVectors | TableFeature::ChangeDataFeed => Support::Full,
        // Data files have physical column names and field ids; see `TableWriteSpec`.
        TableFeature::ColumnMapping => Support::Full,
        // Variants are written unshredded, which is also allowed in tables with shredded variants.
        TableFeature::VariantType | TableFeature::VariantTypePreview => Support::Full,
        TableFeature::VariantShredding | TableFeature::VariantShreddingPreview => Support::Full,
        // The log clean-up creates no checkpoint, and deletes none after the version to which it truncates the log. A
        // checkpoint of an old version is only written if the features of that version are known.
        TableFeature::CheckpointProtection => Support::Full,
        // The names of collations are kept. Statistics compare strings by their bytes, which the feature allows.
        TableFeature::Collations | TableFeature::CollationsPreview => Support::Full,
        // New data files have the current types of the columns.
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview => Support::Full,
        // `DataWriter` compiles the expressions of constraints, or refuses the table, and checks each row. In the
        // package for Spark, Spark evaluates the expressions itself.
        TableFeature::Invariants
        | TableFeature::CheckConstraints
        | TableFeature::GeneratedColumns
        | TableFeature::AllowColumnDefaults
        | TableFeature::IdentityColumns => Support::Full,
        // `IcebergCompat` checks tables, and `TableWriteSpec` determines what their files contain.
        TableFeature::IcebergCompatV1 | TableFeature::IcebergCompatV2 | TableFeature::IcebergCompatV3 => {
            Support::Full
        }
        // `TableWriteSpec` determines which columns data files contain.
        TableFeature::MaterializePartitionColumns => Support::Full,
        // New rows are added unclustered, with statistics of the clustering columns (`TableWriteSpec::of`).
        // `optimize::clustered` clusters them later.
        TableFeature::Clustering => Support::Full,
        _ => Support::Missing,
    }
}

/// Returns whether tables with this feature can be written.
pub(super) fn is_writable(feature: &TableFeature) -> bool {
    writer_support(feature) == Support::Full
}

/// Returns the features that prevent reading the table.
pub fn reader_refusals(protocol: &Protocol) -> Vec<TableFeature> {
    missing(protocol.reader_features(), reader_support)
}

/// Returns the features that prevent writing the table, including those that prevent reading it.
pub fn writer_refusals(protocol: &Protocol) -> Vec<TableFeature> {
    let mut refused = reader_refusals(protocol);
    for feature in missing(protocol.writer_features(), writer_support) {
        if !refused.contains(&feature) {
            refused.push(feature);
        }
    }
    refused
}

fn missing(features: Vec<TableFeature>, support: fn(&TableFeature) -> Support) -> Vec<TableFeature> {
    features.into_iter().filter(|feature| support(feature) == Support::Missing).collect()
}

/// Refuses a table that this crate cannot read correctly.
///
/// # Errors
/// [`Unsupported`](crate::error::ErrorKind::Unsupported), naming what is missing, if a feature, the protocol version or
/// the file format is not implemented. [`CorruptLog`](crate::error::ErrorKind::CorruptLog) if the specification does
/// not allow the protocol.
pub fn ensure_readable(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    ensure_readable_except(protocol, metadata, &[]).map_err(|error| {
        let only_by_catalog =
            ensure_readable_except(protocol, metadata, &[TableFeature::CatalogManaged]).is_ok();
        if only_by_catalog { needs_catalog() } else { error }
    })
}

/// Does the same check as [`ensure_readable`], for a table whose catalog has provided its unpublished commits.
///
/// # Errors
/// Returns the same errors as [`ensure_readable`].
pub fn ensure_readable_with_catalog(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    ensure_readable_except(protocol, metadata, &[TableFeature::CatalogManaged])
}

fn ensure_readable_except(protocol: &Protocol, metadata: &Metadata, allowed: &[TableFeature]) -> Result<()> {
    protocol.validate()?;
    ensure_version("read", protocol.min_reader_version, READER_VERSION)?;
    let mut refused = reader_refusals(protocol);
    refused.retain(|feature| !allowed.contains(feature));
    ensure_features("read", &refused)?;
    match metadata.format.provider.eq_ignore_ascii_case("parquet") {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "cannot read the table: its data files are in the format '{}'",
            metadata.format.provider
        ))
        .with_hint("convert the data files to Parquet, the only format that is implemented")),
    }
}

/// Returns the error for a table with `catalogManaged` that is opened by its path.
fn needs_catalog() -> Error {
    Error::unsupported(
        "cannot read the table by its path: it has the table feature 'catalogManaged', and only its catalog \
         knows the newest version",
    )
    .with_hint(
        "ask the catalog for the commits that are not published yet, and open the table with them as its \
         staged commits (there may be none)",
    )
}

/// Refuses a table that this crate cannot both read and write correctly.
///
/// # Errors
/// Returns the same errors as [`ensure_readable`].
pub fn ensure_writable(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    protocol.validate()?;
    ensure_version("write", protocol.min_writer_version, WRITER_VERSION)?;
    ensure_features("write", &writer_refusals(protocol))?;
    ensure_readable(protocol, metadata)
}

/// Refuses a table with a feature that this crate does not know. Such a feature may have actions of its own, which
/// would be missing from a checkpoint that this crate writes.
///
/// Features whose names are known add no unknown actions, even if this crate cannot write tables with them.
///
/// # Errors
/// Returns the same errors as [`ensure_readable`].
pub fn ensure_checkpointable(protocol: &Protocol) -> Result<()> {
    protocol.validate()?;
    ensure_version("write", protocol.min_writer_version, WRITER_VERSION)?;
    let is_unknown = |feature: &TableFeature| matches!(feature, TableFeature::Unknown(_));
    let unknown: Vec<_> = protocol.writer_features().into_iter().filter(is_unknown).collect();
    ensure_features("write", &unknown)
}

/// Checks that rows of the table may be changed or removed. (PROTOCOL, "Append-only Tables".)
///
/// The property applies under every protocol, even one that does not require writers to respect it.
///
/// # Errors
/// `InvalidArgument` if the table is append-only.
pub(crate) fn ensure_removable(metadata: &Metadata) -> Result<()> {
    match metadata.is_enabled("delta.appendOnly") {
        false => Ok(()),
        true => Err(Error::invalid_argument(
            "the table is append-only (delta.appendOnly): its rows cannot be deleted or changed",
        )
        .with_hint("set the table property delta.appendOnly to false")),
    }
}

fn ensure_version(verb: &str, version: i32, newest: i32) -> Result<()> {
    match version <= newest {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "cannot {verb} the table: it needs version {version} of the {verb} protocol"
        ))
        .with_hint(format!("versions up to {newest} are implemented; a newer release may support this one"))),
    }
}

pub(crate) fn ensure_features(verb: &str, refused: &[TableFeature]) -> Result<()> {
    if refused.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = refused.iter().map(|feature| format!("'{feature}'")).collect();
    let (noun, them) = if refused.len() == 1 { ("feature", "it") } else { ("features", "them") };
    Err(Error::unsupported(format!(
        "cannot {verb} the table: the table {noun} {} {} not implemented",
        names.join(", "),
        match refused.len() {
            1 => "is",
            _ => "are",
        }
    ))
    .with_hint(match verb {
        "make" => format!("leave out the property or the column that requires {them}"),
        _ => format!(
            "use a client that implements {them}, drop {them} from the table with such a client, or look \
             for a newer release"
        ),
    }))
}
