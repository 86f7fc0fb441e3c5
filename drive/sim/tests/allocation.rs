//! The steady state does not allocate: a run of twice the length asks the allocator for no more.
#![allow(unsafe_code, reason = "a counting allocator cannot be written without")]

mod common;

use common::{one_link, pipe};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Rate, Span};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(algorithm: &str, seconds: u64) -> u64 {
    let experiment = one_link(algorithm, pipe(Rate::from_mbit(100), Span::from_millis(10), 165), seconds);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    ropewalk_sim::run(&experiment, 1).expect("registered");
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn twice_the_length_allocates_no_more() {
    for entry in control::registry::REGISTRY {
        let (short, long) = (allocations(entry.name, 20), allocations(entry.name, 40));
        // Sixteen: buffers that double once more when a rare burst is deeper than all before it.
        assert!(long <= short + 16, "{}: {short} allocations in 20 s, {long} in 40 s", entry.name);
    }
}
