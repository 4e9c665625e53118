//! Type widening: columns whose type was changed to a wider one. (Table feature `typeWidening`; the field's
//! metadata key `delta.typeChanges`.)
//!
//! | from | to |
//! | --- | --- |
//! | `byte`, `short`, `integer` | a wider one of `short`, `integer` and `long`; or `double` |
//! | `byte`, `short`, `integer`, `long` | a decimal with at least 3, 5, 10, 20 digits before the point |
//! | `float` | `double` |
//! | `decimal(p, s)` | `decimal(p + k, s + l)` with `l <= k` |
//! | `date` | `timestamp_ntz` |
//!
//! - Existing files keep the type with which they were written, and readers convert their values. A table with a change
//!   that is not in this list is refused, because it is not known how to read its old files.
//! - A change inside an array or map is recorded in the metadata of the enclosing field. Its `fieldPath` is the path to
//!   the changed part.

use serde_json::{Value, json};

use super::{PrimitiveType, StructField, StructType};
use crate::error::{Error, Result};

/// The metadata key for the type changes of a field.
pub(crate) const TYPE_CHANGES: &str = "delta.typeChanges";

/// One change of the type of a column, or of a part of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeChange {
    /// The type in older files.
    pub from: PrimitiveType,
    /// The type after the change.
    pub to: PrimitiveType,
    /// Whether the type of the column itself was changed, rather than a part of an array or map.
    pub of_column: bool,
}

impl StructType {
    /// Returns whether the types of any fields were changed, at any depth.
    pub(crate) fn has_type_changes(&self) -> bool {
        self.any_field(&mut |field| field.metadata.get(TYPE_CHANGES).is_some())
    }

    /// Returns the schema without its recorded type changes, for a table in which no file has an older type.
    #[must_use]
    pub(crate) fn without_type_changes(&self) -> Self {
        self.with_metadata(&|metadata| match metadata.get(TYPE_CHANGES) {
            Some(_) => metadata.with(TYPE_CHANGES, None),
            None => metadata.clone(),
        })
    }
}

impl StructField {
    /// Returns the field with one more type change in its metadata. The change is about the field itself, or about the
    /// part of an array or map at `path`.
    #[must_use]
    pub(crate) fn with_type_change(self, from: PrimitiveType, to: PrimitiveType, path: &[String]) -> Self {
        let mut changes = match self.metadata.get(TYPE_CHANGES) {
            Some(Value::Array(changes)) => changes,
            _ => Vec::new(),
        };
        let mut change = json!({ "toType": to.to_string(), "fromType": from.to_string() });
        if let (false, Some(change)) = (path.is_empty(), change.as_object_mut()) {
            change.insert("fieldPath".to_owned(), path.join(".").to_lowercase().into());
        }
        changes.push(change);
        Self { metadata: self.metadata.with(TYPE_CHANGES, Some(changes.into())), ..self }
    }

    /// Returns the recorded type changes of this field, and of its elements, keys and values down to the next field.
    ///
    /// # Errors
    /// `Unsupported`, naming the column, for a change that is not in the list of widenings.
    pub fn type_changes(&self) -> Result<Vec<TypeChange>> {
        let changes = match self.metadata.get(TYPE_CHANGES) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(changes)) => changes,
            Some(_) => {
                return Err(Error::corrupt_log(format!(
                    "'{TYPE_CHANGES}' of the column '{}' is not a list",
                    self.name
                )));
            }
        };
        changes.iter().map(|change| self.type_change(change)).collect()
    }

    fn type_change(&self, change: &Value) -> Result<TypeChange> {
        let text = |key: &str| change.get(key).and_then(Value::as_str).unwrap_or("?");
        let (from, to) = (text("fromType"), text("toType"));
        let known = PrimitiveType::from_name(from)
            .zip(PrimitiveType::from_name(to))
            .filter(|(from, to)| is_widening(*from, *to));
        match known {
            Some((from, to)) => {
                let of_column = change.get("fieldPath").is_none_or(Value::is_null);
                Ok(TypeChange { from, to, of_column })
            }
            None => Err(Error::unsupported(format!(
                "the type of the column '{}' was changed from {from} to {to}, which is not a known widening",
                self.name
            ))
            .with_hint(
                "read a version before the change, or rewrite the table with the client that made it",
            )),
        }
    }
}

impl StructType {
    /// Refuses type changes that are not in the list of widenings, at any depth. Returns whether there are any changes.
    ///
    /// # Errors
    /// Returns the same errors as [`StructField::type_changes`].
    pub fn check_type_changes(&self) -> Result<bool> {
        let (mut any, mut failure) = (false, None);
        self.any_field(&mut |field| match field.type_changes() {
            Ok(changes) => {
                any |= !changes.is_empty();
                false
            }
            Err(error) => {
                failure = Some(error);
                true
            }
        });
        failure.map_or(Ok(any), Err)
    }
}

