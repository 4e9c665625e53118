//! The description of a statement that a commit records, in the same format as the JVM implementation. (Protocol:
//! "Commit Provenance Information".)

use serde_json::{Value, json};

use crate::commit::Operation;

/// A statement, described by its SQL text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// `DELETE`.
    Delete {
        /// The condition; `None` for all rows.
        predicate: Option<String>,
    },
    /// `UPDATE`.
    Update {
        /// The condition; `None` for all rows.
        predicate: Option<String>,
    },
    /// `MERGE`.
    Merge {
        /// The condition under which rows match.
        predicate: String,
        /// The clauses `WHEN MATCHED`.
        matched: Vec<MergeClause>,
        /// The clauses `WHEN NOT MATCHED`.
        not_matched: Vec<MergeClause>,
        /// The clauses `WHEN NOT MATCHED BY SOURCE`.
        not_matched_by_source: Vec<MergeClause>,
    },
}

/// A clause of a `MERGE`, described by its SQL text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeClause {
    /// The condition, if it has one.
    pub predicate: Option<String>,
    /// The kind of the clause: `update`, `delete` or `insert`.
    pub action: String,
}

impl Statement {
    /// Returns the name of the operation in the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Delete { .. } => "DELETE",
            Self::Update { .. } => "UPDATE",
            Self::Merge { .. } => "MERGE",
        }
    }

    /// Adds the description of the statement to `operation`. Its name and parameters are replaced.
    pub(super) fn describe(&self, mut operation: Operation) -> Operation {
        self.name().clone_into(&mut operation.name);
        match self {
            Self::Delete { predicate } | Self::Update { predicate } => {
                operation.parameter("predicate", texts(predicate.as_ref()))
            }
            Self::Merge { predicate, matched, not_matched, not_matched_by_source } => operation
                .parameter("predicate", texts(Some(predicate)))
                .parameter("matchedPredicates", clauses(matched))
                .parameter("notMatchedPredicates", clauses(not_matched))
                .parameter("notMatchedBySourcePredicates", clauses(not_matched_by_source)),
        }
    }
}

/// Returns a JSON array that contains the predicate; an empty array if there is none.
fn texts(predicate: Option<&String>) -> String {
    json!(predicate.into_iter().collect::<Vec<_>>()).to_string()
}

/// Returns a JSON array of the clauses.
fn clauses(clauses: &[MergeClause]) -> String {
    let clause = |clause: &MergeClause| match &clause.predicate {
        Some(predicate) => json!({"predicate": predicate, "actionType": clause.action}),
        None => json!({"actionType": clause.action}),
    };
    Value::from_iter(clauses.iter().map(clause)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected strings are the ones that the JVM implementation writes.
    #[test]
    fn predicates_are_recorded_as_json_strings() {
        let described = |statement: Statement| statement.describe(Operation::default()).parameters;
        assert_eq!(described(Statement::Delete { predicate: None })["predicate"], "[]");
        let delete = Statement::Delete { predicate: Some("a = 'x\"'".to_owned()) };
        assert_eq!(described(delete)["predicate"], r#"["a = 'x\"'"]"#);
        let clause = |predicate: Option<&str>, action: &str| MergeClause {
            predicate: predicate.map(str::to_owned),
            action: action.to_owned(),
        };
        let merge = described(Statement::Merge {
            predicate: "t.a = s.a".to_owned(),
            matched: vec![clause(Some("s.b > 1"), "update"), clause(None, "delete")],
            not_matched: vec![clause(None, "insert")],
            not_matched_by_source: Vec::new(),
        });
        assert_eq!(merge["predicate"], r#"["t.a = s.a"]"#);
        let matched = r#"[{"actionType":"update","predicate":"s.b > 1"},{"actionType":"delete"}]"#;
        assert_eq!(merge["matchedPredicates"], matched);
        assert_eq!(merge["notMatchedPredicates"], r#"[{"actionType":"insert"}]"#);
        assert_eq!(merge["notMatchedBySourcePredicates"], "[]");
    }
}
