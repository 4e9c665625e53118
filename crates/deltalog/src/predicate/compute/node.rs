//! The bound tree of a value.

use super::super::bound::{Bound, Term};
use super::super::function::Function;
use super::super::zone::Clock;
use super::operation::Operation;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

/// A bound value. The types of arguments are those of the operation's signature.
#[derive(Debug, Clone)]
pub(in crate::predicate) enum Node {
    /// The column with this index.
    Column(usize),
    /// An array of one value.
    Constant(ArrayRef),
    /// A function that preserves the order of its argument.
    Ordered {
        function: Function,
        of: Box<Node>,
        /// The text of the whole, for errors.
        text: String,
    },
    Cast {
        of: Box<Node>,
        to: DataType,
        clock: Clock,
        text: String,
    },
    Apply {
        operation: Operation,
        arguments: Vec<Node>,
        to: DataType,
        text: String,
    },
    Condition(Box<Bound>),
}

impl Node {
    /// Calls `visit` for each column that the value depends on.
    pub(in crate::predicate) fn visit_columns(&self, terms: &[Term], visit: &mut dyn FnMut(usize)) {
        match self {
            Self::Column(column) => visit(*column),
            Self::Constant(_) => {}
            Self::Ordered { of, .. } | Self::Cast { of, .. } => of.visit_columns(terms, visit),
            Self::Apply { arguments, .. } => {
                arguments.iter().for_each(|argument| argument.visit_columns(terms, visit))
            }
            Self::Condition(condition) => condition.visit_columns(terms, visit),
        }
    }

    /// Returns the value, if it is the same for all rows and was computed.
    pub(in crate::predicate) fn constant(&self) -> Option<&ArrayRef> {
        match self {
            Self::Constant(value) => Some(value),
            _ => None,
        }
    }
}
