//! A table with an entry for each stream that was used: an endpoint whose peer is idle, or has few flows, has few
//! entries.

use crate::ingress::STREAMS;
use std::ops::{Index, IndexMut};

/// Entries by stream.
#[derive(Debug)]
pub(crate) struct StreamTable<T>(Vec<Option<Box<T>>>);

impl<T> StreamTable<T> {
    pub(crate) fn new() -> Self {
        Self((0..STREAMS).map(|_| None).collect())
    }

    /// The entry of a stream; `make` creates it if there is none.
    pub(crate) fn get_or_insert_with(&mut self, stream: u8, make: impl FnOnce() -> T) -> &mut T {
        self.0[usize::from(stream)].get_or_insert_with(|| Box::new(make()))
    }

    /// The entries with their streams.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u8, &T)> {
        (0..=u8::MAX).zip(&self.0).filter_map(|(stream, entry)| Some((stream, &**entry.as_ref()?)))
    }
}

/// Of a stream that was used.
impl<T> Index<u8> for StreamTable<T> {
    type Output = T;

    fn index(&self, stream: u8) -> &T {
        self.0[usize::from(stream)].as_ref().expect("the stream was used")
    }
}

impl<T> IndexMut<u8> for StreamTable<T> {
    fn index_mut(&mut self, stream: u8) -> &mut T {
        self.0[usize::from(stream)].as_mut().expect("the stream was used")
    }
}
