//! Values of a static that grows.

use std::iter::successors;
use std::sync::OnceLock;

/// Values that a static owns and lends until the program ends. Values are added, and none is changed or removed, so that
/// reading takes no lock.
#[derive(Debug)]
pub struct Kept<T: 'static>(OnceLock<Box<Node<T>>>);

#[derive(Debug)]
struct Node<T: 'static> {
    value: T,
    next: Kept<T>,
}

impl<T> Kept<T> {
    /// No values.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// The values in the order in which they were added.
    pub fn iter(&'static self) -> impl Iterator<Item = &'static T> {
        self.nodes().map(|node| &node.value)
    }

    fn nodes(&'static self) -> impl Iterator<Item = &'static Node<T>> {
        successors(self.0.get(), |node| node.next.0.get()).map(|node| &**node)
    }

    /// Adds a value, unless `refuse` returns something for it. `refuse` sees all values that are there before it.
    pub(crate) fn add<R>(&'static self, value: T, refuse: impl Fn(&T) -> Option<R>) -> Result<&'static T, R> {
        let mut node = Box::new(Node { value, next: Self::new() });
        loop {
            let end = self.nodes().last().map_or(self, |last| &last.next);
            if let Some(reason) = refuse(&node.value) {
                return Err(reason);
            }
            match end.0.set(node) {
                Ok(()) => return Ok(end.iter().next().expect("it has just been added")),
                // Another thread was faster.
                Err(refused) => node = refused,
            }
        }
    }
}

impl<T: PartialEq> Kept<T> {
    /// Keeps a value. An equal one is kept once.
    pub fn keep(&'static self, value: T) -> &'static T {
        self.add(value, |value| self.iter().find(|known| *known == value)).unwrap_or_else(|known| known)
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Keeps a text until the program ends: names and descriptions of algorithms that are registered at run time.
pub fn kept_text(text: String) -> &'static str {
    static TEXTS: Kept<String> = Kept::new();
    TEXTS.keep(text)
}
