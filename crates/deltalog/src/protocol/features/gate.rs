//! What may be read and what may be written: the only place that says which features are implemented.

use super::{FeatureKind, READER_VERSION, TableFeature, WRITER_VERSION};
use crate::protocol::action::{Metadata, Protocol};
use crate::{Error, Result};

/// How far a feature is implemented on one side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Support {
    /// In full, or it asks nothing of this side.
    Full,
    /// Only as long as the table makes no use of it.
    WhileInactive,
    /// Not at all.
    Missing,
}

/// What a reader can do.
fn reading(feature: &TableFeature) -> Support {
    match feature {
        // Asks of readers only that they know its name; they do not vacuum.
        TableFeature::VacuumProtocolCheck | TableFeature::TimestampNtz | TableFeature::ColumnMapping => {
            Support::Full
        }
        TableFeature::DeletionVectors => Support::Full,
        // Changes of types that are no widenings are refused where the schema is read.
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview => Support::Full,
        TableFeature::V2Checkpoint => Support::Full,
        TableFeature::VariantType | TableFeature::VariantTypePreview => Support::Full,
        TableFeature::VariantShredding | TableFeature::VariantShreddingPreview => Support::Full,
        // A writers' feature asks nothing of readers, in whichever list it stands.
        feature if feature.kind() == Some(FeatureKind::Writer) => Support::Full,
        _ => Support::Missing,
    }
}

/// What a writer can do.
fn writing(feature: &TableFeature) -> Support {
    match feature {
        // Respected through `is_append_only`.
        TableFeature::AppendOnly => Support::Full,
        // Domains are carried on by replay; no writer here touches one.
        TableFeature::DomainMetadata => Support::Full,
        TableFeature::TimestampNtz | TableFeature::VacuumProtocolCheck => Support::Full,
        // Classic checkpoints stay allowed, of the one spec and of the other.
        TableFeature::V2Checkpoint => Support::Full,
        // Files are written and removed as a whole: removed ones with their vectors, and nothing is updated,
        // so there is no change file to write.
        TableFeature::DeletionVectors | TableFeature::ChangeDataFeed => Support::Full,
        TableFeature::Invariants
        | TableFeature::CheckConstraints
        | TableFeature::GeneratedColumns
        | TableFeature::ColumnMapping
        | TableFeature::IdentityColumns => Support::WhileInactive,
        _ => Support::Missing,
    }
}

/// Whether a writer can do all that a table asks which makes use of the feature.
pub(super) fn is_writable_when_active(feature: &TableFeature) -> bool {
    writing(feature) == Support::Full
}

/// The features for which the table cannot be read.
///
/// # Errors
/// As [`Metadata::schema`], when only the schema can tell whether a feature is in use.
pub fn reader_refusals(protocol: &Protocol, metadata: &Metadata) -> Result<Vec<TableFeature>> {
    refusals(protocol.reader_features(), reading, metadata)
}

/// The features for which the table cannot be written, those of readers included.
///
/// # Errors
/// As [`reader_refusals`].
pub fn writer_refusals(protocol: &Protocol, metadata: &Metadata) -> Result<Vec<TableFeature>> {
    let mut refused = reader_refusals(protocol, metadata)?;
    for feature in refusals(protocol.writer_features(), writing, metadata)? {
        if !refused.contains(&feature) {
            refused.push(feature);
        }
    }
    Ok(refused)
}

fn refusals(
    supported: Vec<TableFeature>,
    support: fn(&TableFeature) -> Support,
    metadata: &Metadata,
) -> Result<Vec<TableFeature>> {
    let mut refused: Vec<_> =
        supported.iter().filter(|feature| support(feature) == Support::Missing).cloned().collect();
    for feature in supported.into_iter().filter(|feature| support(feature) == Support::WhileInactive) {
        match feature.is_active(metadata) {
            Ok(true) => refused.push(feature),
            Ok(false) => {}
            // A feature that is missing anyway is the better thing to say than a schema that may only be
            // unreadable for want of it.
            Err(error) if refused.is_empty() => return Err(error),
            Err(_) => {}
        }
    }
    Ok(refused)
}

/// Refuses a table that cannot be read rightly.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) names every feature that is missing, the protocol version,
/// or the file format; [`CorruptLog`](crate::ErrorKind::CorruptLog) for a protocol that the specification
/// does not allow.
pub fn ensure_readable(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    ensure_readable_but(protocol, metadata, &[]).map_err(|error| {
        let only_by_catalog =
            ensure_readable_but(protocol, metadata, &[TableFeature::CatalogManaged]).is_ok();
        if only_by_catalog { needs_catalog() } else { error }
    })
}

/// As [`ensure_readable`], of a table whose catalog was asked for the commits that are not published yet.
///
/// # Errors
/// As [`ensure_readable`].
pub fn ensure_readable_with_catalog(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    ensure_readable_but(protocol, metadata, &[TableFeature::CatalogManaged])
}

fn ensure_readable_but(protocol: &Protocol, metadata: &Metadata, allowed: &[TableFeature]) -> Result<()> {
    protocol.validate()?;
    ensure_version("read", protocol.min_reader_version, READER_VERSION)?;
    let mut refused = reader_refusals(protocol, metadata)?;
    refused.retain(|feature| !allowed.contains(feature));
    ensure_features("read", &refused)?;
    match metadata.format.provider.eq_ignore_ascii_case("parquet") {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "cannot read the table: its data files are in the format '{}'",
            metadata.format.provider
        ))
        .with_hint("only parquet is implemented")),
    }
}

/// Only the catalog knows the newest version of a table with `catalogManaged`.
fn needs_catalog() -> Error {
    Error::unsupported("cannot read the table by its path: a catalog manages it (table feature 'catalogManaged') and only that knows its newest version")
        .with_hint("ask the catalog for the commits that are not published yet, and open the table with them as its staged commits (there may be none)")
}

/// Refuses a table that cannot be written rightly; it must be readable too.
///
/// # Errors
/// As [`ensure_readable`].
pub fn ensure_writable(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    protocol.validate()?;
    ensure_version("write", protocol.min_writer_version, WRITER_VERSION)?;
    ensure_features("write", &writer_refusals(protocol, metadata)?)?;
    ensure_readable(protocol, metadata)
}

/// Whether rows of the table must not be changed or removed. (PROTOCOL, "Append-only Tables".)
///
/// Holds for every protocol: a table that says so in its properties means it, also where its protocol does
/// not make writers respect it.
pub fn is_append_only(metadata: &Metadata) -> bool {
    metadata.is_enabled("delta.appendOnly")
}

fn ensure_version(verb: &str, version: i32, newest: i32) -> Result<()> {
    match version <= newest {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "cannot {verb} the table: it needs version {version} of the {verb} protocol"
        ))
        .with_hint(format!("versions up to {newest} are implemented; a newer release may know this one"))),
    }
}

pub(super) fn ensure_features(verb: &str, refused: &[TableFeature]) -> Result<()> {
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
        "make" => format!("leave out the property or the column that asks for {them}"),
        _ => format!("use a client that implements {them}, or drop {them} from the table with one, or look for a newer release"),
    }))
}
