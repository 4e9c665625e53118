//! Reads those parts of Thrift's compact protocol that are needed to walk through a footer.
//!
//! This reader is stricter than the decoder, which ignores the types of fields that it knows. Wherever the two might
//! interpret the same bytes differently, this reader fails.

/// The error for a footer that is not in Thrift's format or ends too early.
const BROKEN: &str = "the footer cannot be decoded";

/// The maximum nesting depth of unknown fields.
const LEVELS: usize = 32;

/// The type of a struct's field, or of a list's elements. The type code of a boolean field also contains its value, so
/// no bytes follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Struct,
}

impl Kind {
    fn of(code: u8) -> Result<Self, String> {
        Ok(match code {
            1 | 2 => Self::Bool,
            3 => Self::Byte,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            9 => Self::List,
            12 => Self::Struct,
            // A schema does not use sets, maps or UUIDs.
            _ => return Err(BROKEN.to_owned()),
        })
    }
}

/// The unread bytes of a footer.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl Input<'_> {
    /// Reads the header of a struct's field, and returns the field's id and type. Returns `None` at the end of the
    /// struct.
    pub(super) fn field(&mut self, last: i16) -> Result<Option<(i16, Kind)>, String> {
        let byte = self.byte()?;
        if byte & 0x0f == 0 {
            return Ok(None);
        }
        let id = match byte >> 4 {
            0 => i16::try_from(self.signed()?).ok(),
            delta => last.checked_add(i16::from(delta)),
        };
        let id = id.filter(|id| *id > last).ok_or("the fields of the footer are not in order")?;
        Ok(Some((id, Kind::of(byte & 0x0f)?)))
    }

    /// Reads the header of a list, and returns its length and the type of its elements. Each element takes at least one
    /// byte.
    pub(super) fn list(&mut self) -> Result<(usize, Kind), String> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok((0, Kind::Byte));
        }
        let length = match byte >> 4 {
            15 => usize::try_from(self.unsigned()?).map_err(|_| BROKEN)?,
            short => usize::from(short),
        };
        match length <= self.0.len() {
            true => Ok((length, Kind::of(byte & 0x0f)?)),
            false => {
                Err(format!("the footer has a list of {length} elements, but only {} bytes", self.0.len()))
            }
        }
    }

    pub(super) fn int(&mut self) -> Result<i32, String> {
        Ok(i32::try_from(self.signed()?).map_err(|_| BROKEN)?)
    }

    /// Skips a value.
    pub(super) fn skip(&mut self, kind: Kind) -> Result<(), String> {
        self.skip_within(kind, LEVELS)
    }

    fn skip_within(&mut self, kind: Kind, levels: usize) -> Result<(), String> {
        let levels = levels.checked_sub(1).ok_or(BROKEN)?;
        match kind {
            Kind::Bool => Ok(()),
            Kind::Byte => self.byte().map(|_| ()),
            Kind::I16 | Kind::I32 | Kind::I64 => self.unsigned().map(|_| ()),
            Kind::Double => self.take(8),
            Kind::Binary => {
                let length = self.unsigned()?;
                self.take(length)
            }
            Kind::List => match self.list()? {
                // Decoders disagree about the size of booleans in lists, so these are refused.
                (length, Kind::Bool) if length > 0 => Err(BROKEN.to_owned()),
                (length, kind) => (0..length).try_for_each(|_| self.skip_within(kind, levels)),
            },
            Kind::Struct => {
                let mut last = 0;
                while let Some((id, kind)) = self.field(last)? {
                    self.skip_within(kind, levels)?;
                    last = id;
                }
                Ok(())
            }
        }
    }

    fn byte(&mut self) -> Result<u8, String> {
        let (first, rest) = self.0.split_first().ok_or(BROKEN)?;
        self.0 = rest;
        Ok(*first)
    }

    fn take(&mut self, length: u64) -> Result<(), String> {
        let rest = usize::try_from(length).ok().and_then(|length| self.0.get(length..));
        self.0 = rest.ok_or(BROKEN)?;
        Ok(())
    }

    fn unsigned(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(BROKEN.to_owned())
    }

    fn signed(&mut self) -> Result<i64, String> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}
