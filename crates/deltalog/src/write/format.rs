//! Decides how data files are encoded: as the writer requests ([`FileFormat`]), and otherwise according to the table
//! property `delta.parquet.compression.codec` and the table's Bloom filters.
//!
//! - A column whose bounds are written to the log always has statistics for its column chunks, because the bounds are
//!   computed from them.
//! - An encoding that is requested for all columns only applies to columns whose type allows it.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;

use arrow::datatypes::{DataType, Fields, SchemaRef};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{BrotliLevel, Compression, ConvertedType, Encoding, GzipLevel, Type, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterPropertiesBuilder};
use parquet::schema::types::{ColumnDescPtr, ColumnPath as FilePath};

use super::blooms::BloomFilters;
use super::spec::TableWriteSpec;
use crate::error::{Error, ErrorKind, Result};
use crate::expression::predicate::{ColumnPath, FieldNames};
use crate::protocol::properties::{CODECS, COMPRESSION};
use crate::runtime::environment::{ColumnFormat, FileFormat};
use crate::values::stats::indexed;

/// The level of `zstd` if none is requested. It is the default of Parquet's Java writer.
const ZSTD_LEVEL: i32 = 3;

/// The encoding of the files of a write.
#[derive(Debug, Clone)]
pub(super) struct Format {
    codec: Compression,
    bloom_filters: BloomFilters,
    given: FileFormat,
    leaves: Vec<(FilePath, LeafFormat)>,
}

/// The encoding of a leaf column.
#[derive(Debug, Clone)]
struct LeafFormat {
    dictionary: Option<bool>,
    statistics: Option<EnabledStatistics>,
    encoding: Option<Encoding>,
    bloom_filter: Option<bool>,
    rate: Option<f64>,
    values: Option<u64>,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            codec: Compression::SNAPPY,
            bloom_filters: BloomFilters::default(),
            given: FileFormat::default(),
            leaves: Vec::new(),
        }
    }
}

impl Format {
    /// Returns how a writer with the options `given` encodes the files of a table.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for invalid options, and `Unsupported` if the table's codec cannot be written.
    pub(super) fn new(spec: &TableWriteSpec, given: &FileFormat) -> Result<Self> {
        let codec = match (&given.compression, spec.configuration().get(COMPRESSION)) {
            (Some(name), _) => codec(name, given.compression_level)?,
            (None, None) => codec("snappy", given.compression_level)?,
            (None, Some(name)) => codec(name, given.compression_level).map_err(|error| {
                match CODECS.contains(&name.to_ascii_lowercase().as_str()) {
                    true => error,
                    false => Error::unsupported(format!("files with the codec '{name}' cannot be written"))
                        .with_hint(format!(
                            "set the table property '{COMPRESSION}' to one of {}",
                            CODECS.join(", ")
                        )),
                }
            })?,
        };
        for (name, number) in [
            ("max_row_group_size", given.row_group_rows),
            ("data_page_size_limit", given.data_page_bytes),
            ("data_page_row_count_limit", given.data_page_rows),
            ("dictionary_page_size_limit", given.dictionary_page_bytes),
            ("write_batch_size", given.batch_rows),
            ("statistics_truncate_length", given.statistics_length),
        ] {
            if number == Some(0) {
                return Err(Error::invalid_argument(format!("{name} cannot be 0"))
                    .with_hint("pass a number from 1, or leave it out"));
            }
        }
        let leaves = match given.default_column == ColumnFormat::default() && given.columns.is_empty() {
            true => Vec::new(),
            false => leaf_formats(spec, given)?,
        };
        Ok(Self { codec, bloom_filters: spec.bloom_filters().clone(), given: given.clone(), leaves })
    }

