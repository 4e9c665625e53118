//! Parses the description that Spark records for a type that contains `char(n)` or `varchar(n)`, such as
//! `struct<code:char(2),names:array<varchar(9)>>`.
//!
//! - Spark records the description in the metadata of a top-level column. It corresponds to the type in the schema,
//!   but has length limits where the schema has plain strings.
//! - The fields of a described struct match the fields of the schema by position. If the struct's fields were changed
//!   after the description was recorded, writes to the table are refused: the description no longer shows which field
//!   has which length, and Spark would read the fields in the described order.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::protocol::{DataType, PrimitiveType};

/// The length limits of the strings inside a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Limit {
    /// The value is a string with this limit.
    Text(Characters),
    /// Fields of a struct, by position in the schema.
    Struct(Vec<(usize, Limit)>),
    /// The elements of an array.
    Elements(Box<Limit>),
    /// The keys and the values of a map.
    Entries(Option<Box<Limit>>, Option<Box<Limit>>),
}

/// The limit of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Characters {
    /// `char(n)`: exactly `n` characters; shorter values are padded with spaces.
    Exactly(usize),
    /// `varchar(n)`: at most `n` characters.
    AtMost(usize),
}

impl Limit {
    /// Parses `text`, which describes a column of type `data_type` in the schema. Returns `None` if the described
    /// type contains no length limits.
    ///
    /// # Errors
    /// CorruptLog if the text is not a type, or does not fit the schema. Unsupported if a struct has different fields
    /// than in the schema.
    pub(super) fn parse(text: &str, data_type: &DataType) -> Result<Option<Self>> {
        let unreadable = || Error::corrupt_log(format!("'{text}' is not a Spark type"));
        let (parsed, rest) = Parsed::read(text.trim()).ok_or_else(unreadable)?;
        if !rest.trim().is_empty() {
            return Err(unreadable());
        }
        parsed.on(data_type).map_err(|misfit| match misfit {
            Misfit::NoString => Error::corrupt_log(format!(
                "the type '{text}' does not fit the schema: it has a length where the schema has no string"
            )),
            Misfit::Fields => Error::unsupported(format!(
                "the type '{text}' records the lengths of strings, but the fields of a struct have changed since, so \
                 it is not known which fields are limited"
            )),
        })
    }
}

/// The reason why a described type does not fit the schema.
enum Misfit {
    NoString,
    Fields,
}