/// Returns whether Iceberg allows the change as well. (PROTOCOL, "Writer Requirements for IcebergCompatV2"; Iceberg's
/// specification, "Schema Evolution".)
pub(crate) fn is_iceberg_widening(from: PrimitiveType, to: PrimitiveType) -> bool {
    use PrimitiveType as P;
    let is_known = match (from, to) {
        (P::Byte | P::Short | P::Integer, P::Short | P::Integer | P::Long) | (P::Float, P::Double) => true,
        (P::Decimal { scale: before, .. }, P::Decimal { scale: after, .. }) => before == after,
        _ => false,
    };
    is_known && is_widening(from, to)
}

/// Returns whether the list of widenings allows a change from `from` to `to`.
pub(crate) fn is_widening(from: PrimitiveType, to: PrimitiveType) -> bool {
    use PrimitiveType as P;
    let whole = |primitive: P| match primitive {
        P::Byte => Some(1),
        P::Short => Some(2),
        P::Integer => Some(4),
        P::Long => Some(8),
        _ => None,
    };
    // Returns whether a decimal has at least this many digits before the decimal point.
    let holds = |precision: u8, scale: u8, whole_digits: u8| precision - scale >= whole_digits;
    match (from, to) {
        (P::Byte | P::Short | P::Integer, P::Double) | (P::Float, P::Double) | (P::Date, P::TimestampNtz) => {
            true
        }
        (P::Byte, P::Decimal { precision, scale }) => holds(precision, scale, 3),
        (P::Short, P::Decimal { precision, scale }) => holds(precision, scale, 5),
        (P::Integer, P::Decimal { precision, scale }) => holds(precision, scale, 10),
        (P::Long, P::Decimal { precision, scale }) => holds(precision, scale, 20),
        (P::Decimal { precision, scale }, P::Decimal { precision: wider, scale: finer }) => {
            finer >= scale && holds(wider, finer, precision - scale) && (wider, finer) != (precision, scale)
        }
        (from, to) => whole(from).zip(whole(to)).is_some_and(|(from, to)| from < to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::protocol::schema::FieldMetadata;

    fn changed(from: &str, to: &str) -> Result<Vec<TypeChange>> {
        let metadata =
            format!(r#"{{"{TYPE_CHANGES}":[{{"fromType":"{from}","toType":"{to}","tableVersion":2}}]}}"#);
        StructField {
            metadata: FieldMetadata::parse(&metadata).unwrap(),
            ..StructField::new("c", PrimitiveType::Long, true)
        }
        .type_changes()
    }

    #[test]
    fn only_listed_changes_are_widenings() {
        let wholes = ["byte", "short", "integer", "long"];
        for (from, to) in [
            ("byte", "double"),
            ("short", "double"),
            ("integer", "double"),
            ("float", "double"),
            ("date", "timestamp_ntz"),
            ("byte", "decimal(4,1)"),
            ("short", "decimal(5,0)"),
            ("integer", "decimal(38,28)"),
            ("long", "decimal(20,0)"),
            ("decimal(10,2)", "decimal(11,2)"),
            ("decimal(10,2)", "decimal(12,4)"),
        ] {
            let change = changed(from, to).unwrap();
            assert_eq!(change[0].to.to_string(), to);
            assert_eq!(changed(to, from).unwrap_err().kind(), ErrorKind::Unsupported, "{to} to {from}");
        }
        for (narrow, from) in wholes.iter().enumerate() {
            for (wide, to) in wholes.iter().enumerate() {
                assert_eq!(changed(from, to).is_ok(), narrow < wide, "{from} to {to}");
            }
        }
        for (from, to) in [
            ("long", "double"),
            ("integer", "float"),
            ("byte", "decimal(4,2)"),
            ("short", "decimal(4,0)"),
            ("integer", "decimal(12,3)"),
            ("long", "decimal(19,0)"),
            ("decimal(10,2)", "decimal(11,4)"),
            ("decimal(10,2)", "decimal(20,1)"),
            ("decimal(10,2)", "decimal(10,2)"),
            ("date", "timestamp"),
            ("integer", "string"),
            ("?", "long"),
        ] {
            let error = changed(from, to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(&format!("'c' was changed from {from} to {to}")), "{error}");
        }
    }

    #[test]
    fn nested_changes_are_found() {
        let of = |to: &str| {
            let field = |name: &str, data_type: &str, metadata: &str| {
                let field = format!(
                    r#"{{"name":"{name}","type":{data_type},"nullable":true,"metadata":{metadata}}}"#
                );
                format!(r#"{{"type":"struct","fields":[{field}]}}"#)
            };
            let change = format!(r#"{{"fromType":"byte","toType":"{to}","fieldPath":"element"}}"#);
            let value = field("x", r#""long""#, &format!(r#"{{"{TYPE_CHANGES}":[{change}]}}"#));
            let map = r#"{"type":"map","keyType":"string","valueContainsNull":true,"valueType":"#;
            let json = field("m", &format!("{map}{value}}}"), "{}");
            StructType::from_json(&json).unwrap().check_type_changes()
        };
        assert!(of("long").unwrap());
        assert!(of("string").is_err());
        assert!(!StructType::default().check_type_changes().unwrap());
    }
}
