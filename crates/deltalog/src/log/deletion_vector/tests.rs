//! Tests with the protocol's examples, with deletion vectors as other writers serialize them, and with malformed
//! vectors.

use std::fs;

use proptest::prelude::*;
use roaring::{RoaringBitmap, RoaringTreemap};
use url::Url;

use super::place::VectorPlace;
use super::testing::vector_file;
use super::{DeletionVector, DeletionVectors, blob};
use crate::error::{Error, ErrorKind};
use crate::protocol::{DeletionVectorDescriptor, DeletionVectorStorage, LogPath, PathResolver};
use crate::storage::Storage;

fn descriptor(json: &str) -> DeletionVectorDescriptor {
    serde_json::from_str(json).unwrap()
}

fn resolver(table: &str) -> PathResolver {
    PathResolver::new(&Url::parse(table).unwrap()).unwrap()
}

/// Serializes a vector with `buckets`, in the given order and under the given keys.
fn serialized(magic: u32, buckets: &[(u32, RoaringBitmap)]) -> Vec<u8> {
    let mut bytes = magic.to_le_bytes().to_vec();
    bytes.extend((buckets.len() as u64).to_le_bytes());
    for (key, bitmap) in buckets {
        bytes.extend(key.to_le_bytes());
        bitmap.serialize_into(&mut bytes).unwrap();
    }
    bytes
}

const MAGIC: u32 = 1_681_511_377;

fn vector_of(rows: &RoaringTreemap) -> Vec<u8> {
    serialized(MAGIC, &rows.bitmaps().map(|(key, bitmap)| (key, bitmap.clone())).collect::<Vec<_>>())
}

/// PROTOCOL, "JSON Example 1 — On Disk with Relative Path (with Random Prefix)".
const RELATIVE: &str = r#"{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,
    "sizeInBytes":40,"cardinality":6}"#;
/// PROTOCOL, "JSON Example 2 — On Disk with Absolute Path".
const ABSOLUTE: &str = r#"{"storageType":"p",
    "pathOrInlineDv":"s3://mytable/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin","offset":4,
    "sizeInBytes":40,"cardinality":6}"#;
/// PROTOCOL, "JSON Example 3 — Inline".
const INLINE: &str = r#"{"storageType":"i","pathOrInlineDv":"wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
    "sizeInBytes":40,"cardinality":6}"#;