/// The structure of a described type.
enum Parsed<'a> {
    Text(Characters),
    Struct(Vec<(Cow<'a, str>, Self)>),
    Array(Box<Self>),
    Map(Box<Self>, Box<Self>),
    Other,
}

impl<'a> Parsed<'a> {
    /// Reads a type from the beginning of `text`; returns the type and the remaining text.
    fn read(text: &'a str) -> Option<(Self, &'a str)> {
        let text = text.trim_start();
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        match (word.to_ascii_lowercase().as_str(), rest.trim_start()) {
            ("struct", inner) if inner.starts_with('<') => Self::fields(inner.strip_prefix('<')?),
            ("array", inner) if inner.starts_with('<') => {
                let (element, rest) = Self::read(inner.strip_prefix('<')?)?;
                Some((Self::Array(Box::new(element)), rest.trim_start().strip_prefix('>')?))
            }
            ("map", inner) if inner.starts_with('<') => {
                let (key, rest) = Self::read(inner.strip_prefix('<')?)?;
                let (value, rest) = Self::read(rest.trim_start().strip_prefix(',')?)?;
                Some((Self::Map(Box::new(key), Box::new(value)), rest.trim_start().strip_prefix('>')?))
            }
            (name @ ("char" | "character" | "varchar"), inner) => {
                let (number, rest) = inner.strip_prefix('(')?.split_once(')')?;
                let number = number.trim().parse().ok()?;
                let limit = if name == "varchar" { Characters::AtMost } else { Characters::Exactly };
                Some((Self::Text(limit(number)), without_collation(rest)))
            }
            ("", _) => None,
            // For example `decimal(10,2)`, `string collate UTF8_LCASE` or `interval day to second`.
            _ => {
                let rest = match rest.strip_prefix('(') {
                    Some(arguments) => arguments.split_once(')')?.1,
                    None => rest,
                };
                let end = rest.find([',', '>']).unwrap_or(rest.len());
                Some((Self::Other, rest.get(end..)?))
            }
        }
    }

    /// Reads the fields of a struct and the closing bracket; returns the struct and the remaining text.
    fn fields(mut text: &'a str) -> Option<(Self, &'a str)> {
        let mut fields = Vec::new();
        loop {
            text = text.trim_start();
            if let Some(rest) = text.strip_prefix('>').filter(|_| fields.is_empty()) {
                return Some((Self::Struct(fields), rest));
            }
            let (name, rest) = match text.strip_prefix('`') {
                // A backtick inside of a quoted name is doubled.
                Some(quoted) => {
                    let end = quoted.find("`:")?;
                    (Cow::Owned(quoted.get(..end)?.replace("``", "`")), quoted.get(end + 2..)?)
                }
                None => {
                    let (name, rest) = text.split_once(':')?;
                    (Cow::Borrowed(name), rest)
                }
            };
            let (parsed, rest) = Self::read(rest)?;
            fields.push((name, parsed));
            let rest = rest.trim_start();
            if let Some(rest) = rest.strip_prefix('>') {
                return Some((Self::Struct(fields), rest));
            }
            text = rest.strip_prefix(',')?;
        }
    }

    /// Returns the length limits for values of type `data_type`, or the reason why the described type does not fit
    /// it.
    fn on(&self, data_type: &DataType) -> Result<Option<Limit>, Misfit> {
        let boxed = |parsed: &Self, of: &DataType| Ok::<_, Misfit>(parsed.on(of)?.map(Box::new));
        match (self, data_type) {
            (Self::Text(characters), DataType::Primitive(PrimitiveType::String)) => {
                Ok(Some(Limit::Text(*characters)))
            }
            (Self::Array(element), DataType::Array(array)) => {
                Ok(boxed(element, &array.element_type)?.map(Limit::Elements))
            }
            (Self::Map(key, value), DataType::Map(map)) => {
                let (key, value) = (boxed(key, &map.key_type)?, boxed(value, &map.value_type)?);
                Ok((key.is_some() || value.is_some()).then_some(Limit::Entries(key, value)))
            }
            (Self::Struct(parsed), DataType::Struct(schema)) => {
                let names = parsed.iter().map(|(name, _)| name.as_ref());
                if !names.eq(schema.fields().iter().map(|field| field.name.as_str())) {
                    return Err(Misfit::Fields);
                }
                let mut limits = Vec::new();
                for (place, ((_, parsed), field)) in parsed.iter().zip(schema.fields()).enumerate() {
                    limits.extend(parsed.on(&field.data_type)?.map(|limit| (place, limit)));
                }
                Ok((!limits.is_empty()).then_some(Limit::Struct(limits)))
            }
            (Self::Other, _) => Ok(None),
            _ if !self.limits_any() => Ok(None),
            _ => Err(Misfit::NoString),
        }
    }

    fn limits_any(&self) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Other => false,
            Self::Struct(fields) => fields.iter().any(|(_, parsed)| parsed.limits_any()),
            Self::Array(element) => element.limits_any(),
            Self::Map(key, value) => key.limits_any() || value.limits_any(),
        }
    }
}

/// Removes the collation at the beginning of `text`, as in ` collate UTF8_LCASE`, and returns the rest.
fn without_collation(text: &str) -> &str {
    let Some((word, rest)) = text.trim_start().split_once(' ') else { return text };
    if !word.eq_ignore_ascii_case("collate") {
        return text;
    }
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest.get(end..).unwrap_or_default()
}

