//! Identity columns, whose values the writer generates by counting. (PROTOCOL, "Identity Columns".)
//!
//! - Each value is `start + k * step` for a whole number `k`, and lies beyond the high water mark, in the direction
//!   of the step.
//! - The mark is part of the metadata. It moves in the commit that adds the rows, and two commits that move it
//!   conflict. Therefore no value occurs twice, and a failed write leaves at most a gap.
//! - Values that a user provides do not change the mark, as in the JVM connector.
//! - Writers in several processes each count in a lane of their own (see `lane`). The commit checks the values that
//!   they have assigned.
//! - An engine such as Spark generates the values in its own tasks: it asks for the first value and the step, and
//!   each row gets the first value plus a different number of steps. The high water mark then becomes the value in
//!   the engine's files that is farthest from the start.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, Int64Array};
use serde_json::Value;

use super::lane::{Counted, Lane};
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
    /// The high water mark: the highest value generated so far, or the lowest if the step is negative.
    mark: Option<i64>,
    accepts_values: bool,
}

impl IdentityColumn {
    /// Reads the metadata of an identity column; returns `None` if `field` is not an identity column.
    ///
    /// # Errors
    /// CorruptLog if the column is not of type `long`, or if its metadata does not have the form that the protocol
    /// requires.
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

    /// Returns the name of the identity column.
    fn column(&self) -> &str {
        &self.column
    }

    /// Returns the first value beyond the high water mark.
    fn next(&self) -> i128 {
        let (start, step) = (i128::from(self.start), i128::from(self.step));
        let Some(mark) = self.mark.map(i128::from) else { return start };
        // The number of whole steps from the start to the mark. It is negative if the mark is before the start in the
        // direction of the step.
        let passed = (mark - start).div_euclid(step.abs()) * step.signum();
        let steps = match step.signum() {
            1 => passed + 1,
            // With a negative step, `div_euclid` has rounded away from the start, unless the mark is a whole number
            // of steps from the start.
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

/// The values of an identity column that a write may assign: `first + k * step` for `k` from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdentityValues {
    /// The name of the column.
    pub column: String,
    /// The first value beyond the mark.
    pub first: i64,
    /// The difference between consecutive values, never 0.
    pub step: i64,
}

/// The identity columns of a table, and the values that one write has used, shared by all parts of that write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identities {
    columns: Arc<[IdentityColumn]>,
    /// The index of each identity column, by its name.
    places: Arc<HashMap<String, usize>>,
    used: Arc<Mutex<Used>>,
    counting: Counting,
}

/// The values that the writers in one process may assign.
#[derive(Debug, Clone, Copy, Default)]
enum Counting {
    /// All values beyond the high water mark.
    #[default]
    Alone,
    /// The values of one lane.
    InLane(Lane),
    /// No values, because writers in other processes would assign the same values.
    Never,
}

/// The values that a write has used.
#[derive(Debug, Default)]
struct Used {
    /// The last value of each identity column.
    last: Vec<Option<i64>>,
    /// The columns whose values an engine such as Spark generates.
    by_engine: BTreeSet<String>,
}

impl Identities {
    pub(crate) fn new(columns: Vec<IdentityColumn>) -> Self {
        let used = Used { last: vec![None; columns.len()], by_engine: BTreeSet::new() };
        let places = columns.iter().enumerate().map(|(place, identity)| (identity.column.clone(), place));
        Self {
            places: Arc::new(places.collect()),
            columns: columns.into(),
            used: Arc::new(Mutex::new(used)),
            counting: Counting::Alone,
        }
    }

    fn find(&self, column: &str) -> Option<&IdentityColumn> {
        self.columns.get(*self.places.get(column)?)
    }

    /// Returns the same columns for one of several writers. This writer assigns the values of its lane, or no values
    /// if it does not have a lane.
    pub(crate) fn in_lane(&self, lane: Option<Lane>) -> Self {
        Self { counting: lane.map_or(Counting::Never, Counting::InLane), ..Self::new(self.columns.to_vec()) }
    }

    /// Returns the name of each identity column, and whether rows may provide values for it.
    pub(super) fn described(&self) -> Vec<(String, bool)> {
        self.columns.iter().map(|identity| (identity.column.clone(), identity.accepts_values)).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.columns.iter().map(IdentityColumn::column).collect()
    }

    /// Returns whether this write has to generate values for `column`. `is_given` says whether the rows have the
    /// column.
    ///
    /// # Errors
    /// SchemaMismatch if the rows have the column although its values are always generated.
    pub(crate) fn generates(&self, column: &str, is_given: bool) -> Result<bool> {
        match self.find(column) {
            None => Ok(false),
            Some(identity) if is_given && !identity.accepts_values => Err(Error::schema_mismatch(format!(
                "the values of the identity column '{column}' are always generated"
            ))
            .with_hint("leave the column out of the data")),
            Some(_) => Ok(!is_given),
        }
    }

    /// Refuses an assignment to `column`, for example in an UPDATE, if it is an identity column.
    ///
    /// # Errors
    /// SchemaMismatch for an identity column. As in the JVM connector, its values are only assigned to new rows and
    /// never changed.
    pub(crate) fn check_kept(&self, column: &str) -> Result<()> {
        match self.find(column) {
            None => Ok(()),
            Some(_) => Err(Error::schema_mismatch(format!(
                "the values of the identity column '{column}' cannot be changed"
            ))
            .with_hint("leave the column out of the assignments")),
        }
    }

