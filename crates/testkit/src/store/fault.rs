//! The ways in which a request can fail.

use super::director::Op;

/// The way in which a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request has no effect and gets no response, as after a time-out, a broken connection or a status of 5xx.
    LostBefore,
    /// The request takes effect but gets no response.
    LostAfter,
    /// The request gets no response, and takes effect this many milliseconds later.
    Late(i64),
    /// The request has no effect, and the response says that the file already exists: a status of 409.
    ExistsBefore,
    /// The request takes effect, but the response says that the file already exists, as if a client had repeated a
    /// put.
    ExistsAfter,
    /// The request has no effect, and the response says that permission is denied.
    Denied,
    /// The request takes effect, but the response says that permission is denied.
    DeniedAfter,
    /// The response to a read ends in the middle.
    Torn,
    /// The process crashes before the request takes effect.
    CrashBefore,
    /// The process crashes after the request has taken effect, and before the response.
    CrashAfter,
}

impl Fault {
    /// Returns the faults that requests of kind `op` can have, except for crashes and late effects.
    pub fn of(op: Op) -> &'static [Self] {
        match op {
            Op::List => &[Self::LostBefore, Self::Denied],
            Op::Get => &[Self::LostBefore, Self::Denied, Self::Torn],
            Op::Put | Op::Part | Op::Delete | Op::Copy => {
                &[Self::LostBefore, Self::LostAfter, Self::Denied, Self::DeniedAfter]
            }
            Op::Create => &[
                Self::LostBefore,
                Self::LostAfter,
                Self::Denied,
                Self::DeniedAfter,
                Self::ExistsBefore,
                Self::ExistsAfter,
            ],
        }
    }

    /// Returns whether a changing request with this fault takes effect at once.
    pub fn has_effect(self) -> bool {
        matches!(self, Self::LostAfter | Self::ExistsAfter | Self::DeniedAfter | Self::CrashAfter)
    }

    /// Returns whether the process ends.
    pub fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter)
    }
}
