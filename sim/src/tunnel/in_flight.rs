//! The contents of a Ropewalk tunnel's datagrams on their way; freed slots are used again.

use crate::tunnel::payload::Datagram;

/// Datagrams by id.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// None if a copy has arrived, which the receiver's replay window tells from the others.
    datagrams: Vec<Option<Datagram>>,
    /// Copies of each of `datagrams`.
    copies: Vec<u32>,
    free: Vec<u32>,
}

impl InFlight {
    pub(crate) fn insert(&mut self, datagram: Datagram) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.datagrams.push(None);
            self.copies.push(0);
            (self.datagrams.len() - 1) as u32
        });
        self.datagrams[slot as usize] = Some(datagram);
        self.copies[slot as usize] = 1;
        slot
    }

    /// Takes a datagram whose first copy arrives; none for further copies.
    pub(crate) fn take(&mut self, id: u32) -> Option<Datagram> {
        let datagram = self.datagrams[id as usize].take();
        self.discard(id);
        datagram
    }

    /// Counts one more copy of a datagram.
    pub(crate) fn duplicate(&mut self, id: u32) {
        self.copies[id as usize] += 1;
    }

    /// Forgets a copy of a datagram that is lost or has arrived.
    pub(crate) fn discard(&mut self, id: u32) {
        let copies = &mut self.copies[id as usize];
        *copies -= 1;
        if *copies == 0 {
            self.datagrams[id as usize] = None;
            self.free.push(id);
        }
    }

    /// Number of datagrams, every copy counted.
    pub(crate) fn len(&self) -> u64 {
        self.copies.iter().copied().map(u64::from).sum()
    }
}
