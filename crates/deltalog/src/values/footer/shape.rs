//! Checks the structure that a footer describes: the nesting depth of its schema, the children of its groups, and the
//! number of its row groups. (Parquet, `FileMetaData` in `parquet.thrift`.)

use super::thrift::{Input, Kind};
use crate::limits::{PARQUET_LEVELS, ROW_GROUPS};

/// Refuses a footer that would make the decoder exhaust the stack or the memory.
pub(super) fn check(footer: &[u8]) -> Result<(), String> {
    let mut input = Input(footer);
    let (mut last, mut has_schema) = (0, false);
    while let Some((id, kind)) = input.field(last)? {
        match (id, kind) {
            (1, Kind::I32) | (3, Kind::I64) => input.skip(kind)?,
            (2, Kind::List) => {
                check_schema(&mut input)?;
                has_schema = true;
            }
            (4, Kind::List) if has_schema => {
                let (length, _) = input.list()?;
                return match length <= ROW_GROUPS {
                    true => Ok(()),
                    false => Err(format!("the footer has {length} row groups, more than {ROW_GROUPS}")),
                };
            }
            _ => return Err(format!("the footer has an unexpected field {id}")),
        }
        last = id;
    }
    // If fields are missing, the decoder reports it.
    Ok(())
}

/// Walks over the elements of a schema. They are in the order of a depth-first traversal, and the root is the first
/// one.
fn check_schema(input: &mut Input<'_>) -> Result<(), String> {
    let (length, kind) = input.list()?;
    if kind != Kind::Struct && length > 0 {
        return Err("the schema of the footer is not a list of elements".to_owned());
    }
    // For each group that is not complete, the number of children that are still to come.
    let mut open: Vec<usize> = Vec::new();
    let mut expected: usize = 1;
    for index in 0..length {
        let left = length - index - 1;
        let children = children_of_element(input)?;
        let children = usize::try_from(children)
            .map_err(|_| format!("a group of the footer's schema has {children} children"))?;
        if let Some(siblings) = open.last_mut() {
            *siblings = siblings.saturating_sub(1);
        }
        expected = expected.saturating_sub(1).saturating_add(children);
        if expected > left {
            return Err(format!(
                "a group of the footer's schema has {children} children, but only {left} elements follow"
            ));
        }
        if children > 0 {
            open.push(children);
        }
        while open.last() == Some(&0) {
            open.pop();
        }
        if open.len() > PARQUET_LEVELS {
            return Err(format!("the footer's schema has more than {PARQUET_LEVELS} levels"));
        }
    }
    Ok(())
}

/// Reads an element of a schema (`SchemaElement`), and returns the number of its children.
fn children_of_element(input: &mut Input<'_>) -> Result<i32, String> {
    let (mut last, mut children) = (0, 0);
    while let Some((id, kind)) = input.field(last)? {
        match (id, kind) {
            (5, Kind::I32) => children = input.int()?,
            (1..=9, Kind::I32) if id != 4 => input.skip(kind)?,
            (4, Kind::Binary) => input.skip(kind)?,
            (10, Kind::Struct) => skip_logical_type(input)?,
            (..=10, _) => {
                return Err(format!("an element of the footer's schema has a field {id} of the wrong type"));
            }
            _ => input.skip(kind)?,
        }
        last = id;
    }
    Ok(children)
}

/// Skips a union `LogicalType`.
fn skip_logical_type(input: &mut Input<'_>) -> Result<(), String> {
    let mut last = 0;
    while let Some((id, kind)) = input.field(last)? {
        match (fields_of(id), kind) {
            (Some(fields), Kind::Struct) => skip_fields(input, fields)?,
            (Some(_), _) => {
                return Err(format!("a logical type {id} of the footer's schema is not a struct"));
            }
            (None, _) => input.skip(kind)?,
        }
        last = id;
    }
    Ok(())
}

/// Returns the types of the fields of a logical type, starting with the first one.
fn fields_of(id: i16) -> Option<&'static [Kind]> {
    Some(match id {
        1..=4 | 6 | 11..=15 => &[],
        5 => &[Kind::I32, Kind::I32],
        7 | 8 => &[Kind::Bool, Kind::Struct],
        10 => &[Kind::Byte, Kind::Bool],
        16 => &[Kind::Byte],
        17 => &[Kind::Binary],
        18 => &[Kind::Binary, Kind::I32],
        _ => return None,
    })
}

fn skip_fields(input: &mut Input<'_>, expected: &[Kind]) -> Result<(), String> {
    let mut last = 0;
    while let Some((id, kind)) = input.field(last)? {
        let known = usize::try_from(id).ok().and_then(|id| expected.get(id.checked_sub(1)?));
        if known.is_some_and(|known| *known != kind) {
            return Err(format!("a logical type of the footer's schema has a field {id} of the wrong type"));
        }
        input.skip(kind)?;
        last = id;
    }
    Ok(())
}