    /// Returns the part of a file name that shows the codec, as Spark writes it.
    pub(super) fn extension(&self) -> &'static str {
        match self.codec {
            Compression::SNAPPY => ".snappy",
            Compression::GZIP(_) => ".gz",
            Compression::BROTLI(_) => ".br",
            Compression::LZ4 => ".lz4hadoop",
            Compression::LZ4_RAW => ".lz4raw",
            Compression::ZSTD(_) => ".zstd",
            _ => "",
        }
    }

    /// Returns the maximum number of rows in a row group, if the writer's options set it.
    pub(super) fn row_group_rows(&self) -> Option<usize> {
        self.given.row_group_rows
    }

    /// Adds the encoding to the properties of a Parquet writer.
    pub(super) fn ask(&self, mut writer: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
        writer = self.bloom_filters.ask(writer.set_compression(self.codec));
        let given = &self.given;
        if let Some(bytes) = given.data_page_bytes {
            writer = writer.set_data_page_size_limit(bytes);
        }
        if let Some(rows) = given.data_page_rows {
            writer = writer.set_data_page_row_count_limit(rows);
        }
        if let Some(bytes) = given.dictionary_page_bytes {
            writer = writer.set_dictionary_page_size_limit(bytes);
        }
        if let Some(rows) = given.batch_rows {
            writer = writer.set_write_batch_size(rows);
        }
        if let Some(length) = given.statistics_length {
            writer = writer
                .set_statistics_truncate_length(Some(length))
                .set_column_index_truncate_length(Some(length));
        }
        self.leaves.iter().fold(writer, |writer, (path, leaf)| leaf.ask(writer, path))
    }
}

impl LeafFormat {
    fn ask(&self, mut writer: WriterPropertiesBuilder, path: &FilePath) -> WriterPropertiesBuilder {
        if let Some(dictionary) = self.dictionary {
            writer = writer.set_column_dictionary_enabled(path.clone(), dictionary);
        }
        if let Some(statistics) = self.statistics {
            writer = writer.set_column_statistics_enabled(path.clone(), statistics);
        }
        if let Some(encoding) = self.encoding {
            writer = writer.set_column_encoding(path.clone(), encoding);
        }
        if let Some(enabled) = self.bloom_filter {
            writer = writer.set_column_bloom_filter_enabled(path.clone(), enabled);
        }
        if self.bloom_filter == Some(true) {
            if let Some(rate) = self.rate {
                writer = writer.set_column_bloom_filter_fpp(path.clone(), rate);
            }
            if let Some(values) = self.values {
                writer = writer.set_column_bloom_filter_max_ndv(path.clone(), values);
            }
        }
        writer
    }
}

/// Returns the codec `name` with the compression level `level`.
///
/// # Errors
/// Returns `InvalidArgument` for an unknown name, and for a level that the codec does not have.
fn codec(name: &str, level: Option<i32>) -> Result<Compression> {
    let wrong = |range: &str| {
        Error::invalid_argument(format!(
            "compression_level cannot be {} for the codec {name}",
            level.unwrap_or_default()
        ))
        .with_hint(format!("pass {range}, or leave it out"))
    };
    let unsigned =
        |range: &str| level.map(|level| u32::try_from(level).map_err(|_| wrong(range))).transpose();
    let no_level = |codec| match level {
        None => Ok(codec),
        Some(_) => Err(Error::invalid_argument(format!("the codec {name} has no compression_level"))
            .with_hint("leave it out, or choose gzip, brotli or zstd")),
    };
    match name.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => no_level(Compression::UNCOMPRESSED),
        "snappy" => no_level(Compression::SNAPPY),
        "lz4" => no_level(Compression::LZ4),
        "lz4_raw" => no_level(Compression::LZ4_RAW),
        "gzip" => {
            let range = "a number from 0 to 9";
            let level = unsigned(range)?.map(GzipLevel::try_new).transpose().map_err(|_| wrong(range))?;
            Ok(Compression::GZIP(level.unwrap_or_default()))
        }
        "brotli" => {
            let range = "a number from 0 to 11";
            let level = unsigned(range)?.map(BrotliLevel::try_new).transpose().map_err(|_| wrong(range))?;
            Ok(Compression::BROTLI(level.unwrap_or_default()))
        }
        "zstd" => {
            let level = ZstdLevel::try_new(level.unwrap_or(ZSTD_LEVEL));
            Ok(Compression::ZSTD(level.map_err(|_| wrong("a number from 1 to 22"))?))
        }
        _ => Err(Error::invalid_argument(format!("compression cannot be '{name}'"))
            .with_hint(format!("pass one of {}", CODECS.join(", ")))),
    }
}

