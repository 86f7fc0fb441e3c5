//! The out-of-order queue: the fragments of a stream that wait for earlier ones, by number.

use std::collections::{BTreeMap, VecDeque};

/// Capacity below which the queue does not shrink unless it is empty, entries.
const MIN_CAPACITY: usize = 8;

/// Entries by number. Entries that arrive in the order of their numbers, as nearly all do if each path keeps the order,
/// are in a queue; the rest are in a map. Each call takes time logarithmic in the number of entries (amortised: the
/// queue is sometimes reallocated).
#[derive(Debug)]
pub(super) struct OutOfOrderQueue<T> {
    /// In the order of the numbers; the last is the largest of all.
    queue: VecDeque<(u64, T)>,
    map: BTreeMap<u64, T>,
}

impl<T> Default for OutOfOrderQueue<T> {
    fn default() -> Self {
        Self { queue: VecDeque::new(), map: BTreeMap::new() }
    }
}

impl<T> OutOfOrderQueue<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The entry with the smallest number.
    pub(super) fn first(&self) -> Option<(u64, &T)> {
        let (number, entry) = self.queue.front()?;
        match self.map.first_key_value() {
            Some((key, other)) if key < number => Some((*key, other)),
            _ => Some((*number, entry)),
        }
    }

    /// Removes the entry with this number, which must be the smallest.
    pub(super) fn remove_first(&mut self, number: u64) -> Option<T> {
        if let Some(first) = self.map.first_entry().filter(|first| *first.key() == number) {
            return Some(first.remove());
        }
        if self.queue.front()?.0 != number {
            return None;
        }
        let (_, entry) = self.queue.pop_front()?;
        if self.queue.is_empty() {
            self.queue = VecDeque::new();
        } else if self.queue.capacity() > MIN_CAPACITY && self.queue.len() < self.queue.capacity() / 3 {
            self.queue.shrink_to(self.queue.len() * 3 / 2);
        }
        Some(entry)
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let is_within = self.queue.back().is_some_and(|(last, _)| number <= *last);
        is_within
            && (self.map.contains_key(&number) || self.queue.binary_search_by_key(&number, |(key, _)| *key).is_ok())
    }

    /// Adds the entry of a number that it does not [contain](Self::contains).
    pub(super) fn insert(&mut self, number: u64, entry: T) {
        if self.queue.back().is_none_or(|(last, _)| *last < number) {
            self.queue.push_back((number, entry));
        } else {
            self.map.insert(number, entry);
        }
    }

    /// All entries, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let map = self.map.iter().map(|(number, entry)| (*number, entry));
        self.queue.iter().map(|(number, entry)| (*number, entry)).chain(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_sorted_map_and_keeps_no_more_than_three_places_an_entry(
            numbers in proptest::collection::vec(0..400u64, 0..400),
        ) {
            let (mut queue, mut model) = (OutOfOrderQueue::default(), BTreeMap::new());
            for number in numbers {
                prop_assert_eq!(queue.contains(number), model.contains_key(&number));
                if number % 5 == 0 && let Some((first, entry)) = model.pop_first() {
                    prop_assert_eq!(queue.remove_first(u64::MAX), None);
                    prop_assert_eq!(queue.remove_first(first), Some(entry));
                } else if !queue.contains(number) {
                    queue.insert(number, -(number as i64));
                    model.insert(number, -(number as i64));
                }
                prop_assert_eq!(queue.is_empty(), model.is_empty());
                prop_assert_eq!(queue.first(), model.first_key_value().map(|(number, entry)| (*number, entry)));
                let entries: BTreeMap<_, _> = queue.iter().map(|(number, entry)| (number, *entry)).collect();
                prop_assert_eq!(&entries, &model);
                prop_assert!(queue.queue.capacity() <= (3 * queue.queue.len() + 3).max(MIN_CAPACITY));
            }
        }
    }
}
