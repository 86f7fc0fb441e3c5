//! Pooled buffers, and reference-counted slices of them.
//!
//! A [`BufferMut`] has one owner, who may write: the kernel reads packets into it, ciphers decrypt in it. Frozen, it is
//! read through [`BufferSlice`]s. Dropping the last slice returns the buffer to its pool, never to the allocator: after
//! the start no packet costs an allocation. There are two size classes, so that a small packet does not pin 64 KiB.
//! Each class is bounded: if no buffer is free and the bound is reached, a packet is dropped.

use super::report::BufferReport;
use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::rc::{Rc, Weak};

/// The bytes of a large buffer: the largest IP packet and its virtio-net header, rounded up.
pub(super) const LARGE_BUFFER_BYTES: usize = 66 * 1024;
/// The bytes of a small buffer.
pub(super) const SMALL_BUFFER_BYTES: usize = 2 * 1024;

/// Bytes charged for a buffer in addition to its own: the reference counts, the allocator's overhead, and the place of
/// its slice in a queue.
pub(super) const OVERHEAD_BYTES: u64 = 256;

/// A size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeClass {
    /// [`SMALL_BUFFER_BYTES`] bytes.
    Small,
    /// [`LARGE_BUFFER_BYTES`] bytes.
    Large,
}

/// The free buffers of each size class.
#[derive(Default)]
struct FreeList {
    buffers: RefCell<[Vec<Rc<Buffer>>; 2]>,
}

struct Buffer {
    bytes: Box<[u8]>,
    class: SizeClass,
    /// Whether it belongs to a pool.
    is_pooled: bool,
    free_list: Weak<FreeList>,
}

/// A pool of buffers.
pub(super) struct Pool {
    free_list: Rc<FreeList>,
    allocated: [usize; 2],
    max: [usize; 2],
    exhausted: u64,
}

impl Pool {
    /// A pool of at most `small` and `large` buffers, which are allocated when they are needed.
    pub(super) fn new(small: usize, large: usize) -> Self {
        Self { free_list: Rc::default(), allocated: [0; 2], max: [small, large], exhausted: 0 }
    }

    /// Raises the bounds to these numbers of buffers.
    pub(super) fn grow(&mut self, small: usize, large: usize) {
        self.max = [self.max[0].max(small), self.max[1].max(large)];
    }

    /// A buffer to write to; `None` if all are in use and the bound is reached.
    pub(super) fn take(&mut self, class: SizeClass) -> Option<BufferMut> {
        let free = self.free_list.buffers.borrow_mut()[class as usize].pop();
        free.or_else(|| self.allocate(class)).map(|buffer| BufferMut { buffer: BufferRef(Some(buffer)) })
    }

    fn allocate(&mut self, class: SizeClass) -> Option<Rc<Buffer>> {
        if self.allocated[class as usize] == self.max[class as usize] {
            self.exhausted += 1;
            return None;
        }
        self.allocated[class as usize] += 1;
        let size = if class == SizeClass::Small { SMALL_BUFFER_BYTES } else { LARGE_BUFFER_BYTES };
        Some(Rc::new(Buffer {
            bytes: vec![0; size].into(),
            class,
            is_pooled: true,
            free_list: Rc::downgrade(&self.free_list),
        }))
    }

    /// Freezes the first `len` bytes of `buffer`, which is replaced by a free buffer of its class. Bytes that fit a
    /// small buffer are copied into one, and `buffer` stays.
    ///
    /// `None`, and the bytes are dropped, if no buffer is free.
    pub(super) fn freeze(&mut self, buffer: &mut BufferMut, len: usize) -> Option<BufferSlice> {
        let class = if len <= SMALL_BUFFER_BYTES { SizeClass::Small } else { buffer.class() };
        let mut frozen = self.take(class)?;
        if len <= SMALL_BUFFER_BYTES {
            frozen[..len].copy_from_slice(&buffer[..len]);
        } else {
            std::mem::swap(&mut frozen, buffer);
        }
        Some(frozen.freeze(len))
    }

