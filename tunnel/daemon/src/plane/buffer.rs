//! Buffers that are used again and again, and slices of them that are cheap to clone.
//!
//! A [`Fresh`] buffer has one owner, who may write: the kernel reads packets into it, ciphers open datagrams in it. Frozen,
//! it is read through [`Slice`]s, which count references. With the last one the buffer goes back to its pool, never to
//! the allocator: after the start no packet costs an allocation. Buffers come in two classes, so that a lone small packet
//! does not pin 64 KiB. Each class is bounded: when nothing is free and the bound is reached, a packet is dropped.

use super::report::BufferReport;
use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::rc::{Rc, Weak};

/// The bytes of a large buffer: the largest IP packet, its virtio-net header, and room to spare.
pub(super) const LARGE: usize = 66 * 1024;
/// The bytes of a small buffer.
pub(super) const SMALL: usize = 2 * 1024;

/// The two classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// [`SMALL`] bytes.
    Small,
    /// [`LARGE`] bytes.
    Large,
}

/// Buffers that wait to be used, and how many there are of each class in all.
#[derive(Default)]
struct Home {
    free: RefCell<[Vec<Rc<Buffer>>; 2]>,
}

struct Buffer {
    bytes: Box<[u8]>,
    class: Class,
    home: Weak<Home>,
}

/// Where buffers come from.
pub(super) struct Pool {
    home: Rc<Home>,
    made: [usize; 2],
    bounds: [usize; 2],
    exhausted: u64,
}

impl Pool {
    /// At most so many buffers of each class. None is made before it is needed.
    pub(super) fn new(small: usize, large: usize) -> Self {
        Self { home: Rc::default(), made: [0; 2], bounds: [small, large], exhausted: 0 }
    }

    /// A buffer to be written; `None` if all are in use and no more may be made.
    pub(super) fn take(&mut self, class: Class) -> Option<Fresh> {
        let free = self.home.free.borrow_mut()[class as usize].pop();
        free.or_else(|| self.make(class)).map(|buffer| Fresh { handle: Handle(Some(buffer)) })
    }

    fn make(&mut self, class: Class) -> Option<Rc<Buffer>> {
        if self.made[class as usize] == self.bounds[class as usize] {
            self.exhausted += 1;
            return None;
        }
        self.made[class as usize] += 1;
        let size = if class == Class::Small { SMALL } else { LARGE };
        Some(Rc::new(Buffer { bytes: vec![0; size].into(), class, home: Rc::downgrade(&self.home) }))
    }

    /// Freezes the first `len` bytes of `fresh`, which is replaced by another buffer of its class. What fits a small
    /// buffer is copied into one, and `fresh` stays.
    ///
    /// `None`, and the bytes are lost, if no buffer is left.
    pub(super) fn keep(&mut self, fresh: &mut Fresh, len: usize) -> Option<Slice> {
        let class = if len <= SMALL { Class::Small } else { fresh.class() };
        let mut other = self.take(class)?;
        if len <= SMALL {
            other[..len].copy_from_slice(&fresh[..len]);
        } else {
            std::mem::swap(&mut other, fresh);
        }
        Some(other.freeze(len))
    }

    /// What was made, and how often that was not enough.
    pub(super) fn report(&self) -> BufferReport {
        let [small, large] = self.made;
        BufferReport { large, small, exhausted: self.exhausted }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({:?})", self.report())
    }
}

/// A counted reference; the last one sends the buffer home. `Some` until it is dropped.
#[derive(Clone)]
struct Handle(Option<Rc<Buffer>>);

impl Handle {
    fn buffer(&self) -> &Buffer {
        self.0.as_deref().expect("a handle is empty only while it is dropped")
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Some(buffer) = self.0.take().filter(|buffer| Rc::strong_count(buffer) == 1) else { return };
        if let Some(home) = buffer.home.upgrade() {
            home.free.borrow_mut()[buffer.class as usize].push(buffer);
        }
    }
}

/// A buffer with one owner, who may write.
pub(super) struct Fresh {
    handle: Handle,
}

impl Fresh {
    fn class(&self) -> Class {
        self.handle.buffer().class
    }

    /// All of it, to be written.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let buffer = self.handle.0.as_mut().and_then(Rc::get_mut);
        &mut buffer.expect("a fresh buffer has one owner").bytes
    }

    /// The first `len` bytes, to be read from now on.
    pub(super) fn freeze(self, len: usize) -> Slice {
        assert!(len <= self.len(), "{len} bytes of a buffer of {}", self.len());
        Slice { handle: self.handle, start: 0, end: len as u32 }
    }
}

impl Deref for Fresh {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.handle.buffer().bytes
    }
}

impl std::ops::DerefMut for Fresh {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

impl fmt::Debug for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fresh({:?})", self.class())
    }
}

/// Bytes of a shared buffer.
#[derive(Clone)]
pub(super) struct Slice {
    handle: Handle,
    start: u32,
    end: u32,
}

impl Slice {
    /// The bytes `from..to` of this slice, in the same buffer.
    pub(super) fn slice(&self, from: u32, to: u32) -> Self {
        assert!(from <= to && self.start + to <= self.end, "{from}..{to} of {} bytes", self.len());
        Self { handle: self.handle.clone(), start: self.start + from, end: self.start + to }
    }

    /// The bytes to be changed, if nobody else reads the buffer.
    pub(super) fn unique_mut(&mut self) -> Option<&mut [u8]> {
        let range = self.start as usize..self.end as usize;
        self.handle.0.as_mut().and_then(Rc::get_mut).map(|buffer| &mut buffer.bytes[range])
    }
}

impl Deref for Slice {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.handle.buffer().bytes[self.start as usize..self.end as usize]
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_with_its_last_slice_and_only_then() {
        let mut pool = Pool::new(0, 1);
        let mut fresh = pool.take(Class::Large).expect("one may be made");
        fresh.bytes_mut()[..4].copy_from_slice(b"rope");
        let whole = fresh.freeze(4);
        let part = whole.slice(1, 3).slice(1, 2);
        drop(whole);
        assert!(pool.take(Class::Large).is_none(), "a slice still reads it");
        assert_eq!(&*part, b"p");
        drop(part);
        assert!(pool.take(Class::Large).is_some());
        assert_eq!(pool.report(), BufferReport { large: 1, small: 0, exhausted: 1 });
    }

    #[test]
    fn small_packets_move_to_small_buffers_and_large_ones_stay_where_they_are() {
        let mut pool = Pool::new(1, 2);
        let mut scratch = pool.take(Class::Large).expect("two may be made");
        scratch[0] = 7;
        let small = pool.keep(&mut scratch, 100).expect("one small buffer");
        scratch[0] = 8;
        let at = scratch.as_ptr();
        let large = pool.keep(&mut scratch, 60_000).expect("the second large buffer");
        assert_eq!((small[0], small.len(), large[0], large.len()), (7, 100, 8, 60_000));
        assert_eq!(large.as_ptr(), at, "not copied");
        assert_ne!(scratch.as_ptr(), at);
        assert!(pool.keep(&mut scratch, 60_000).is_none(), "both large ones are in use");
    }

    #[test]
    fn slices_outlive_their_pool() {
        let mut pool = Pool::new(1, 0);
        let slice = pool.take(Class::Small).expect("one may be made").freeze(SMALL);
        drop(pool);
        assert_eq!(slice.len(), SMALL);
    }
}
