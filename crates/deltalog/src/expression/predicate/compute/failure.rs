//! Explains to users why an expression cannot be computed for a row.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

use super::types::sql_name;
use crate::error::Error;

/// The operation that failed for a row.
#[derive(Debug, Clone, Copy)]
pub(in crate::expression::predicate) enum Failure<'a> {
    /// A cast to a type.
    Cast(&'a DataType),
    /// A division with a result of this type.
    Division(&'a DataType),
    /// Arithmetic with a result of this type.
    Overflow(&'a DataType),
    /// Any other function.
    Function,
}

impl Failure<'_> {
    /// Returns the error for the expression `text`, whose arguments have the given `values` in the failing row.
    pub(super) fn error(self, text: &str, arguments: &[ArrayRef], values: &[String]) -> Error {
        let is_zero = |value: &String| value.parse::<f64>().is_ok_and(|number| number == 0.0);
        let (why, hint) = match self {
            Self::Cast(to) => {
                let is_text = arguments.first().is_some_and(|of| *of.data_type() == DataType::Utf8);
                let why = match is_text {
                    true => format!("the text is not a value of type {}", sql_name(to)),
                    false => format!("it does not fit the type {}", sql_name(to)),
                };
                (
                    why,
                    "write TRY_CAST, which returns NULL for such values, or exclude them with a condition or CASE",
                )
            }
            Self::Division(_) if values.get(1).is_some_and(is_zero) => (
                "division by zero".to_owned(),
                "exclude such rows with a condition or CASE, or divide by NULLIF(…, 0)",
            ),
            Self::Division(to) | Self::Overflow(to) => (
                format!("overflow of the type {}", sql_name(to)),
                "cast the values to a wider type first, or exclude them with a condition or CASE",
            ),
            Self::Function => (
                "the result does not fit its type, or the function is not defined for these values"
                    .to_owned(),
                "exclude such values with a condition or CASE",
            ),
        };
        let values: Vec<String> = values
            .iter()
            .zip(arguments)
            .map(|(value, argument)| match argument.data_type() {
                DataType::Utf8 => format!("'{value}'"),
                _ => value.clone(),
            })
            .collect();
        Error::invalid_argument(format!("{text} has no value for {}: {why}", values.join(", ")))
            .with_hint(hint)
    }
}
