//! Why something that arrived was not taken, and how often. Strangers get no answer; the operator gets these numbers.

/// Why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Neither a handshake message nor sealed data: too short or too long, or bits set that must not be.
    Malformed,
    /// A handshake of another version of the protocol.
    UnknownVersion,
    /// A handshake message from someone who does not know our public key.
    BadMac,
    /// Many ask at once: this one was told to prove its address.
    CookieDemanded,
    /// Many ask at once, and this address or all of them have had their share.
    Overloaded,
    /// A well-made initiation of someone who is no peer of ours.
    UnknownPeer,
    /// An initiation that is not newer than the last one of that peer: recorded, or its clock went back.
    ReplayedInitiation,
    /// The initiator offers no cipher that we would use.
    NoCommonCipher,
    /// A response or a cookie to no question of ours.
    NoHandshake,
    /// A handshake message or data that does not prove true.
    Forged,
    /// Data for a session that we do not have, or not any more.
    NoSession,
    /// Data of a session that has reached the end of its life.
    Expired,
    /// Data that came before.
    Replayed,
    /// Data from so long ago that nobody remembers whether it came before.
    TooOld,
}

impl Refusal {
    /// All reasons, in the order of [`Counters::iter`].
    pub const ALL: [Self; 14] = [
        Self::Malformed,
        Self::UnknownVersion,
        Self::BadMac,
        Self::CookieDemanded,
        Self::Overloaded,
        Self::UnknownPeer,
        Self::ReplayedInitiation,
        Self::NoCommonCipher,
        Self::NoHandshake,
        Self::Forged,
        Self::NoSession,
        Self::Expired,
        Self::Replayed,
        Self::TooOld,
    ];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownVersion => "unknown_version",
            Self::BadMac => "bad_mac",
            Self::CookieDemanded => "cookie_demanded",
            Self::Overloaded => "overloaded",
            Self::UnknownPeer => "unknown_peer",
            Self::ReplayedInitiation => "replayed_initiation",
            Self::NoCommonCipher => "no_common_cipher",
            Self::NoHandshake => "no_handshake",
            Self::Forged => "forged",
            Self::NoSession => "no_session",
            Self::Expired => "expired",
            Self::Replayed => "replayed",
            Self::TooOld => "too_old",
        }
    }
}

/// How often each reason occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters([u64; Refusal::ALL.len()]);

impl Counters {
    pub(crate) fn add(&mut self, reason: Refusal) {
        self.0[reason as usize] += 1;
    }

    /// How often this one.
    #[must_use]
    pub const fn get(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// Every reason with its number.
    pub fn iter(&self) -> impl Iterator<Item = (Refusal, u64)> + '_ {
        Refusal::ALL.iter().map(|&reason| (reason, self.get(reason)))
    }
}

/// Why something was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// There is no session with that peer, or none young enough: a handshake is needed.
    NoSession,
    /// This number, or a larger one, was sealed on that path of the session before. Sealing twice with one number would
    /// give both bodies away, so it is refused whoever asks.
    NumberUsed,
    /// The numbers of the path (2^62) or what the key may seal are used up.
    Exhausted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_reasons_is_in_the_order_of_their_counters() {
        for (place, &reason) in Refusal::ALL.iter().enumerate() {
            assert_eq!(reason as usize, place, "{}", reason.name());
        }
    }
}
