//! The state of the two ends and of all messages, up to names: session indices and boot ids are numbered as they appear,
//! timestamps and instants are replaced by their order, and ages by the limits that they have passed. So if two
//! sequences of actions lead to the same state, the same further actions have the same effect after both.

use std::collections::{BTreeMap, BTreeSet};

use units::Instant;

use super::world::{Content, End, Message, TIME_STEP, World};
use crate::sessions::SessionEntry;

/// A state in numbers.
pub(super) type State = Vec<u64>;

/// Numbers names as they appear.
#[derive(Default)]
struct Names(BTreeMap<(u8, u64), u64>);

impl Names {
    fn index(&mut self, index: u32) -> u64 {
        self.number(0, u64::from(index))
    }

    fn boot_id(&mut self, boot_id: Option<u64>) -> u64 {
        boot_id.map_or(0, |boot_id| 1 + self.number(1, boot_id))
    }

    fn number(&mut self, kind: u8, name: u64) -> u64 {
        let next = self.0.len() as u64;
        *self.0.entry((kind, name)).or_insert(next)
    }
}

/// The place of `value` in the order of `values`.
fn rank(values: &BTreeSet<u64>, value: u64) -> u64 {
    values.range(..value).count() as u64
}

impl World {
    /// The state.
    pub(super) fn state(&self) -> State {
        let (mut state, mut names) = (Vec::new(), Names::default());
        for index in 0..2 {
            self.write_end(index, &mut names, &mut state);
        }
        let mut messages: Vec<&Message> = self.messages.iter().collect();
        let kind = |content: &Content| match content {
            Content::Initiation { .. } => 0,
            Content::Response { .. } => 1,
            Content::Datagram { .. } => 2,
        };
        messages.sort_by_key(|message| (message.to, kind(&message.content)));
        for Message { to, content, .. } in messages {
            state.extend([*to as u64, kind(content)]);
            match *content {
                Content::Initiation { index, boot_id, timestamp } => state.extend([
                    names.index(index),
                    names.boot_id(Some(boot_id)),
                    rank(&self.timestamps(1 - to), timestamp),
                ]),
                Content::Response { index, responder_index, boot_id } => {
                    state.extend([names.index(index), names.index(responder_index), names.boot_id(Some(boot_id))]);
                }
                Content::Datagram { index, sender_index, number } => {
                    state.extend([names.index(index), names.index(sender_index), number]);
                }
            }
        }
        state
    }

    /// All timestamps of initiations by `end`.
    fn timestamps(&self, end: usize) -> BTreeSet<u64> {
        let peer = |end: usize| self.ends[end].device.peers[0].as_ref().unwrap();
        let sent =
            self.messages.iter().filter(|message| message.to != end).filter_map(|message| match message.content {
                Content::Initiation { timestamp, .. } => Some(timestamp),
                _ => None,
            });
        sent.chain([peer(end).sent_timestamp, peer(1 - end).received_timestamp]).collect()
    }

    fn write_end(&self, index: usize, names: &mut Names, state: &mut State) {
        let End { device, next_packet_number, restarts, .. } = &self.ends[index];
        let peer = device.peers[0].as_ref().unwrap();
        state.extend([*next_packet_number, *restarts, names.boot_id(Some(peer.boot_id))]);
        state.push(rank(&self.timestamps(index), peer.sent_timestamp));
        state.push(rank(&self.timestamps(1 - index), peer.received_timestamp));
        let mut instants: BTreeSet<u64> = peer.pending.iter().map(|handshake| handshake.sent.0).collect();
        for entry in peer.sessions.all() {
            instants.extend([entry.handshake_start.0, entry.created.0, entry.unanswered_since.0]);
        }
        let time = |instant: Instant| {
            let steps = self.now.since(instant).as_nanos() / TIME_STEP.as_nanos();
            [rank(&instants, instant.0), steps.min(3)]
        };
        state.push(peer.pending.len() as u64);
        for handshake in &peer.pending {
            state.push(names.index(handshake.index));
            state.extend(time(handshake.sent));
        }
        let snapshot = peer.sessions.snapshot();
        state.extend([names.boot_id(snapshot.boot_id), snapshot.expected]);
        for entry in snapshot.slots {
            let Some(entry) = entry else {
                state.push(u64::MAX);
                continue;
            };
            let SessionEntry { local_index, remote_index, boot_id, is_initiator, .. } = *entry;
            state.extend([names.index(local_index), names.index(remote_index), names.boot_id(Some(boot_id))]);
            state.extend([u64::from(is_initiator), u64::from(entry.unanswered_since == Instant::NEVER)]);
            state.extend([entry.handshake_start, entry.created, entry.unanswered_since].into_iter().flat_map(time));
            state.extend(entry.session.snapshot());
        }
    }
}
