//! The bytes of hosted stacks' datagrams on their way; freed slots are used again.

/// Datagrams by slot.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    datagrams: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Datagrams {
    pub(crate) fn insert(&mut self, bytes: &[u8]) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.datagrams.push(Vec::new());
            (self.datagrams.len() - 1) as u32
        });
        self.datagrams[slot as usize] = bytes.to_vec();
        slot
    }

    /// Stores another copy of a datagram.
    pub(crate) fn duplicate(&mut self, slot: u32) -> u32 {
        let bytes = self.datagrams[slot as usize].clone();
        self.insert(&bytes)
    }

    /// Frees the slot of a datagram that has arrived or is lost.
    pub(crate) fn remove(&mut self, slot: u32) -> Vec<u8> {
        self.free.push(slot);
        std::mem::take(&mut self.datagrams[slot as usize])
    }

    /// Number of datagrams.
    pub(crate) fn len(&self) -> u64 {
        (self.datagrams.len() - self.free.len()) as u64
    }
}