/// Returns how the leaf columns of the files are encoded.
fn leaf_formats(spec: &TableWriteSpec, given: &FileFormat) -> Result<Vec<(FilePath, LeafFormat)>> {
    let mut chosen: BTreeMap<Vec<String>, (&str, &ColumnFormat)> = BTreeMap::new();
    let names = FieldNames::new(spec.arrow().fields());
    for (name, format) in &given.columns {
        let path = ColumnPath::parse(name);
        let physical = physical_path(&names, spec.arrow().fields(), spec.physical_fields(), path.parts());
        chosen.insert(physical.ok_or_else(|| unknown(name, spec.arrow()))?, (name, format));
    }
    let with_bounds: HashSet<ColumnPath> =
        indexed(&spec.data_schema(), spec.indexed()).into_iter().map(|(path, _)| path).collect();
    let columns = ArrowSchemaConverter::new().with_coerce_types(true).convert(&spec.file_schema());
    let columns = columns.map_err(|error: ParquetError| {
        Error::new(ErrorKind::SchemaMismatch, "a column cannot be represented in Parquet").with_source(error)
    })?;
    let mut leaves = Vec::with_capacity(columns.num_columns());
    for column in columns.columns() {
        let parts = column.path().parts();
        let own = (1..=parts.len()).find_map(|count| chosen.get(parts.get(..count)?).copied());
        let has_bounds = with_bounds.contains(parts);
        leaves.push((column.path().clone(), leaf_format(column, own, &given.default_column, has_bounds)?));
    }
    Ok(leaves)
}

fn leaf_format(
    column: &ColumnDescPtr,
    own: Option<(&str, &ColumnFormat)>,
    default: &ColumnFormat,
    has_bounds: bool,
) -> Result<LeafFormat> {
    let (name, own) = own.unzip();
    let name = name.unwrap_or("default_column_properties");
    let nothing = ColumnFormat::default();
    let own = own.unwrap_or(&nothing);
    let statistics = own.statistics.as_ref().or(default.statistics.as_ref());
    let statistics = match statistics.map(|word| (word, word.to_ascii_lowercase())) {
        None => None,
        Some((_, word)) if word == "page" => Some(EnabledStatistics::Page),
        Some((_, word)) if word == "chunk" || (word == "none" && has_bounds) => {
            Some(EnabledStatistics::Chunk)
        }
        Some((_, word)) if word == "none" => Some(EnabledStatistics::None),
        Some((word, _)) => return Err(cannot("statistics_enabled", name, word, "NONE, CHUNK or PAGE")),
    };
    let encoding = match (&own.encoding, &default.encoding) {
        (Some(word), _) => {
            let encoding = encoding(word, name)?;
            if !allows(column, encoding) {
                return Err(Error::invalid_argument(format!(
                    "the column '{name}' cannot have the encoding {encoding}: its values are {} in Parquet",
                    column.physical_type()
                ))
                .with_hint("choose another encoding, or leave it out"));
            }
            Some(encoding)
        }
        (None, Some(word)) => Some(encoding(word, name)?).filter(|encoding| allows(column, *encoding)),
        (None, None) => None,
    };
    let rate = own.bloom_filter_fpp.or(default.bloom_filter_fpp);
    if let Some(rate) = rate.filter(|rate| !(*rate > 0.0 && *rate < 1.0)) {
        return Err(cannot("fpp", name, rate, "a number between 0 and 1"));
    }
    // Values of these types have several binary forms, so a Bloom filter would make readers skip files with matching
    // rows.
    let has_one_form =
        !matches!(column.physical_type(), Type::FLOAT | Type::DOUBLE | Type::BOOLEAN | Type::INT96);
    let bloom_filter = match (own.bloom_filter, default.bloom_filter) {
        (Some(true), _) if !has_one_form => {
            return Err(Error::invalid_argument(format!("the column '{name}' cannot have a Bloom filter"))
                .with_hint(
                    "choose a column of whole numbers, decimals, dates, timestamps, strings or bytes",
                ));
        }
        (Some(own), _) => Some(own),
        (None, default) => default.filter(|enabled| !enabled || has_one_form),
    };
    Ok(LeafFormat {
        dictionary: own.dictionary.or(default.dictionary),
        statistics,
        encoding,
        bloom_filter,
        rate,
        values: own.bloom_filter_ndv.or(default.bloom_filter_ndv),
    })
}

