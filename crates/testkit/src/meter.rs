//! An allocator that measures the peak memory of a piece of code.
//!
//! - The meter counts per thread: the bytes that a thread allocates during [`measure`], minus the bytes that it
//!   frees. Threads that this thread starts are not counted.
//! - A single allocation of more than [`Meter::MOST_AT_ONCE`] bytes is refused, which ends the process as if memory
//!   had run out.
#![allow(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with counters. Install it with `#[global_allocator]`.
#[derive(Debug, Clone, Copy)]
pub struct Meter;

impl Meter {
    /// The maximum size of a single allocation in bytes, which is more than any test needs.
    pub const MOST_AT_ONCE: usize = 4 << 30;
}

/// Calls `run` and returns its result. Also returns the peak of the memory that this thread held, in bytes, compared
/// with the memory that it held before.
///
/// The peak is 0 if [`Meter`] is not the global allocator.
pub fn measure<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let result = run();
    (result, usize::try_from(PEAK.get() - before).unwrap_or_default())
}

fn count(bytes: isize) {
    // If the thread is ending, its counters may no longer exist.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call is passed unchanged to the system's allocator. Counting does not allocate and does not panic.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > Self::MOST_AT_ONCE {
            return std::ptr::null_mut();
        }
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() > Self::MOST_AT_ONCE {
            return std::ptr::null_mut();
        }
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if new_size > Self::MOST_AT_ONCE {
            return std::ptr::null_mut();
        }
        count(new_size as isize - layout.size() as isize);
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
