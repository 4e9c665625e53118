//! The bound tree of a value.

use super::super::bound::{Bound, Part};
use super::super::function::Function;
use super::super::zone::Clock;
use super::operation::Operation;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

/// A bound value. The arguments have the types of the operation's signature.
#[derive(Debug, Clone)]
pub(in crate::expression::predicate) enum Node {
    /// The column with this index.
    Column(usize),
    /// The term with this index, which is used elsewhere, too, and computed once.
    Term(usize),
    /// An array of one value.
    Constant(ArrayRef),
    /// A function that preserves the order of its argument.
    Ordered {
        function: Function,
        of: Box<Node>,
        /// The text of the whole expression, for errors.
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
    /// Operators that bind from the left.
    Chain {
        first: Box<Node>,
        /// The text of the first operand, for errors.
        text: String,
        links: Vec<Link>,
    },
    Condition(Box<Bound>),
}

/// An operator of a chain with its right operand.
#[derive(Debug, Clone)]
pub(in crate::expression::predicate) struct Link {
    pub(in crate::expression::predicate) operation: Operation,
    /// The type that the value on the left is cast to.
    pub(in crate::expression::predicate) left: DataType,
    pub(in crate::expression::predicate) right: Node,
    pub(in crate::expression::predicate) to: DataType,
    /// The text of the right operand, for errors.
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

    /// Returns the value, if it is the same for all rows and was computed.
    pub(in crate::expression::predicate) fn constant(&self) -> Option<&ArrayRef> {
        match self {
            Self::Constant(value) => Some(value),
            _ => None,
        }
    }
}
