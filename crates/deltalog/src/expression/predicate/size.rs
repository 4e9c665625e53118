//! Limits the size of expressions, because the time and stack that binding, computing and printing need are
//! proportional to it.

use super::ast::{Expr, Predicate};
use crate::error::{Error, Result};
use crate::limits::{EXPRESSION_LEVELS, EXPRESSION_NODES};

/// A part of an expression.
pub(super) enum Tree<'a> {
    Value(&'a Expr),
    Condition(&'a Predicate),
}

impl<'a> Tree<'a> {
    /// Calls `visit` for each direct child of this part.
    pub(super) fn visit(self, mut visit: impl FnMut(Self)) {
        match self {
            Self::Value(value) => match value {
                Expr::Call(_, of) => visit(Self::Value(of)),
                Expr::Apply(_, arguments) => arguments.iter().for_each(|of| visit(Self::Value(of))),
                Expr::Chain(first, steps) => {
                    visit(Self::Value(first));
                    steps.iter().for_each(|(_, right)| visit(Self::Value(right)));
                }
                Expr::Condition(condition) => visit(Self::Condition(condition)),
                Expr::Column(_)
                | Expr::Literal(_)
                | Expr::Typed(..)
                | Expr::DoubleQuoted(_)
                | Expr::Unknown(_) => {}
            },
            Self::Condition(condition) => match condition {
                Predicate::Value(value)
                | Predicate::IsNull(value)
                | Predicate::Like { value, .. }
                | Predicate::StartsWith { value, .. } => visit(Self::Value(value)),
                Predicate::Compare { left, right, .. } => {
                    [left, right].into_iter().for_each(|of| visit(Self::Value(of)));
                }
                Predicate::Between { value, low, high } => {
                    [value, low, high].into_iter().for_each(|of| visit(Self::Value(of)));
                }
                Predicate::In { value, list } => {
                    let is_computed = |of: &&Expr| !matches!(of, Expr::Literal(_) | Expr::Typed(..));
                    visit(Self::Value(value));
                    list.iter().filter(is_computed).for_each(|of| visit(Self::Value(of)));
                }
                Predicate::Is { condition, .. }
                | Predicate::Not(condition)
                | Predicate::InZone { condition, .. } => visit(Self::Condition(condition)),
                Predicate::And(parts) | Predicate::Or(parts) => {
                    parts.iter().for_each(|part| visit(Self::Condition(part)));
                }
            },
        }
    }

    /// Checks the number of nodes and levels. The constants in the list of an IN are not counted.
    ///
    /// # Errors
    /// Returns InvalidArgument if the numbers exceed the limits.
    pub(super) fn ensure_bounded(self) -> Result<()> {
        let (mut open, mut nodes) = (vec![(self, 1)], 0);
        while let Some((tree, level)) = open.pop() {
            nodes += 1;
            if nodes > EXPRESSION_NODES {
                return Err(too_large());
            }
            if level > EXPRESSION_LEVELS {
                return Err(Error::invalid_argument(format!(
                    "the expression has more than {EXPRESSION_LEVELS} levels of values and conditions"
                ))
                .with_hint("divide it into several expressions with less nesting"));
            }
            tree.visit(|part| open.push((part, level + 1)));
        }
        Ok(())
    }
}

/// Returns the error for an expression with too many parts.
pub(super) fn too_large() -> Error {
    Error::invalid_argument(format!(
        "the expression has more than {EXPRESSION_NODES} operators, functions, columns and constants"
    ))
    .with_hint("divide it into several expressions, or write one IN with a list of constants")
}
