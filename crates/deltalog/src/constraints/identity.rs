//! Columns whose values the writer counts up. (PROTOCOL, "Identity Columns".)
//!
//! - A value is `start + k * step` and lies beyond the high water mark, in the direction of the step.
//! - The mark is part of the metadata. It moves in the commit that adds the rows, and two commits that move it
//!   conflict. So no value exists twice, and a write that fails leaves at most a gap.
//! - Values that a user provides move no mark, as in the JVM connector.
//! - An engine counts in its own tasks: it asks for the first value and the step, and gives each row the value of its
//!   own number of steps. The mark is then the farthest value in its files.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, Int64Array};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::protocol::schema::column_rules::{
    IDENTITY, IDENTITY_EXPLICIT as EXPLICIT, IDENTITY_MARK as MARK, IDENTITY_START as START,
    IDENTITY_STEP as STEP,
};
use crate::protocol::{DataType, PrimitiveType, StructField, StructType};

/// An identity column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdentityColumn {
    column: String,
    start: i64,
    step: i64,
    /// The highest value generated so far, or with a negative step the lowest.
    mark: Option<i64>,
    accepts_values: bool,
}

impl IdentityColumn {
    /// Returns the identity column that `field` is, if it is one.
    ///
    /// # Errors
    /// CorruptLog if the column is not of type `long`, or if its metadata are not of the protocol's form.
    pub(super) fn of(field: &StructField) -> Result<Option<Self>> {
        let entries = field.metadata.entries();
        if !entries.keys().any(|key| key.starts_with(IDENTITY)) {
            return Ok(None);
        }
        let corrupt = |what: &str| Error::corrupt_log(format!("the identity column {} {what}", field.name));
        if field.data_type != DataType::Primitive(PrimitiveType::Long) {
            return Err(corrupt("is not of type long"));
        }
        let number = |key: &str| {
            let value = entries.get(key);
            let number = |value: &Value| {
                value.as_i64().ok_or_else(|| corrupt(&format!("has the value {value} in '{key}'")))
            };
            value.map(number).transpose()
        };
        let step = number(STEP)?.filter(|step| *step != 0).ok_or_else(|| corrupt("has no step"))?;
        Ok(Some(Self {
            column: field.name.clone(),
            start: number(START)?.ok_or_else(|| corrupt("has no start"))?,
            step,
            mark: number(MARK)?,
            accepts_values: entries.get(EXPLICIT).and_then(Value::as_bool).unwrap_or(false),
        }))
    }

    /// Returns the name of the column.
    fn column(&self) -> &str {
        &self.column
    }

    /// Returns the first value beyond the mark.
    fn next(&self) -> i128 {
        let (start, step) = (i128::from(self.start), i128::from(self.step));
        let Some(mark) = self.mark.map(i128::from) else { return start };
        // The number of steps to the mark, rounded down: its sign is that of the direction.
        let passed = (mark - start).div_euclid(step.abs()) * step.signum();
        let steps = match step.signum() {
            1 => passed + 1,
            // `div_euclid` has rounded away from the start.
            _ if (mark - start).rem_euclid(step.abs()) == 0 => passed + 1,
            _ => passed,
        };
        start + steps.max(0) * step
    }

    fn exhausted(&self) -> Error {
        Error::invalid_argument(format!(
            "the identity column '{}' has no further values: they would not fit a 64-bit integer",
            self.column
        ))
    }
}

/// The values of an identity column that a write may give to rows: `first + k * step` for `k` from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdentityValues {
    /// The name of the column.
    pub column: String,
    /// The first value beyond the mark.
    pub first: i64,
    /// The difference of two values, never 0.
    pub step: i64,
}

/// The identity columns of a table and the values that one write has used, shared by all of its writers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identities {
    columns: Arc<[IdentityColumn]>,
    used: Arc<Mutex<Used>>,
}

/// The values that a write has used.
#[derive(Debug, Default)]
struct Used {
    /// For each column the last value.
    last: Vec<Option<i64>>,
    /// The columns whose values an engine generates.
    by_engine: BTreeSet<String>,
}

