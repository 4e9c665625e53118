//! Tests of the values of identity columns. (PROTOCOL, "Identity Columns".)

use std::collections::BTreeMap;

use super::*;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use proptest::prelude::*;

fn schema(metadata: &str) -> StructType {
    let field = format!(r#"{{"name":"id","type":"long","nullable":true,"metadata":{metadata}}}"#);
    StructType::from_json(&format!(r#"{{"type":"struct","fields":[{field}]}}"#)).unwrap()
}

fn identity(start: i64, step: i64, mark: Option<i64>) -> IdentityColumn {
    let mark = mark.map_or(String::new(), |mark| format!(r#","{MARK}":{mark}"#));
    let schema = schema(&format!(r#"{{"{START}":{start},"{STEP}":{step}{mark}}}"#));
    IdentityColumn::of(&schema.fields()[0]).unwrap().unwrap()
}

fn values(identities: &Identities, rows: usize) -> Vec<i64> {
    identities.take("id", rows).unwrap().as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn values_are_beyond_the_mark_and_whole_steps_from_the_start() {
    for (start, step, mark, expected) in [
        (1, 1, None, [1, 2, 3]),
        (1, 1, Some(7), [8, 9, 10]),
        (5, 10, Some(15), [25, 35, 45]),
        (5, 10, Some(16), [25, 35, 45]),
        (5, 10, Some(24), [25, 35, 45]),
        (5, 10, Some(-100), [5, 15, 25]),
        (0, -2, None, [0, -2, -4]),
        (0, -2, Some(-4), [-6, -8, -10]),
        (0, -2, Some(-5), [-6, -8, -10]),
        (0, -2, Some(9), [0, -2, -4]),
        (-3, -5, Some(-3), [-8, -13, -18]),
    ] {
        let identities = Identities::new(vec![identity(start, step, mark)]);
        // Clones of the identity columns take values from the same sequence.
        let first = values(&identities.clone(), 1);
        let rest = values(&identities, 2);
        assert_eq!([first, rest].concat(), expected, "{start} {step} {mark:?}");
    }
}

/// Compares the first value with the result of a search through all numbers.
#[test]
fn the_first_value_is_the_nearest_one_beyond_the_mark() {
    for start in -4..5_i64 {
        for step in [-3, -2, -1, 1, 2, 3_i64] {
            for mark in -9..10_i64 {
                let mut values = (0..).map(|k| start + k * step);
                let expected = values.find(|value| (value - mark) * step.signum() > 0).unwrap();
                let found = identity(start, step, Some(mark)).next();
                assert_eq!(found, i128::from(expected), "{start} {step} {mark}");
            }
        }
    }
}

#[test]
fn the_files_of_an_engine_determine_the_new_mark() {
    for (start, step, mark, first, written, expected) in [
        (1, 1, Some(7), 8, (9, 30), 30),
        (5, 10, None, 5, (5, 105), 105),
        (0, -2, Some(-5), -6, (-20, -6), -20),
    ] {
        let identities = Identities::new(vec![identity(start, step, mark)]);
        let values = identities.for_engine(&["name".to_owned()]).unwrap();
        assert_eq!(values, [IdentityValues { column: "id".to_owned(), first, step }]);
        assert_eq!(identities.by_engine(), BTreeSet::from(["id".to_owned()]));
        let schema = schema(&format!(r#"{{"{START}":{start},"{STEP}":{step}}}"#));
        assert_eq!(identities.marked(&schema).unwrap(), None);
        identities.note("id", written.0, written.1).unwrap();
        // Reports a second file, whose values are closer to the start.
        identities.note("id", first, first).unwrap();
        let marked = identities.marked(&schema).unwrap().unwrap();
        assert_eq!(marked.fields()[0].metadata.get(MARK), Some(expected.into()));
        // Reports a value that was used before, and a value that is not a whole number of steps away.
        let between = (step.abs() > 1).then_some((first, first + 1000 * step + 1));
        for (least, greatest) in [(first - step, first + step)].into_iter().chain(between) {
            let error = identities.note("id", least.min(greatest), least.max(greatest)).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::CorruptData, "{least} {greatest}");
        }
    }
    let given = Identities::new(vec![identity(1, 1, None)]).for_engine(&["ID".to_owned()]).unwrap_err();
    assert!(given.to_string().contains("always generated"), "{given}");
    let full = Identities::new(vec![identity(1, 1, Some(i64::MAX))]).for_engine(&[]).unwrap_err();
    assert!(full.to_string().contains("no further values"), "{full}");
}

#[test]
fn an_overflow_is_refused() {
    let identities = Identities::new(vec![identity(1, 1, Some(i64::MAX - 1))]);
    assert_eq!(values(&identities, 1), [i64::MAX]);
    let error = identities.take("id", 1).unwrap_err().to_string();
    assert!(error.contains("'id' has no further values"), "{error}");
    let wide = identity(i64::MIN, i64::MAX, Some(i64::MAX));
    assert!(Identities::new(vec![wide]).take("id", 1).is_err());
}

#[test]
fn the_mark_moves_to_the_last_value_and_other_metadata_is_kept() {
    let schema = schema(&format!(r#"{{"comment":"c","{START}":1,"{STEP}":2,"{EXPLICIT}":true}}"#));
    let identities = Identities::new(vec![IdentityColumn::of(&schema.fields()[0]).unwrap().unwrap()]);
    assert_eq!(identities.marked(&schema).unwrap(), None);
    values(&identities, 3);
    let marked = identities.marked(&schema).unwrap().unwrap();
    assert_eq!(marked.fields()[0].metadata.get(MARK), Some(5.into()));
    assert_eq!(marked.fields()[0].metadata.get("comment"), Some("c".into()));
    assert!(!identities.generates("id", true).unwrap() && identities.generates("id", false).unwrap());
}

#[test]
fn metadata_with_an_invalid_form_is_corrupt() {
    for metadata in [
        format!(r#"{{"{START}":1}}"#),
        format!(r#"{{"{START}":1,"{STEP}":0}}"#),
        format!(r#"{{"{STEP}":1}}"#),
        format!(r#"{{"{START}":"1","{STEP}":1}}"#),
    ] {
        let error = IdentityColumn::of(&schema(&metadata).fields()[0]).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::CorruptLog, "{metadata}");
    }
}

/// Runs a worker that counts in its own lane, and returns its values and its report.
fn worker(of_table: &Identities, number: u32, of: u32, batches: &[usize]) -> (Vec<i64>, Counted) {
    let writer = of_table.in_lane(Some(Lane::new(number, of).unwrap()));
    let given: Vec<i64> = batches.iter().flat_map(|rows| values(&writer, *rows)).collect();
    (given, writer.counted().unwrap())
}

proptest! {
    /// No two rows of a table get the same value, regardless of the order in which the workers run: the values of all
    /// lanes differ and lie beyond the high water mark, and the new mark is the value that is farthest from the
    /// start.
    #[test]
    fn lanes_have_no_value_in_common(
        start in -100_i64..100,
        step in prop_oneof![-7_i64..0, 1_i64..8],
        mark in proptest::option::of(-100_i64..100),
        workers in proptest::collection::vec(proptest::collection::vec(1_usize..5, 1..4), 1..6),
        spare in 0_u32..4,
    ) {
        let table = Identities::new(vec![identity(start, step, mark)]);
        let of = workers.len() as u32 + spare;
        let mut all = Vec::new();
        for (number, batches) in (0..).zip(&workers) {
            let (given, counted) = worker(&table, number, of, batches);
            // A worker that runs again assigns the same values as before.
            prop_assert_eq!(worker(&table, number, of, batches), (given.clone(), counted.clone()));
            table.check(Some(&counted), given.len() as u64).unwrap();
            let (first, last) = counted.values["id"];
            prop_assert_eq!((given.first(), given.last()), (Some(&first), Some(&last)));
            table.note("id", first.min(last), first.max(last)).unwrap();
            all.extend(given);
        }
        prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        let is_beyond = |value: &i64| mark.is_none_or(|mark| (*value - mark) * step.signum() > 0);
        prop_assert!(all.iter().all(|value| is_beyond(value) && (value - start) % step == 0));
        let farthest = all.iter().max_by_key(|value| **value * step.signum()).copied();
        let marked = table.marked(&schema(&format!(r#"{{"{START}":{start},"{STEP}":{step}}}"#))).unwrap().unwrap();
        prop_assert_eq!(marked.fields()[0].metadata.get(MARK), farthest.map(Value::from));
    }
}

#[test]
fn parallel_writers_only_assign_values_of_their_lane() {
    let table = Identities::new(vec![identity(1, 1, None)]);
    let error = table.in_lane(None).take("id", 0).unwrap_err();
    assert!(error.to_string().contains("'id'") && error.to_string().contains("tasks(count)"), "{error}");
    assert_eq!(table.in_lane(None).counted(), None);
    let idle = table.in_lane(Some(Lane::new(0, 2).unwrap()));
    values(&idle, 0);
    assert_eq!(idle.counted(), None);
    for (number, of) in [(2, 2), (0, 0)] {
        assert!(Lane::new(number, of).unwrap_err().to_string().contains("no task"));
    }
    let full = Identities::new(vec![identity(1, 1, Some(i64::MAX - 1))]);
    assert_eq!(values(&full.in_lane(Some(Lane::new(0, 2).unwrap())), 1), [i64::MAX]);
    assert!(full.in_lane(Some(Lane::new(1, 2).unwrap())).take("id", 1).is_err());
}

#[test]
fn values_of_another_lane_are_refused() {
    let lane = |number: u32, of: u32| -> Lane {
        serde_json::from_value(serde_json::json!({"number": number, "of": of})).unwrap()
    };
    let table = Identities::new(vec![identity(10, 10, Some(50))]);
    let check = |column: &str, lane: Lane, first: i64, last: i64, rows: u64| {
        let values = BTreeMap::from([(column.to_owned(), (first, last))]);
        table.check(Some(&Counted { lane, values }), rows).map_err(|error| error.to_string())
    };
    // Lane 1 of 3 begins at 70: 70, 100, 130.
    check("id", lane(1, 3), 70, 130, 3).unwrap();
    // The writer has skipped values, because a batch was refused.
    check("id", lane(1, 3), 70, 130, 2).unwrap();
    for (column, lane, first, last, rows, expected) in [
        ("id", lane(1, 3), 70, 130, 4, "in 4 rows"),
        ("id", lane(1, 3), 70, 110, 1, "they begin at 70"),
        ("id", lane(1, 3), 70, 40, 1, "they begin at 70"),
        ("id", lane(0, 3), 70, 130, 3, "they begin at 60"),
        // The mark has moved since the worker began.
        ("id", lane(1, 3), 40, 130, 3, "they begin at 70"),
        ("id", lane(3, 3), 90, 90, 1, "the task 3 of 3"),
        ("id", lane(0, 0), 60, 60, 1, "the task 0 of 0"),
        ("id", lane(1, 3), i64::MIN, i64::MAX, 1, "they begin at 70"),
        ("other", lane(1, 3), 70, 130, 3, "does not say which values"),
        ("other", lane(1, 3), 70, 130, 0, "'other', which the table does not have"),
    ] {
        let error = check(column, lane, first, last, rows).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert!(table.check(None, 0).is_ok());
    assert!(table.check(None, 1).unwrap_err().to_string().contains("does not say which values"));
}
