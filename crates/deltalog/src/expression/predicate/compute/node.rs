//! The tree of a bound expression that computes a value.

use super::super::bound::{Bound, Part};
use super::super::function::Function;
use super::super::zone::Clock;
use super::operation::Operation;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

/// A bound value. Its arguments have already been converted to the types that the operation takes.
#[derive(Debug, Clone)]
pub(in crate::expression::predicate) enum Node {
    /// The column with this index.
    Column(usize),
    /// The term with this index, which other parts use as well and which is computed once.
    Term(usize),
    /// A constant, as an array with one value.
    Constant(ArrayRef),
    /// A function that preserves the order of its argument.
    Ordered {
        function: Function,
        of: Box<Node>,
        /// The text of the whole expression, for error messages.
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
    /// Operators that are evaluated from left to right.
    Chain {
        first: Box<Node>,
        /// The text of the first operand, for error messages.
        text: String,
        links: Vec<Link>,
    },
    Condition(Box<Bound>),
}

/// An operator of a chain, and its right operand.
#[derive(Debug, Clone)]
pub(in crate::expression::predicate) struct Link {
    pub(in crate::expression::predicate) operation: Operation,
    /// The type to which the left operand is cast.
    pub(in crate::expression::predicate) left: DataType,
    pub(in crate::expression::predicate) right: Node,
    pub(in crate::expression::predicate) to: DataType,
    /// The text of the right operand, for error messages.
    pub(in crate::expression::predicate) text: String,
}

impl Node {
    /// Calls `visit` for each column and each term that the value refers to.
    pub(in crate::expression::predicate) fn visit(&self, visit: &mut dyn FnMut(Part)) {
        match self {
            Self::Column(column) => visit(Part::Column(*column)),
            Self::Term(term) => visit(Part::Term(*term)),
            Self::Constant(_) => {}
            Self::Ordered { of, .. } | Self::Cast { of, .. } => of.visit(visit),
            Self::Apply { arguments, .. } => arguments.iter().for_each(|argument| argument.visit(visit)),
            Self::Chain { first, links, .. } => {
                first.visit(visit);
                links.iter().for_each(|link| link.right.visit(visit));
            }
            Self::Condition(condition) => condition.visit(visit),
        }
    }

    /// Returns the value if it is a constant that has already been computed.
    pub(in crate::expression::predicate) fn constant(&self) -> Option<&ArrayRef> {
        match self {
            Self::Constant(value) => Some(value),
            _ => None,
        }
    }
}
