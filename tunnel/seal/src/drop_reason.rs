//! Reasons for dropping received datagrams, and their counters. A dropped datagram gets no reply.

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Neither a handshake message nor a sealed datagram: its length or its fixed bits are wrong.
    Malformed,
    /// A handshake message of another version.
    UnknownVersion,
    /// An initiation whose sender does not know the host's public key, or a response whose sender did not see the
    /// initiation: mac1 is invalid.
    InvalidMac1,
    /// An initiation without a valid mac2 under load: a cookie reply was sent.
    CookieRequired,
    /// An initiation with a valid mac2 under load, above the limit of its source, of its network or of all initiations;
    /// an authentic one above the peer's own limit; or a response by a route by which too many responses have failed.
    RateLimited,
    /// An authentic initiation of an unknown public key.
    UnknownPeer,
    /// An initiation whose timestamp is not greater than the peer's last one: a replay, or the peer's clock was set
    /// back.
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

/// All reasons with their names in metrics and status, in the order of the enum.
const NAMES: [(DropReason, &str); 14] = [
    (DropReason::Malformed, "malformed"),
    (DropReason::UnknownVersion, "unknown_version"),
    (DropReason::InvalidMac1, "invalid_mac1"),
    (DropReason::CookieRequired, "cookie_required"),
    (DropReason::RateLimited, "rate_limited"),
    (DropReason::UnknownPeer, "unknown_peer"),
    (DropReason::ReplayedInitiation, "replayed_initiation"),
    (DropReason::NoCommonCipher, "no_common_cipher"),
    (DropReason::NoHandshake, "no_handshake"),
    (DropReason::AuthenticationFailed, "authentication_failed"),
    (DropReason::NoSession, "no_session"),
    (DropReason::Expired, "expired"),
    (DropReason::Replayed, "replayed"),
    (DropReason::TooOld, "too_old"),
];

impl DropReason {
    /// Name in metrics and status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        NAMES[self as usize].1
    }
}

/// Dropped datagrams by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounters([u64; NAMES.len()]);

impl DropCounters {
    pub(crate) fn add(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Adds the counters of another device of the host.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(counter, count)| *counter += count);
    }

    /// Datagrams dropped for `reason`.
    #[must_use]
    pub const fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        NAMES.iter().map(|&(reason, _)| (reason, self.get(reason)))
    }
}

/// Why a datagram was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// There is no session with that peer, or it has expired: a handshake is needed.
    NoSession,
    /// This packet number or a larger one was sealed on that path before. Using a nonce twice would reveal both bodies.
    NumberUsed,
    /// The packet numbers of the path (2^62) or the usage limit of the key are exhausted.
    Exhausted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reasons_are_listed_in_the_order_of_their_counters() {
        for (index, &(reason, _)) in NAMES.iter().enumerate() {
            assert_eq!(reason as usize, index, "{}", reason.name());
        }
    }
}