    /// Counters of the pool.
    pub(super) fn report(&self) -> BufferReport {
        let [small, large] = self.allocated;
        BufferReport { large, small, exhausted: self.exhausted }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({:?})", self.report())
    }
}

/// A counted reference; the last one returns the buffer to its pool. `None` only during the drop.
#[derive(Clone)]
struct BufferRef(Option<Rc<Buffer>>);

impl BufferRef {
    fn buffer(&self) -> &Buffer {
        self.0.as_deref().expect("a reference is empty only while it is dropped")
    }
}

impl BufferRef {
    /// A buffer that goes back to the allocator.
    fn outside(bytes: Vec<u8>) -> Self {
        Self(Some(Rc::new(Buffer {
            bytes: bytes.into(),
            class: SizeClass::Large,
            is_pooled: false,
            free_list: Weak::new(),
        })))
    }
}

impl Drop for BufferRef {
    fn drop(&mut self) {
        let Some(buffer) = self.0.take().filter(|buffer| Rc::strong_count(buffer) == 1) else { return };
        if let Some(free_list) = buffer.free_list.upgrade() {
            free_list.buffers.borrow_mut()[buffer.class as usize].push(buffer);
        }
    }
}

/// A buffer with one owner, who may write to it.
pub(super) struct BufferMut {
    buffer: BufferRef,
}

impl BufferMut {
    /// A buffer outside of any pool.
    pub(super) fn new(size: usize) -> Self {
        Self { buffer: BufferRef::outside(vec![0; size]) }
    }

    fn class(&self) -> SizeClass {
        self.buffer.buffer().class
    }

    /// All bytes of the buffer.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let buffer = self.buffer.0.as_mut().and_then(Rc::get_mut);
        &mut buffer.expect("a mutable buffer has one owner").bytes
    }

    /// The first `len` bytes, read-only from now on.
    pub(super) fn freeze(self, len: usize) -> BufferSlice {
        assert!(len <= self.len(), "{len} bytes of a buffer of {}", self.len());
        BufferSlice { buffer: self.buffer, start: 0, end: len as u32 }
    }
}

impl Deref for BufferMut {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.buffer.buffer().bytes
    }
}

impl std::ops::DerefMut for BufferMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

impl fmt::Debug for BufferMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferMut({:?})", self.class())
    }
}

/// Bytes of a shared buffer.
#[derive(Clone)]
pub(super) struct BufferSlice {
    buffer: BufferRef,
    start: u32,
    end: u32,
}

impl BufferSlice {
    /// The bytes `start..end` of this slice, in the same buffer.
    pub(super) fn slice(&self, start: u32, end: u32) -> Self {
        assert!(start <= end && self.start + end <= self.end, "{start}..{end} of {} bytes", self.len());
        Self { buffer: self.buffer.clone(), start: self.start + start, end: self.start + end }
    }

    /// The bytes, if no other slice of the buffer exists.
    pub(super) fn unique_mut(&mut self) -> Option<&mut [u8]> {
        let range = self.start as usize..self.end as usize;
        self.buffer.0.as_mut().and_then(Rc::get_mut).map(|buffer| &mut buffer.bytes[range])
    }
}

impl BufferSlice {
    /// Memory that the slice keeps in use, bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.buffer.buffer().bytes.len() as u64 + OVERHEAD_BYTES
    }

    /// Copies the bytes out of their buffer, unless they fill it and it belongs to no pool.
    pub(super) fn detach(&mut self) {
        let buffer = self.buffer.buffer();
        if buffer.is_pooled || buffer.bytes.len() != self.len() {
            *self = Self::from(self.to_vec());
        }
    }
}