    /// Returns the next values of `column` for `rows` rows.
    ///
    /// # Errors
    /// InvalidArgument if the column has too few values left, or if writers in other processes could assign the same
    /// values.
    pub(crate) fn take(&self, column: &str, rows: usize) -> Result<ArrayRef> {
        let (number, of) = match self.counting {
            Counting::Alone => (0, 1),
            Counting::InLane(lane) => (i128::from(lane.number()), i128::from(lane.of())),
            Counting::Never => return Err(not_numbered(column)),
        };
        let mut values = Vec::with_capacity(rows);
        let mut used = self.lock();
        let used = self.places.get(column).and_then(|place| used.last.get_mut(*place));
        if let (Some(identity), Some(used)) = (self.find(column), used) {
            let step = i128::from(identity.step) * of;
            let mut next = match *used {
                Some(used) => i128::from(used) + step,
                None => identity.next() + number * i128::from(identity.step),
            };
            for _ in 0..rows {
                let value = i64::try_from(next).map_err(|_| identity.exhausted())?;
                values.push(value);
                *used = Some(value);
                next += step;
            }
        }
        Ok(Arc::new(Int64Array::from(values)))
    }

    /// Returns the values that this writer has assigned in its lane; `None` if it has no lane or has assigned no
    /// values.
    pub(crate) fn counted(&self) -> Option<Counted> {
        let Counting::InLane(lane) = self.counting else { return None };
        let used = self.lock();
        let values = self.columns.iter().zip(&used.last).filter_map(|(identity, last)| {
            let first = identity.next() + i128::from(lane.number()) * i128::from(identity.step);
            Some((identity.column.clone(), (i64::try_from(first).ok()?, (*last)?)))
        });
        let counted = Counted { lane, values: values.collect() };
        (!counted.values.is_empty()).then_some(counted)
    }

    /// Checks the report of a writer that wrote `rows` rows. `counted` contains the values that the writer claims to
    /// have assigned; `None` if it reports no values.
    ///
    /// # Errors
    /// InvalidArgument if a row has no value, if a value is not in the writer's lane or not beyond the mark, or if the
    /// table does not have a reported column.
    pub(crate) fn check(&self, counted: Option<&Counted>, rows: u64) -> Result<()> {
        let refused = |what: String| Err(Error::invalid_argument(format!("a fragment {what}")));
        for identity in self.columns.iter() {
            let (column, step) = (&identity.column, i128::from(identity.step));
            let values = counted.and_then(|counted| Some((counted.lane, counted.values.get(column)?)));
            let Some((lane, (first, last))) = values else {
                if rows > 0 && !identity.accepts_values {
                    return refused(format!(
                        "does not say which values of the identity column '{column}' it has"
                    ));
                }
                continue;
            };
            let expected = identity.next() + i128::from(lane.number()) * step;
            let distance = i128::from(*last) - i128::from(*first);
            let stride = step * i128::from(lane.of());
            // If the column accepts values that users provide, some rows may have come with a value, so that the
            // writer assigned fewer values than it wrote rows.
            let least = if identity.accepts_values { 1 } else { rows.max(1) };
            let is_of_lane = lane.exists()
                && expected == i128::from(*first)
                && distance % stride == 0
                && distance / stride + 1 >= i128::from(least);
            if !is_of_lane {
                return refused(format!(
                    "has the values from {first} to {last} of the identity column '{column}' in {rows} rows, which are \
                     not the values of the task {} of {}: they begin at {expected}",
                    lane.number(),
                    lane.of()
                ));
            }
        }
        let unknown = counted
            .into_iter()
            .flat_map(|counted| counted.values.keys())
            .find(|name| self.find(name).is_none());
        match unknown {
            Some(name) => {
                refused(format!("has values of the identity column '{name}', which the table does not have"))
            }
            None => Ok(()),
        }
    }

    /// Returns the values for the identity columns that an engine's rows lack, so that the engine can generate them.
    /// `given` are the names of the columns that the rows have. As in Spark, case is ignored.
    ///
    /// # Errors
    /// Returns the same errors as [`Identities::generates`], and InvalidArgument if a column has no values left.
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

    /// Returns the columns whose values an engine such as Spark has generated.
    pub(crate) fn by_engine(&self) -> BTreeSet<String> {
        self.lock().by_engine.clone()
    }

    /// Records that an engine has generated values of `column` from `least` to `greatest`.
    ///
    /// # Errors
    /// CorruptData if one of the two values is not beyond the high water mark, or not a whole number of steps from
    /// the start.
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

    /// Returns `schema` with the high water marks that apply after this write; `None` if the write used no values.
    pub(crate) fn marked(&self, schema: &StructType) -> Result<Option<StructType>> {
        let used = self.lock();
        if used.last.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mark = |field: &StructField| {
            let place = self.places.get(&field.name);
            match place.and_then(|place| used.last.get(*place).copied().flatten()) {
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

/// Returns the error for parallel writers without task numbers, which would all assign the same values.
fn not_numbered(column: &str) -> Error {
    Error::invalid_argument(format!(
        "the values of the identity column '{column}' depend on the number of the task, and this task of the \
         write has no number"
    ))
    .with_hint("pass each worker its own task, one of the tasks that `tasks(count)` returns")
}

#[cfg(test)]
mod tests;
