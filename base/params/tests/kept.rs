//! Values that a static keeps.

use ropewalk_params::{Kept, kept_text};
use std::thread;

#[test]
fn equal_values_are_kept_once_whichever_thread_brings_them() {
    static NUMBERS: Kept<u32> = Kept::new();
    thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || (first..first + 20).for_each(|number| assert_eq!(*NUMBERS.keep(number), number)));
        }
    });
    let mut numbers: Vec<u32> = NUMBERS.iter().copied().collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..23));
}

#[test]
fn a_text_keeps_its_place() {
    assert!(std::ptr::eq(kept_text("one".to_owned()), kept_text("one".to_owned())));
}