impl From<Vec<u8>> for BufferSlice {
    /// All bytes, outside of any pool.
    fn from(bytes: Vec<u8>) -> Self {
        let end = bytes.len() as u32;
        Self { buffer: BufferRef::outside(bytes), start: 0, end }
    }
}

impl relay::Chunk for BufferSlice {
    fn len(&self) -> u32 {
        self.end - self.start
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        self.slice(start, end)
    }

    fn detach(&mut self) {
        self.detach();
    }
}

impl Deref for BufferSlice {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.buffer.buffer().bytes[self.start as usize..self.end as usize]
    }
}

impl AsRef<[u8]> for BufferSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for BufferSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferSlice({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_returns_to_the_pool_when_its_last_slice_is_dropped() {
        let mut pool = Pool::new(0, 1);
        let mut buffer_mut = pool.take(SizeClass::Large).expect("one is free");
        buffer_mut.bytes_mut()[..4].copy_from_slice(b"rope");
        let slice = buffer_mut.freeze(4);
        let part = slice.slice(1, 3).slice(1, 2);
        drop(slice);
        assert!(pool.take(SizeClass::Large).is_none(), "a slice still reads it");
        assert_eq!(&*part, b"p");
        drop(part);
        assert!(pool.take(SizeClass::Large).is_some());
        assert_eq!(pool.report(), BufferReport { large: 1, small: 0, exhausted: 1 });
    }

    #[test]
    fn small_packets_move_to_small_buffers_and_large_ones_stay_where_they_are() {
        let mut pool = Pool::new(1, 2);
        let mut scratch = pool.take(SizeClass::Large).expect("two are free");
        scratch[0] = 7;
        let small = pool.freeze(&mut scratch, 100).expect("one small buffer");
        scratch[0] = 8;
        let address = scratch.as_ptr();
        let large = pool.freeze(&mut scratch, 60_000).expect("the second large buffer");
        assert_eq!((small[0], small.len(), large[0], large.len()), (7, 100, 8, 60_000));
        assert_eq!(large.as_ptr(), address, "not copied");
        assert_ne!(scratch.as_ptr(), address);
        assert!(pool.freeze(&mut scratch, 60_000).is_none(), "both large ones are in use");
    }

    #[test]
    fn buffers_outside_of_a_pool_never_come_to_it() {
        let mut pool = Pool::new(1, 1);
        drop(pool.take(SizeClass::Small).expect("one is free"));
        drop((BufferSlice::from(vec![1, 2, 3]).slice(1, 2), BufferMut::new(3)));
        assert_eq!(pool.take(SizeClass::Small).expect("one is free").len(), SMALL_BUFFER_BYTES);
        assert_eq!(pool.report(), BufferReport { large: 0, small: 1, exhausted: 0 });
    }

    #[test]
    fn a_detached_slice_keeps_its_bytes_and_nothing_else() {
        let mut pool = Pool::new(0, 1);
        let mut buffer = pool.take(SizeClass::Large).expect("one is free");
        buffer[..3].copy_from_slice(&[1, 2, 3]);
        let mut slice = buffer.freeze(LARGE_BUFFER_BYTES).slice(1, 3);
        assert!(slice.memory_bytes() >= LARGE_BUFFER_BYTES as u64, "all of the buffer");
        slice.detach();
        assert_eq!((&*slice, slice.memory_bytes()), (&[2, 3][..], 2 + OVERHEAD_BYTES));
        assert!(pool.take(SizeClass::Large).is_some(), "the buffer is free");
        let address = slice.as_ptr();
        slice.detach();
        assert_eq!(slice.as_ptr(), address, "not copied again");
    }

    #[test]
    fn slices_outlive_their_pool() {
        let mut pool = Pool::new(1, 0);
        let slice = pool.take(SizeClass::Small).expect("one is free").freeze(SMALL_BUFFER_BYTES);
        drop(pool);
        assert_eq!(slice.len(), SMALL_BUFFER_BYTES);
    }
}