impl Identities {
    pub(crate) fn new(columns: Vec<IdentityColumn>) -> Self {
        let used = Used { last: vec![None; columns.len()], by_engine: BTreeSet::new() };
        Self { columns: columns.into(), used: Arc::new(Mutex::new(used)) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.columns.iter().map(IdentityColumn::column).collect()
    }

    /// Returns whether values of this column are to be generated. `is_given` says whether the rows have the column.
    ///
    /// # Errors
    /// SchemaMismatch if the column is given and must not be.
    pub(crate) fn generates(&self, column: &str, is_given: bool) -> Result<bool> {
        match self.columns.iter().find(|identity| identity.column == column) {
            None => Ok(false),
            Some(identity) if is_given && !identity.accepts_values => Err(Error::schema_mismatch(format!(
                "the values of the identity column '{column}' are always generated"
            ))
            .with_hint("leave the column out of the data")),
            Some(_) => Ok(!is_given),
        }
    }

    /// Returns the next values of a column.
    ///
    /// # Errors
    /// InvalidArgument if there are not as many.
    pub(crate) fn take(&self, column: &str, rows: usize) -> Result<ArrayRef> {
        let mut values = Vec::with_capacity(rows);
        let mut used = self.lock();
        for (identity, used) in self.columns.iter().zip(used.last.iter_mut()) {
            if identity.column != column {
                continue;
            }
            let step = i128::from(identity.step);
            let mut next = used.map_or_else(|| identity.next(), |used| i128::from(used) + step);
            for _ in 0..rows {
                let value = i64::try_from(next).map_err(|_| identity.exhausted())?;
                values.push(value);
                *used = Some(value);
                next += step;
            }
        }
        Ok(Arc::new(Int64Array::from(values)))
    }

    /// Returns the values of the columns that rows of an engine lack, for the engine to generate. `given` are the
    /// columns that the rows have, compared as Spark compares names.
    ///
    /// # Errors
    /// As [`Identities::generates`]; InvalidArgument if a column has no further value.
    pub(crate) fn for_engine(&self, given: &[String]) -> Result<Vec<IdentityValues>> {
        let given: BTreeSet<String> = given.iter().map(|name| name.to_lowercase()).collect();
        let mut values = Vec::new();
        for identity in self.columns.iter() {
            if self.generates(&identity.column, given.contains(&identity.column.to_lowercase()))? {
                let first = i64::try_from(identity.next()).map_err(|_| identity.exhausted())?;
                values.push(IdentityValues { column: identity.column.clone(), first, step: identity.step });
            }
        }
        self.lock().by_engine = values.iter().map(|values| values.column.clone()).collect();
        Ok(values)
    }

    /// Returns the columns whose values an engine has generated.
    pub(crate) fn by_engine(&self) -> BTreeSet<String> {
        self.lock().by_engine.clone()
    }

    /// Notes that an engine has generated values of `column` from `least` to `greatest`.
    ///
    /// # Errors
    /// CorruptData if one of them is not beyond the mark, or not a number of steps from the start.
    pub(crate) fn note(&self, column: &str, least: i64, greatest: i64) -> Result<()> {
        let mut used = self.lock();
        for (identity, used) in self.columns.iter().zip(used.last.iter_mut()) {
            if identity.column != column {
                continue;
            }
            let (nearest, farthest) = if identity.step > 0 { (least, greatest) } else { (greatest, least) };
            let (next, step) = (identity.next(), i128::from(identity.step));
            let is_value = |value: i64| {
                let distance = i128::from(value) - next;
                distance % step == 0 && distance / step >= 0
            };
            if !is_value(nearest) || !is_value(farthest) {
                return Err(Error::corrupt_data(format!(
                    "the engine has written values from {least} to {greatest} to the identity column '{column}', \
                     which are not all of the form {next} + k * {step}; nothing was committed"
                )));
            }
            let is_farther = |value: i64| (i128::from(value) - i128::from(farthest)) * step > 0;
            *used = used.filter(|value| is_farther(*value)).or(Some(farthest));
        }
        Ok(())
    }

    /// Returns `schema` with the high water marks of the values that were used; `None` if none was.
    pub(crate) fn marked(&self, schema: &StructType) -> Result<Option<StructType>> {
        let used = self.lock();
        if used.last.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mark = |field: &StructField| {
            let place = self.columns.iter().position(|identity| identity.column == field.name);
            match place.and_then(|place| used.last.get(place).copied().flatten()) {
                None => field.clone(),
                Some(value) => {
                    StructField { metadata: field.metadata.with(MARK, Some(value.into())), ..field.clone() }
                }
            }
        };
        StructType::try_new(schema.fields().iter().map(mark).collect()).map(Some)
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

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
    fn values_are_beyond_the_mark_and_a_number_of_steps_from_the_start() {
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
            // Writers of one write share the values.
            let first = values(&identities.clone(), 1);
            let rest = values(&identities, 2);
            assert_eq!([first, rest].concat(), expected, "{start} {step} {mark:?}");
        }
    }

    /// The same values by trying all of them.
    #[test]
    fn the_first_value_is_the_first_of_all_that_are_beyond_the_mark() {
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
    fn an_engine_counts_from_the_first_value_and_its_files_tell_the_mark() {
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
            // Another file whose values are not as far.
            identities.note("id", first, first).unwrap();
            let marked = identities.marked(&schema).unwrap().unwrap();
            assert_eq!(marked.fields()[0].metadata.get(MARK), Some(expected.into()));
            // A value that was used before, and one that is not a whole number of steps away.
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
    fn the_mark_moves_to_the_last_value_and_other_metadata_stays() {
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
    fn what_is_not_of_the_protocols_form_is_corrupt() {
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
}
