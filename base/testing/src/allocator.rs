//! A counting allocator: the heap allocations of a test's thread.
#![allow(unsafe_code, reason = "a counting allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with counts per thread, because each test runs in its own thread. A test program declares it
/// with `#[global_allocator]`.
#[derive(Debug)]
pub struct CountingAllocator;

thread_local! {
    static BYTES_IN_USE: Cell<i64> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES_IN_USE.set(BYTES_IN_USE.get() + layout.size() as i64);
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES_IN_USE.set(BYTES_IN_USE.get() - layout.size() as i64);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that the current thread has allocated and not freed; negative if it has freed another thread's.
#[must_use]
pub fn bytes_in_use() -> i64 {
    BYTES_IN_USE.get()
}

/// Allocations of the current thread so far.
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}
