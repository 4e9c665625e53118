//! The ways in which a request fails.

use super::director::Op;

/// The way in which a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request has no effect, and there is no answer: a time-out, a broken connection, a status of 5xx.
    LostBefore,
    /// The request takes effect, but there is no answer.
    LostAfter,
    /// There is no answer, and the request takes effect this many milliseconds later.
    Late(i64),
    /// The request has no effect, and the answer is that the file already exists: a status of 409.
    ExistsBefore,
    /// The request takes effect, but the answer is that the file already exists, as when a client repeats a put.
    ExistsAfter,
    /// The request has no effect, and the answer is that permission is denied.
    Denied,
    /// The request takes effect, but the answer is that permission is denied.
    DeniedAfter,
    /// The answer of a read ends in the middle.
    Torn,
    /// The process ends before the request takes effect.
    CrashBefore,
    /// The process ends after the request took effect, before the answer.
    CrashAfter,
}

impl Fault {
    /// Returns the faults of requests of kind `op`, except for crashes and late effects.
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

    /// Returns whether a request that changes something does so before it is answered.
    pub fn has_effect(self) -> bool {
        matches!(self, Self::LostAfter | Self::ExistsAfter | Self::DeniedAfter | Self::CrashAfter)
    }

    /// Returns whether the process ends.
    pub fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter)
    }
}
