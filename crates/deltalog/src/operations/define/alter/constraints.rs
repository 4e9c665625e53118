//! Adds and drops CHECK constraints. (Protocol: "CHECK Constraints".)
//!
//! - "When adding a CHECK constraint to a table, a writer must validate the existing data". Therefore all rows are
//!   read, and a concurrent commit that adds rows is a conflict.
//! - Names are compared ignoring case, and stored in lower case, as in the JVM implementation.

use serde_json::{Value, json};

use super::draft::Draft;
use crate::commit::Operation;
use crate::error::{Error, Result};
use crate::expression::constraints::{CHECK, Check};
use crate::protocol::TableFeature;
use crate::scan::TableScan;

/// Adds constraints, each given by its name and its condition. The rows of the table are read once for all of them.
///
/// # Errors
/// Returns `InvalidArgument` if there are no constraints to add, for a name that is empty or already in use, and for
/// a condition that cannot be evaluated or is not true for a row of the table. Also returns the errors of reading
/// rows.
pub(super) fn add(draft: &mut Draft<'_>, constraints: &[(String, String)]) -> Result<Operation> {
    let mut checks = Vec::with_capacity(constraints.len());
    for (name, sql) in constraints {
        if name.is_empty() {
            return Err(Error::invalid_argument("the name of the constraint is empty"));
        }
        if let Some((_, sql)) = find(draft, name) {
            return Err(Error::invalid_argument(format!(
                "the table has a constraint '{name}' already ({sql})"
            ))
            .with_hint("choose another name, or drop the constraint first"));
        }
        checks.push(Check::bind_new(name, sql, &draft.schema, "UTC")?);
        draft.metadata.configuration.insert(format!("{CHECK}{}", name.to_lowercase()), sql.clone());
    }
    ensure_met(draft, &checks)?;
    draft.depends_on_rows = true;
    // The feature is requested explicitly. Otherwise, `Draft::protocol` would not add it to a table that already has
    // constraints although its protocol does not support the feature.
    draft.features.push(TableFeature::CheckConstraints);
    let operation = Operation::new("ADD CONSTRAINT");
    match constraints {
        [] => Err(Error::invalid_argument("there is no constraint to add")
            .with_hint("pass names with their conditions")),
        [(name, sql)] => Ok(operation.parameter("name", name.as_str()).parameter("expr", sql.as_str())),
        several => {
            let several: Vec<_> =
                several.iter().map(|(name, sql)| json!({"name": name, "expr": sql})).collect();
            Ok(operation.parameter("constraints", Value::from(several).to_string()))
        }
    }
}

/// Drops the constraint `name`.
///
/// # Errors
/// Returns `InvalidArgument` if there is no such constraint and `if_exists` is false.
pub(super) fn drop(draft: &mut Draft<'_>, name: &str, if_exists: bool) -> Result<Operation> {
    let operation = Operation::new("DROP CONSTRAINT").parameter("name", name);
    match find(draft, name) {
        Some((key, sql)) => {
            draft.metadata.configuration.remove(&key);
            Ok(operation.parameter("expr", sql).parameter("existed", "true"))
        }
        None if if_exists => Ok(operation.parameter("existed", "false")),
        None => {
            let keys = draft.metadata.configuration.keys();
            let names: Vec<_> = keys.filter_map(|key| key.strip_prefix(CHECK)).collect();
            let hint = match names.is_empty() {
                true => "the table has no constraints".to_owned(),
                false => format!("the constraints are {}", names.join(", ")),
            };
            Err(Error::invalid_argument(format!("the table has no constraint '{name}'")).with_hint(hint))
        }
    }
}

/// Returns the table property that contains the constraint `name`, and its condition.
fn find(draft: &Draft<'_>, name: &str) -> Option<(String, String)> {
    let is_it =
        |key: &str| key.strip_prefix(CHECK).is_some_and(|it| it.to_lowercase() == name.to_lowercase());
    let mut properties = draft.metadata.configuration.iter();
    properties.find(|(key, _)| is_it(key)).map(|(key, sql)| (key.clone(), sql.clone()))
}

/// Checks that all rows of the table meet the constraints.
fn ensure_met(draft: &Draft<'_>, checks: &[Check]) -> Result<()> {
    let mut columns: Vec<String> = Vec::new();
    for column in checks.iter().flat_map(Check::columns) {
        let name = column.path.parts().first();
        let name = name.and_then(|name| draft.schema.field(name)).map(|field| field.name.clone());
        columns.extend(name.filter(|name| !columns.contains(name)));
    }
    for batch in TableScan::new(draft.base).columns(columns).read()? {
        let batch = batch?;
        for check in checks {
            let Some(violation) = check.violation(&batch)? else { continue };
            let values: Vec<_> =
                violation.values.iter().map(|(column, value)| format!("{column} = {value}")).collect();
            return Err(Error::invalid_argument(format!(
                "the table has a row that violates {}: {}",
                violation.rule,
                values.join(", ")
            ))
            .with_hint(format!(
                "change or delete such rows first: SELECT … WHERE ({}) IS NOT TRUE finds them",
                check.sql()
            )));
        }
    }
    Ok(())
}
