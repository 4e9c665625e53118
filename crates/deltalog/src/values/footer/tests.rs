use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::{ColumnChunkMetaDataBuilder, ParquetMetaDataWriter};

use super::*;
use crate::limits::PARQUET_LEVELS;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 & 127 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn int(value: i64) -> Vec<u8> {
    varint((value << 1 ^ value >> 63) as u64)
}

/// Returns a group with `children`, or a column of 64-bit integers.
fn element(children: Option<i64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // type
    bytes.extend(if children.is_none() { vec![0x15, 4, 0x25, 2] } else { vec![0x35, 2] });
    // name
    bytes.extend([0x18, 1, b'n']);
    // num_children
    bytes.extend(children.into_iter().flat_map(|children| [vec![0x15], int(children)].concat()));
    bytes.push(0);
    bytes
}

fn list(length: u64) -> Vec<u8> {
    [vec![0xfc], varint(length)].concat()
}

/// Returns a file whose footer has the schema `elements`. `groups` is the encoded list of row groups, which may be
/// invalid.
fn file(elements: &[Vec<u8>], groups: &[u8]) -> Bytes {
    let version = [vec![0x15], int(1)].concat();
    let schema = [vec![0x19], list(elements.len() as u64), elements.concat()].concat();
    let rows = [vec![0x16], int(0), vec![0x19], groups.to_vec(), vec![0]].concat();
    of_footer(&[version, schema, rows].concat())
}

fn of_footer(footer: &[u8]) -> Bytes {
    let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [b"PAR1".as_slice(), footer, &length, b"PAR1"].concat().into()
}

fn nested(levels: usize) -> Bytes {
    let groups = std::iter::repeat_n(element(Some(1)), levels);
    file(&groups.chain([element(None)]).collect::<Vec<_>>(), &[0x0c])
}

fn refused(bytes: &Bytes) -> String {
    decode(bytes).unwrap_err().to_string()
}

#[test]
fn the_nesting_depth_is_checked_before_the_schema_is_decoded() {
    let footer = decode(&nested(PARQUET_LEVELS)).unwrap();
    assert_eq!(footer.file_metadata().schema_descr().num_columns(), 1);
    for levels in [PARQUET_LEVELS + 1, 1_500, 10_000, 1_000_000] {
        let error = refused(&nested(levels));
        assert!(error.contains("levels") && error.len() < 200, "{error}");
    }
}

#[test]
fn groups_cannot_claim_more_children_than_there_are_elements() {
    for children in [-1, 2, 1 << 20, (1 << 31) - 1] {
        let error = refused(&file(&[element(Some(children)), element(None)], &[0x0c]));
        assert!(error.contains("children"), "{error}");
    }
    // Each of many groups claims all elements that follow as its children.
    let greedy: Vec<_> = (1..=100).rev().map(|left| element(Some(left))).chain([element(None)]).collect();
    assert!(refused(&file(&greedy, &[0x0c])).contains("children"));
}

#[test]
fn lists_cannot_claim_to_be_longer_than_the_footer() {
    for length in [1, 1 << 31, u64::MAX] {
        let error = refused(&of_footer(&[vec![0x15, 2, 0x19], list(length)].concat()));
        assert!(error.contains("elements") || error.contains("cannot be decoded"), "{error}");
        let groups = list(length.max(1 << 20));
        assert!(decode(&file(&[element(Some(1)), element(None)], &groups)).is_err());
    }
    let mut groups = list(1 << 20);
    groups.resize(2 << 20, 0);
    assert!(refused(&file(&[element(Some(1)), element(None)], &groups)).contains("row groups"));
}

#[test]
fn fields_that_two_decoders_could_read_differently_are_refused() {
    let schema = [vec![0x19], list(2), element(Some(1)), element(None)].concat();
    for (what, footer) in [
        // The version has the type of a string. Decoders that check types see a string, others see a number.
        ("a version of another type", [vec![0x18, 0], schema.clone()].concat()),
        ("row groups before the schema", vec![0x49, 0x0c]),
        ("texts before the schema", [vec![0x68, 1, b'x', 0x09], int(2)].concat()),
        // `num_children` is a string, after the name.
        ("children of another type", [vec![0x19], list(1), vec![0x48, 1, b'n', 0x18, 1, b'1', 0]].concat()),
    ] {
        let error = refused(&of_footer(&footer));
        assert!(error.contains("field"), "{what}: {error}");
    }
}

/// The decoder assumes that offsets and sizes are not negative, and panics otherwise.
#[test]
fn negative_offsets_and_sizes_of_columns_are_refused() {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..9));
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let footer = decode(&Bytes::from(file)).unwrap();
    let changes: [fn(ColumnChunkMetaDataBuilder) -> ColumnChunkMetaDataBuilder; 4] = [
        |chunk| chunk,
        |chunk| chunk.set_dictionary_page_offset(Some(-4)),
        |chunk| chunk.set_data_page_offset(-4),
        |chunk| chunk.set_total_compressed_size(-1),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let group = footer.row_group(0);
        let chunk = change(group.column(0).clone().into_builder()).build().unwrap();
        let group = group.clone().into_builder().set_column_metadata(vec![chunk]).build().unwrap();
        let changed = ParquetMetaData::new(footer.file_metadata().clone(), vec![group]);
        let mut written = Vec::new();
        ParquetMetaDataWriter::new(&mut written, &changed).finish().unwrap();
        let found = decode(&Bytes::from(written)).map(|_| ()).map_err(|error| error.to_string());
        match number {
            0 => found.unwrap(),
            _ => assert!(found.unwrap_err().contains("column 'id' has a negative offset")),
        }
    }
}