impl std::fmt::Display for Characters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exactly(count) => write!(f, "char({count})"),
            Self::AtMost(count) => write!(f, "varchar({count})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::StructType;

    fn column(json: &str) -> DataType {
        let field = format!(r#"{{"name":"v","type":{json},"nullable":true,"metadata":{{}}}}"#);
        let schema = StructType::from_json(&format!(r#"{{"type":"struct","fields":[{field}]}}"#)).unwrap();
        schema.fields()[0].data_type.clone()
    }

    fn fields(names: &[&str]) -> DataType {
        let field =
            |name: &&str| format!(r#"{{"name":"{name}","type":"string","nullable":true,"metadata":{{}}}}"#);
        let fields: Vec<_> = names.iter().map(field).collect();
        column(&format!(r#"{{"type":"struct","fields":[{}]}}"#, fields.join(",")))
    }

    fn exactly(count: usize) -> Limit {
        Limit::Text(Characters::Exactly(count))
    }

    #[test]
    fn lengths_are_found_at_every_depth() {
        let string = column(r#""string""#);
        for (text, limit) in [
            ("char(3)", Some(exactly(3))),
            (" CHARACTER ( 3 ) ", Some(exactly(3))),
            ("varchar(10)", Some(Limit::Text(Characters::AtMost(10)))),
            ("string", None),
            ("string collate UTF8_LCASE", None),
            ("char(5) collate UTF8_LCASE", Some(exactly(5))),
        ] {
            assert_eq!(Limit::parse(text, &string).unwrap(), limit, "{text}");
        }
        let array = column(r#"{"type":"array","elementType":"string","containsNull":true}"#);
        let elements = Some(Limit::Elements(Box::new(exactly(2))));
        assert_eq!(Limit::parse("array<char(2)>", &array).unwrap(), elements);
        let map = column(
            r#"{"type":"map","keyType":"string","valueType":"decimal(10,2)","valueContainsNull":true}"#,
        );
        let keys = Some(Limit::Entries(Some(Box::new(exactly(4))), None));
        assert_eq!(Limit::parse("map<char(4),decimal(10,2)>", &map).unwrap(), keys);
        assert_eq!(Limit::parse("map<string,decimal(10,2)>", &map).unwrap(), None);
    }

    #[test]
    fn fields_match_the_schema_by_position() {
        let limits = |text: &str, names: &[&str]| Limit::parse(text, &fields(names)).unwrap();
        let second = Some(Limit::Struct(vec![(1, exactly(2))]));
        assert_eq!(limits("struct<a b:string,`c``d:e`:char(2)>", &["a b", "c`d:e"]), second);
        assert_eq!(limits("struct<a:string,b:char(2) collate UNICODE>", &["a", "b"]), second);
        assert_eq!(limits("struct<a:char(2) collate UNICODE_CI,b:char(2)>", &["a", "b"]), {
            Some(Limit::Struct(vec![(0, exactly(2)), (1, exactly(2))]))
        });
        assert_eq!(limits("struct<a:string,b:string>", &["a", "b"]), None);
        for (text, changed) in [
            ("struct<a:char(2),b:string>", &["b", "a"][..]),
            ("struct<a:char(2),b:string>", &["b", "c"]),
            ("struct<a:char(2),b:string>", &["c", "b"]),
            ("struct<a:char(2)>", &["a", "b"]),
            ("struct<a:char(2),b:string>", &["a"]),
            // A field name that Spark has not put in backticks.
            ("struct<a:b:char(2)>", &["a:b"]),
        ] {
            let error = Limit::parse(text, &fields(changed)).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Unsupported, "{text} {changed:?}: {error}");
        }
    }

    #[test]
    fn descriptions_that_are_invalid_or_do_not_fit_are_corrupt() {
        let string = column(r#""string""#);
        for text in
            ["", "char", "char(x)", "char(3", "char(3) x", "array<char(3)", "struct<a>", "map<string>"]
        {
            let error = Limit::parse(text, &string).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::CorruptLog, "{text}");
        }
        for (text, kind) in [("char(3)", r#""long""#), ("array<char(3)>", r#""string""#)] {
            let error = Limit::parse(text, &column(kind)).unwrap_err().to_string();
            assert!(error.contains("does not fit the schema"), "{error}");
        }
    }
}
