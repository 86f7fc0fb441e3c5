//! Reasons for dropping received datagrams, and their counters. A dropped datagram gets no reply.

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Neither a handshake message nor a sealed datagram: its length or its fixed bits are wrong.
    Malformed,
    /// A handshake message of another version.
    UnknownVersion,
    /// A handshake message whose mac1 is invalid: its sender does not know the host's public key.
    InvalidMac1,
    /// An initiation without a valid mac2 under load: a cookie reply was sent.
    CookieRequired,
    /// An initiation with a valid mac2 under load, above the limit of its network or of all.
    RateLimited,
    /// An authentic initiation of an unknown public key.
    UnknownPeer,
    /// An initiation whose timestamp is not greater than the peer's last one: a replay, or its clock went back.
    ReplayedInitiation,
    /// The initiator offers no acceptable cipher.
    NoCommonCipher,
    /// A response or a cookie reply without a pending handshake.
    NoHandshake,
    /// A handshake message or a datagram that is not authentic.
    AuthenticationFailed,
    /// A datagram of an unknown session.
    NoSession,
    /// A datagram of an expired session.
    Expired,
    /// A datagram received before.
    Replayed,
    /// A datagram behind the replay window.
    TooOld,
}

impl DropReason {
    /// All reasons, in the order of [`DropCounters::iter`].
    pub const ALL: [Self; 14] = [
        Self::Malformed,
        Self::UnknownVersion,
        Self::InvalidMac1,
        Self::CookieRequired,
        Self::RateLimited,
        Self::UnknownPeer,
        Self::ReplayedInitiation,
        Self::NoCommonCipher,
        Self::NoHandshake,
        Self::AuthenticationFailed,
        Self::NoSession,
        Self::Expired,
        Self::Replayed,
        Self::TooOld,
    ];

    /// Name in metrics and status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownVersion => "unknown_version",
            Self::InvalidMac1 => "invalid_mac1",
            Self::CookieRequired => "cookie_required",
            Self::RateLimited => "rate_limited",
            Self::UnknownPeer => "unknown_peer",
            Self::ReplayedInitiation => "replayed_initiation",
            Self::NoCommonCipher => "no_common_cipher",
            Self::NoHandshake => "no_handshake",
            Self::AuthenticationFailed => "authentication_failed",
            Self::NoSession => "no_session",
            Self::Expired => "expired",
            Self::Replayed => "replayed",
            Self::TooOld => "too_old",
        }
    }
}

/// Dropped datagrams by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounters([u64; DropReason::ALL.len()]);

impl DropCounters {
    pub(crate) fn add(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Datagrams dropped for `reason`.
    #[must_use]
    pub const fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().map(|&reason| (reason, self.get(reason)))
    }
}

/// Why a datagram was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// There is no session with that peer, or it has expired: a handshake is needed.
    NoSession,
    /// This packet number or a larger one was sealed on that path before. A nonce used twice would reveal both bodies.
    NumberUsed,
    /// The packet numbers of the path (2^62) or the usage limit of the key are exhausted.
    Exhausted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reasons_are_listed_in_the_order_of_their_counters() {
        for (index, &reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason as usize, index, "{}", reason.name());
        }
    }
}
