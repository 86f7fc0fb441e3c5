//! What packets carry, and what is kept of it outside of the packets.

use crate::packet::Packet;
use crate::tap::LossCause;
use std::fmt::Debug;
use std::marker::PhantomData;

/// Keeps what the contents of packets refer to.
pub trait Store: Debug {
    /// What a packet carries. A link that duplicates packets clones it.
    type Content: Clone + Debug;

    /// A link has made a copy of a packet, with this content.
    fn duplicate(&mut self, _content: &mut Self::Content) {}

    /// A packet, a data packet or another, does not arrive.
    fn discard(&mut self, _packet: &Packet<Self::Content>, _is_data: bool, _cause: LossCause) {}

    /// Whether the receiver takes a packet with a flipped bit, which is to be flipped in the content. If not, the packet is
    /// discarded because of its checksum.
    fn accepts_corrupted(&mut self, _content: &mut Self::Content) -> bool {
        false
    }
}

/// The store of packets that carry all that belongs to them.
#[derive(Debug)]
pub struct Plain<C>(PhantomData<C>);

impl<C> Default for Plain<C> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<C: Clone + Debug> Store for Plain<C> {
    type Content = C;
}
