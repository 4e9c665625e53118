//! Columns of the types `char(n)` and `varchar(n)`, which are strings in the schema.
//!
//! Spark notes the type in the metadata of the column, and Delta's writers enforce it as Spark does:
//!
//! - `varchar(n)` holds at most `n` characters. Spaces beyond them at the end are cut off.
//! - `char(n)` holds exactly `n` characters: shorter values are padded with spaces.
//! - A longer value is refused. NULL is allowed.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};

use crate::error::{Error, Result};
use crate::protocol::StructField;

/// Spark's key in the metadata of a column, such as `varchar(10)` or `array<char(2)>`.
const TYPE: &str = "__CHAR_VARCHAR_TYPE_STRING";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Char,
    Varchar,
}

/// A column of limited length.
#[derive(Debug, Clone)]
pub(super) struct Length {
    column: String,
    kind: Kind,
    characters: usize,
}

impl Length {
    /// Returns the limit of a top-level column, if it has one.
    ///
    /// # Errors
    /// Unsupported for limits of strings inside of the column. CorruptLog for a type that Spark does not write.
    pub(super) fn of(field: &StructField) -> Result<Option<Self>> {
        let Some(value) = field.metadata.get(TYPE) else { return Ok(None) };
        let text = value.as_str().unwrap_or_default().trim().to_lowercase();
        let parse = |prefix: &str| {
            text.strip_prefix(prefix)?.trim_start().strip_prefix('(')?.strip_suffix(')')?.trim().parse().ok()
        };
        let found = |kind, characters| Some(Self { column: field.name.clone(), kind, characters });
        if let Some(characters) = parse("varchar") {
            return Ok(found(Kind::Varchar, characters));
        }
        if let Some(characters) = parse("char").or_else(|| parse("character")) {
            return Ok(found(Kind::Char, characters));
        }
        if text.contains('<') {
            return Err(Error::unsupported(format!(
                "column {} has the type {text}, and lengths of strings inside of a column are not implemented",
                field.name
            )));
        }
        Err(Error::corrupt_log(format!(
            "the metadata '{TYPE}' of column {} is not a type of strings: {value}",
            field.name
        )))
    }

    pub(super) fn column(&self) -> &str {
        &self.column
    }

    /// Returns the values as the type demands them; `None` if they are so already.
    ///
    /// # Errors
    /// InvalidArgument naming the column and the length of the first value that is too long.
    pub(super) fn apply(&self, values: &ArrayRef) -> Result<Option<ArrayRef>> {
        let Some(strings) = values.as_string_opt::<i32>() else {
            return Err(Error::corrupt_log(format!(
                "column {} has the type {self} and is no column of strings",
                self.column
            )));
        };
        let exact = |text: &str| match self.kind {
            Kind::Char => text.chars().count() == self.characters,
            // A string has at least as many bytes as characters.
            Kind::Varchar => text.len() <= self.characters || text.chars().count() <= self.characters,
        };
        if strings.iter().flatten().all(exact) {
            return Ok(None);
        }
        let fitted = strings.iter().map(|text| text.map(|text| self.fit(text)).transpose());
        Ok(Some(Arc::new(fitted.collect::<Result<StringArray>>()?)))
    }

    fn fit(&self, text: &str) -> Result<String> {
        let end = text.char_indices().nth(self.characters).map_or(text.len(), |(index, _)| index);
        let (kept, rest) = text.split_at(end);
        if !rest.bytes().all(|byte| byte == b' ') {
            return Err(Error::schema_mismatch(format!(
                "column '{}' has the type {self}, and a value has {} characters: '{}…'",
                self.column,
                text.chars().count(),
                kept.chars().take(40).collect::<String>()
            )));
        }
        let missing = self.characters.saturating_sub(kept.chars().count());
        Ok(match self.kind {
            Kind::Char => format!("{kept}{}", " ".repeat(missing)),
            Kind::Varchar => kept.to_owned(),
        })
    }
}

impl std::fmt::Display for Length {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.kind {
            Kind::Char => "char",
            Kind::Varchar => "varchar",
        };
        write!(f, "{name}({})", self.characters)
    }
}