fn encoding(word: &str, name: &str) -> Result<Encoding> {
    const NAMES: &[(&str, Encoding)] = &[
        ("PLAIN", Encoding::PLAIN),
        ("RLE", Encoding::RLE),
        ("DELTA_BINARY_PACKED", Encoding::DELTA_BINARY_PACKED),
        ("DELTA_LENGTH_BYTE_ARRAY", Encoding::DELTA_LENGTH_BYTE_ARRAY),
        ("DELTA_BYTE_ARRAY", Encoding::DELTA_BYTE_ARRAY),
        ("BYTE_STREAM_SPLIT", Encoding::BYTE_STREAM_SPLIT),
    ];
    let found =
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, encoding)| *encoding);
    let known: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
    found.ok_or_else(|| cannot("encoding", name, word, &known.join(", ")))
}

/// Returns whether an encoding supports the type of a column. (Parquet's specification, "Encodings".)
fn allows(column: &ColumnDescPtr, encoding: Encoding) -> bool {
    let kind = column.physical_type();
    match encoding {
        Encoding::PLAIN => true,
        Encoding::RLE => kind == Type::BOOLEAN,
        Encoding::DELTA_BINARY_PACKED => matches!(kind, Type::INT32 | Type::INT64),
        Encoding::DELTA_LENGTH_BYTE_ARRAY => kind == Type::BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY => matches!(kind, Type::BYTE_ARRAY),
        Encoding::BYTE_STREAM_SPLIT => {
            matches!(kind, Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE)
                && column.converted_type() != ConvertedType::INTERVAL
        }
        _ => false,
    }
}

fn cannot(what: &str, column: &str, value: impl Display, expected: &str) -> Error {
    Error::invalid_argument(format!("{what} of '{column}' cannot be {value}"))
        .with_hint(format!("pass {expected}"))
}

fn unknown(name: &str, schema: &SchemaRef) -> Error {
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    Error::invalid_argument(format!("there is no column '{name}' to encode"))
        .with_hint(format!("the columns are {}", columns.join(", ")))
}

/// Returns the physical path of the column with the logical path `path`. `logical` and `physical` are the same fields
/// in the same order, with logical and physical names. `names` is the index of the names in `logical`.
fn physical_path(
    names: &FieldNames,
    logical: &Fields,
    physical: &Fields,
    path: &[String],
) -> Option<Vec<String>> {
    let (name, rest) = path.split_first()?;
    let position = names.find(name)?;
    let (logical, physical) = (logical.get(position)?, physical.get(position)?);
    let mut found = vec![physical.name().clone()];
    if !rest.is_empty() {
        match (logical.data_type(), physical.data_type()) {
            (DataType::Struct(logical), DataType::Struct(physical)) => {
                found.extend(physical_path(names.inside(position, logical)?, logical, physical, rest)?);
            }
            _ => return None,
        }
    }
    Some(found)
}