#[test]
fn examples_of_paths_in_the_protocol() {
    let relative =
        |path: &str| VectorPlace::File { path: LogPath::Relative(path.to_owned()), offset: 4, size: 40 };
    let table = resolver("s3://mytable/");
    assert_eq!(
        VectorPlace::of(&descriptor(RELATIVE), &table).unwrap(),
        relative("ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
    );
    assert_eq!(
        VectorPlace::of(&descriptor(ABSOLUTE), &table).unwrap(),
        relative("deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
    );
    let bare =
        DeletionVectorDescriptor { path_or_inline_dv: "^-aqEH.-t@S}K{vb[*k^".into(), ..descriptor(RELATIVE) };
    assert_eq!(
        VectorPlace::of(&bare, &table).unwrap(),
        relative("deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin")
    );
}

#[test]
fn inline_example_of_the_protocol() {
    let vectors = DeletionVectors::new(Storage::open("/nowhere", []).unwrap(), resolver("file:///nowhere"));
    let vector = vectors.read(&descriptor(INLINE), Some(30)).unwrap();
    assert_eq!(vector.rows().collect::<Vec<_>>(), [3, 4, 7, 11, 18, 29]);
    assert_eq!(vector.ranges(4..30).collect::<Vec<_>>(), [4..=4, 7..=7, 11..=11, 18..=18, 29..=29]);
    assert!(
        vector.contains(18) && !vector.contains(19) && vector.cardinality() == 6 && vector.count(4..18) == 3
    );
    let error = vectors.read(&descriptor(INLINE), Some(29)).unwrap_err();
    assert!(error.kind() == ErrorKind::CorruptData && error.to_string().contains("row 29"), "{error}");
}

/// The Rust crate `z85`, which delta-kernel-rs uses, pads the last block with one `#` per missing byte. Other writers
/// append zeros.
#[test]
fn inline_vectors_with_either_padding_are_read() {
    let vectors = DeletionVectors::new(Storage::open("/nowhere", []).unwrap(), resolver("file:///nowhere"));
    let rows = RoaringTreemap::from_iter([1, 3]);
    let bytes = vector_of(&rows.iter().chain([700]).collect());
    assert_eq!((bytes.len(), bytes.last_chunk()), (38, Some(&[188, 2])));
    let padded = [bytes.as_slice(), &[0, 0]].concat();
    let whole = super::z85::encode(&padded);
    let start = whole.get(..whole.len() - 5).unwrap();
    for text in [whole.clone(), format!("{start}##6Uk")] {
        let descriptor = DeletionVectorDescriptor {
            storage_type: DeletionVectorStorage::Inline,
            path_or_inline_dv: text,
            offset: None,
            size_in_bytes: 38,
            cardinality: 3,
        };
        let vector = vectors.read(&descriptor, None).unwrap();
        assert_eq!(vector.rows().collect::<Vec<_>>(), [1, 3, 700]);
    }
}

/// PROTOCOL, "Deletion Vector Descriptor Schema", and for paths "Add File and Remove File".
#[test]
fn invalid_descriptors_are_refused() {
    let refused = |change: &dyn Fn(&mut DeletionVectorDescriptor), of: &str| -> Error {
        let mut descriptor = descriptor(of);
        change(&mut descriptor);
        VectorPlace::of(&descriptor, &resolver("s3://mytable/")).unwrap_err()
    };
    for of in [RELATIVE, ABSOLUTE, INLINE] {
        assert_eq!(refused(&|d| d.size_in_bytes = -1, of).kind(), ErrorKind::CorruptLog);
    }
    for of in [RELATIVE, ABSOLUTE] {
        assert_eq!(refused(&|d| d.offset = None, of).kind(), ErrorKind::CorruptLog);
        assert_eq!(refused(&|d| d.offset = Some(-1), of).kind(), ErrorKind::CorruptLog);
        assert_eq!(refused(&|d| d.offset = Some(0), of).kind(), ErrorKind::CorruptLog);
    }
    assert_eq!(refused(&|d| d.offset = Some(1), INLINE).kind(), ErrorKind::CorruptLog);
    for size in [36, 41, 44, i32::MAX] {
        assert_eq!(refused(&|d| d.size_in_bytes = size, INLINE).kind(), ErrorKind::CorruptLog);
    }
    for text in [
        "",
        "short",
        "../^-aqEH.-t@S}K{vb[*k^",
        "a/../../b^-aqEH.-t@S}K{vb[*k^",
        "é-aqEH.-t@S}K{vb[*k^",
        "^-aqEH.-t@S}K{vb[*k\"",
    ] {
        assert_eq!(
            refused(&|d| d.path_or_inline_dv = text.into(), RELATIVE).kind(),
            ErrorKind::CorruptLog,
            "{text}"
        );
    }
    assert_eq!(
        refused(&|d| d.path_or_inline_dv = "s3://other/dv.bin".into(), ABSOLUTE).kind(),
        ErrorKind::Unsupported
    );
    assert_eq!(
        refused(&|d| d.path_or_inline_dv = "file:///etc/passwd".into(), ABSOLUTE).kind(),
        ErrorKind::Unsupported
    );
    assert_eq!(
        refused(&|d| d.path_or_inline_dv = "a/%2E%2E/%2e%2e/b".into(), ABSOLUTE).kind(),
        ErrorKind::CorruptLog
    );
    assert!(serde_json::from_str::<DeletionVectorDescriptor>(&RELATIVE.replace("\"u\"", "\"x\"")).is_err());
    assert_eq!(DeletionVectorStorage::parse("x"), None);
    assert_eq!(DeletionVectorStorage::parse("ui"), None);
}

/// The prefix in a descriptor is plain text and not part of a URI, so percent signs in it are not escapes.
#[test]
fn a_prefix_is_not_decoded() {
    let prefixed = DeletionVectorDescriptor {
        path_or_inline_dv: "a%20b^-aqEH.-t@S}K{vb[*k^".into(),
        ..descriptor(RELATIVE)
    };
    let VectorPlace::File { path: LogPath::Relative(path), .. } =
        VectorPlace::of(&prefixed, &resolver("file:///t")).unwrap()
    else {
        panic!("not a relative file")
    };
    assert_eq!(path, "a%20b/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
}

/// PROTOCOL, "Deletion Vector Format".
#[test]
fn malformed_vectors_are_refused() {
    let (low, high): (RoaringBitmap, RoaringBitmap) = ((5..10).collect(), [7].into_iter().collect());
    let rows = |bytes: &[u8], cardinality| blob::decode(bytes, cardinality).map_err(|error| error.kind());
    let good = serialized(MAGIC, &[(0, low.clone()), (3, high.clone())]);
    assert_eq!(rows(&good, 6).unwrap().iter().collect::<Vec<_>>(), [5, 6, 7, 8, 9, (3 << 32) + 7]);
    // Some writers write a bucket for each key up to the last.
    let padded =
        serialized(MAGIC, &[(0, RoaringBitmap::new()), (1, high.clone()), (2, RoaringBitmap::new())]);
    assert_eq!(rows(&padded, 1).unwrap().iter().collect::<Vec<_>>(), [(1 << 32) + 7]);
    assert!(rows(&serialized(MAGIC, &[]), 0).unwrap().is_empty());

    for cardinality in [-1, 0, 5, 7, i64::MAX, i64::MIN] {
        assert_eq!(rows(&good, cardinality), Err(ErrorKind::CorruptData));
    }
    for magic in [0, MAGIC - 2, MAGIC + 1, MAGIC.swap_bytes()] {
        assert_eq!(rows(&serialized(magic, &[]), 0), Err(ErrorKind::CorruptData));
    }
    for keys in [[3, 0], [2, 2], [0, 1 << 31]] {
        let bytes = serialized(MAGIC, &[(keys[0], low.clone()), (keys[1], high.clone())]);
        assert_eq!(rows(&bytes, 6), Err(ErrorKind::CorruptData), "{keys:?}");
    }
    for length in 0..good.len() {
        assert_eq!(rows(&good[..length], 6), Err(ErrorKind::CorruptData), "{length}");
    }
    assert_eq!(rows(&[good.as_slice(), &[0]].concat(), 6), Err(ErrorKind::CorruptData));
    // The header claims more buckets than fit in memory.
    assert_eq!(
        rows(&[&MAGIC.to_le_bytes()[..], &u64::MAX.to_le_bytes()].concat(), 0),
        Err(ErrorKind::CorruptData)
    );
}

/// Serializes `rows` in the native format, as in the protocol's example of an inline vector.
fn native(rows: &RoaringTreemap, number: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let buckets = rows.bitmaps().next_back().map_or(0, |(key, _)| key + 1);
    let mut bytes = [number(MAGIC - 1), number(buckets)].concat();
    for key in 0..buckets {
        let bitmap = rows
            .bitmaps()
            .find(|(found, _)| *found == key)
            .map(|(_, bitmap)| bitmap.clone())
            .unwrap_or_default();
        bytes.extend(number(bitmap.serialized_size() as u32));
        bitmap.serialize_into(&mut bytes).unwrap();
    }
    bytes
}

#[test]
fn the_native_format_is_read_in_either_byte_order() {
    let rows = RoaringTreemap::from_iter([1, 2, 70_000, (2 << 32) + 9]);
    for number in [u32::to_le_bytes, u32::to_be_bytes] {
        let bytes = native(&rows, number);
        assert_eq!(blob::decode(&bytes, 4).unwrap(), rows);
        for length in 0..bytes.len() {
            assert!(blob::decode(&bytes[..length], 4).is_err());
        }
        assert!(blob::decode(&[bytes.as_slice(), &[0]].concat(), 4).is_err());
    }
    let inline = super::z85::decode(&descriptor(INLINE).path_or_inline_dv).unwrap();
    assert_eq!(inline, native(&RoaringTreemap::from_iter([3, 4, 7, 11, 18, 29]), u32::to_be_bytes));
}

fn rows() -> impl Strategy<Value = RoaringTreemap> {
    let near = prop_oneof![
        0..200u64,
        65_500..65_600u64,
        0..500_000u64,
        (1u64 << 32) - 5..(1u64 << 32) + 5,
        0..1u64 << 40
    ];
    prop::collection::vec((near, prop_oneof![Just(1u64), 1..10_000u64]), 0..20).prop_map(|ranges| {
        let mut rows = RoaringTreemap::new();
        for (start, length) in ranges {
            rows.insert_range(start..start + length);
        }
        rows.optimize();
        rows
    })
}

proptest! {
    #[test]
    fn decode_undoes_encode(rows in rows()) {
        prop_assert_eq!(blob::decode(&vector_of(&rows), rows.len() as i64).unwrap(), rows);
    }

    #[test]
    fn ranges_and_count_cover_the_deleted_rows_of_an_interval(
        rows in rows(), a in 0..1u64 << 33, b in 0..1u64 << 33
    ) {
        let between = a.min(b)..a.max(b);
        let vector = DeletionVector::from(rows.clone());
        let mut found = RoaringTreemap::new();
        let mut last = None;
        for range in vector.ranges(between.clone()) {
            prop_assert!(range.start() <= range.end() && last < Some(*range.start()));
            last = Some(*range.end());
            found.insert_range(range);
        }
        let mut expected = rows;
        expected.remove_range(between.end..);
        expected.remove_range(..between.start);
        prop_assert_eq!(vector.count(between.clone()), expected.len());
        prop_assert_eq!(vector.rows_within(between).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        prop_assert_eq!(found, expected);
    }

    /// Reading a descriptor never panics and never leads to a file outside the table's directory.
    #[test]
    fn a_descriptor_never_leads_outside_the_table(
        storage in prop::sample::select(vec!["u", "p", "i"]),
        text in prop_oneof![any::<String>(), "[0-9a-zA-Z./%:-]{0,44}"],
        offset: Option<i32>,
        size: i32,
        cardinality: i64,
        bytes in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let any = DeletionVectorDescriptor {
            storage_type: DeletionVectorStorage::parse(storage).unwrap(),
            path_or_inline_dv: text,
            offset,
            size_in_bytes: size,
            cardinality,
        };
        match VectorPlace::of(&any, &resolver("s3://mytable/")) {
            Ok(VectorPlace::File { path, offset: at, size: length }) => {
                let LogPath::Relative(path) = path else { panic!("outside the table") };
                prop_assert!(!path.split('/').any(|segment| segment == ".."));
                prop_assert!(i64::try_from(at).ok() == offset.map(i64::from) && length == size as usize);
            }
            Ok(VectorPlace::Inline(found)) => prop_assert_eq!(found.len(), size as usize),
            Err(_) => {}
        }
        let _ = blob::decode(&bytes, cardinality);
        let _ = blob::decode(&[&MAGIC.to_le_bytes()[..], &bytes].concat(), cardinality);
    }

    #[test]
    fn damaged_bytes_are_an_error_or_a_vector_of_the_same_cardinality(
        rows in rows(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = vector_of(&rows);
        for (at, byte) in damage {
            *at.get_mut(&mut bytes) = byte;
        }
        if let Ok(decoded) = blob::decode(&bytes, rows.len() as i64) {
            prop_assert_eq!(decoded.len(), rows.len());
        }
    }
}

/// PROTOCOL, "Deletion Vector File Storage Format".
#[test]
fn files_with_several_vectors_are_read_and_any_damage_is_detected() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path().to_str().unwrap(), []).unwrap();
    let paths = PathResolver::new(storage.root()).unwrap();
    let expected: Vec<RoaringTreemap> =
        [vec![1, 2, 3], vec![], vec![0, 1 << 33]].map(RoaringTreemap::from_iter).to_vec();
    let blobs: Vec<_> = expected.iter().map(vector_of).collect();
    let (bytes, offsets) = vector_file(&blobs);
    let name = directory.path().join("ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
    fs::create_dir(directory.path().join("ab")).unwrap();
    fs::write(&name, &bytes).unwrap();
    let descriptors: Vec<_> = (0..3)
        .map(|index| DeletionVectorDescriptor {
            offset: Some(offsets[index]),
            size_in_bytes: blobs[index].len() as i32,
            cardinality: expected[index].len() as i64,
            ..descriptor(RELATIVE)
        })
        .collect();
    let vectors = DeletionVectors::new(storage.clone(), paths.clone());
    for index in [2, 0, 1, 0] {
        assert_eq!(*vectors.read(&descriptors[index], None).unwrap().bitmap(), expected[index]);
    }
    let refused = |descriptor: &DeletionVectorDescriptor| {
        let error = DeletionVectors::new(storage.clone(), paths.clone()).read(descriptor, None).unwrap_err();
        assert!(error.to_string().contains("deletion_vector_d2c639aa") && error.hint().is_some(), "{error}");
        error.kind()
    };
    let whole = DeletionVectorDescriptor { size_in_bytes: i32::MAX, ..descriptors[0].clone() };
    for wrong in [
        DeletionVectorDescriptor { offset: Some(0), ..descriptors[0].clone() },
        DeletionVectorDescriptor { offset: Some(2), ..descriptors[0].clone() },
        DeletionVectorDescriptor { offset: Some(i32::MAX), ..descriptors[0].clone() },
        DeletionVectorDescriptor {
            size_in_bytes: descriptors[0].size_in_bytes - 1,
            ..descriptors[0].clone()
        },
        DeletionVectorDescriptor { size_in_bytes: 0, ..descriptors[0].clone() },
        DeletionVectorDescriptor { cardinality: 2, ..descriptors[0].clone() },
        whole,
    ] {
        assert!(matches!(refused(&wrong), ErrorKind::CorruptData | ErrorKind::CorruptLog), "{wrong:?}");
    }
    for at in 1..offsets[1] as usize {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&name, damaged).unwrap();
        assert_eq!(refused(&descriptors[0]), ErrorKind::CorruptData, "byte {at}");
    }
    for length in 0..offsets[1] as usize {
        fs::write(&name, &bytes[..length]).unwrap();
        assert_eq!(refused(&descriptors[0]), ErrorKind::CorruptData, "{length} bytes");
    }
    fs::remove_file(&name).unwrap();
    assert_eq!(refused(&descriptors[0]), ErrorKind::FileNotFound);
}

/// A container of a bitmap has 65,536 rows. All of them may be one run.
#[test]
fn rows_of_runs_that_fill_containers_are_deleted() {
    let runs = [0..20, 65_536..262_144, 300_000..327_680, 327_681..327_700];
    let mut rows: RoaringTreemap = runs.into_iter().flatten().collect();
    assert!(rows.optimize(), "the rows are stored as runs");
    for rows in [blob::decode(&vector_of(&rows), rows.len() as i64).unwrap(), rows] {
        let vector = DeletionVector::from(rows.clone());
        assert!(vector.rows_within(0..400_000).eq(&rows));
        assert!(vector.rows_within(65_536..131_072).eq(65_536..131_072));
        assert!(vector.ranges(0..400_000).flatten().eq(&rows));
    }
}
