//! Two devices, all messages that they ever sent, and the invariants that hold after every step.

use std::collections::BTreeSet;

use units::{Instant, Span};

use crate::check::CountingEntropy;
use crate::sessions::SessionEntry;
use crate::{HandshakeConfig, PeerId, PrivateKey, SEAL_OVERHEAD, SealDevice};

/// A step in time: a pending handshake has expired after one step, a session must be rekeyed after two, and has expired
/// after three.
pub(super) const TIME_STEP: Span = Span::from_secs(61);
/// Time between two messages: five initiations per second of a peer get a response.
const PAUSE: Span = Span::from_millis(200);
/// Indices that one peer may occupy: four pending handshakes, an unconfirmed session, the current one and two previous.
const MAX_INDICES: usize = 8;
/// Restarts of one end.
const MAX_RESTARTS: u64 = 1;

/// An action; ends are 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The end sends an initiation.
    Initiate(usize),
    /// The end seals a datagram.
    Seal(usize),
    /// The message arrives, for the first time or again.
    Deliver(usize),
    /// Time passes.
    Wait,
    /// The end loses all but its keys.
    Restart(usize),
}

/// The kind of a message, and the session that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Content {
    Initiation { index: u32, boot_id: u64, timestamp: u64 },
    Response { index: u32, responder_index: u32, boot_id: u64 },
    Datagram { index: u32, sender_index: u32, number: u64 },
}

pub(super) struct Message {
    pub(super) to: usize,
    pub(super) content: Content,
    bytes: Vec<u8>,
}

/// One end.
pub(super) struct End {
    pub(super) device: SealDevice,
    peer: PeerId,
    pub(super) next_packet_number: u64,
    pub(super) restarts: u64,
    /// Local and remote index of every session that it ever had.
    sessions: BTreeSet<(u32, u32)>,
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) ends: [End; 2],
    pub(super) messages: Vec<Message>,
    /// Every datagram ever sealed.
    sealed: BTreeSet<Vec<u8>>,
    /// Messages that were opened.
    opened: BTreeSet<usize>,
    actions_taken: Vec<Action>,
}

fn device(end: usize, restarts: u64) -> End {
    let key = |end: usize| PrivateKey::from_bytes([7 + end as u8; 32]);
    // A real host under load would ask for cookies, which `floods.rs` tests.
    let config = HandshakeConfig { under_load_threshold: 1_000_000, ..HandshakeConfig::new(key(end)) };
    let mut device = SealDevice::new(config, Box::new(CountingEntropy(1 + end as u64 + 1000 * restarts)));
    let peer = device.add(key(1 - end).public_key(), None).unwrap();
    End { device, peer, next_packet_number: 0, restarts, sessions: BTreeSet::new() }
}

impl World {
    /// The world after `actions`.
    pub(super) fn replay(actions: &[Action]) -> Self {
        let mut world = Self {
            now: Instant(1_000_000_000),
            ends: [device(0, 0), device(1, 0)],
            messages: Vec::new(),
            sealed: BTreeSet::new(),
            opened: BTreeSet::new(),
            actions_taken: Vec::new(),
        };
        actions.iter().for_each(|action| world.apply(*action));
        world
    }

    /// The actions that are possible now.
    pub(super) fn actions(&self) -> Vec<Action> {
        let mut actions = vec![Action::Initiate(0), Action::Initiate(1), Action::Wait];
        actions.extend([0, 1].into_iter().filter(|end| self.seals(*end)).map(Action::Seal));
        actions.extend([0, 1].into_iter().filter(|end| self.ends[*end].restarts < MAX_RESTARTS).map(Action::Restart));
        actions.extend((0..self.messages.len()).map(Action::Deliver));
        actions
    }

    fn seals(&self, end: usize) -> bool {
        self.current(end).is_some_and(|entry| !entry.is_expired(self.now))
    }

    fn current(&self, end: usize) -> Option<&SessionEntry> {
        let End { device, peer, .. } = &self.ends[end];
        device.peer(*peer)?.sessions.current()
    }

    pub(super) fn apply(&mut self, action: Action) {
        self.actions_taken.push(action);
        self.now += PAUSE;
        match action {
            Action::Initiate(end) => {
                let End { device, peer, .. } = &mut self.ends[end];
                device.create_initiation(self.now, self.now.0, *peer);
                self.send_initiation(end);
            }
            Action::Seal(end) => self.seal(end),
            Action::Deliver(message) => self.deliver(message),
            Action::Wait => {
                self.now += TIME_STEP;
                for end in 0..2 {
                    self.run_timers(end);
                }
            }
            Action::Restart(end) => {
                let (restarts, sessions) = (self.ends[end].restarts + 1, std::mem::take(&mut self.ends[end].sessions));
                self.ends[end] = End { sessions, ..device(end, restarts) };
            }
        }
        self.check();
    }

    fn run_timers(&mut self, end: usize) {
        let End { device, .. } = &mut self.ends[end];
        // The deadline is only for the driver to sleep until.
        device.deadline = device.deadline.min(self.now);
        while self.ends[end].device.initiation_due(self.now, self.now.0).is_some() {
            self.send_initiation(end);
        }
    }

    fn send_initiation(&mut self, end: usize) {
        let End { device, peer, .. } = &self.ends[end];
        let state = device.peer(*peer).unwrap();
        let index = state.pending.back().unwrap().index;
        let content = Content::Initiation { index, boot_id: state.boot_id, timestamp: state.sent_timestamp };
        let bytes = device.initiation(self.now, *peer, 0).unwrap().as_bytes().to_vec();
        self.messages.push(Message { to: 1 - end, content, bytes });
    }

    fn seal(&mut self, end: usize) {
        let (sender_index, index) = self.current(end).map(|entry| (entry.local_index, entry.remote_index)).unwrap();
        let End { device, peer, next_packet_number, .. } = &mut self.ends[end];
        let mut bytes = vec![0; SEAL_OVERHEAD];
        device.seal(self.now, *peer, 0, *next_packet_number, &mut bytes).expect("it has a session and a new number");
        device.expect_answer(self.now, *peer);
        // The body is always the same: a key and nonce that are used twice give the same datagram.
        assert!(self.sealed.insert(bytes.clone()), "a key and a nonce are used twice");
        let content = Content::Datagram { index, sender_index, number: *next_packet_number };
        *next_packet_number += 1;
        self.messages.push(Message { to: 1 - end, content, bytes });
    }

    fn deliver(&mut self, message: usize) {
        let before = self.state();
        let Message { to, ref bytes, .. } = self.messages[message];
        let mut bytes = bytes.clone();
        let end = &mut self.ends[to];
        let result = if bytes[0] == 0 {
            let outcome = end.device.receive(self.now, |_| 0, &[1, 2, 3, 4, 0, 0], &bytes);
            outcome.map(|outcome| (outcome.established, outcome.reply))
        } else {
            end.device.open(self.now, &mut bytes).map(|opened| (opened.established, None))
        };
        let (established, reply) = match result {
            Ok(outcome) => outcome,
            Err(reason) => {
                let is_same = self.state() == before;
                assert!(is_same, "{reason:?} of message {message} changes the state after {:?}", self.actions_taken);
                return;
            }
        };
        if established.is_some_and(|established| established.numbers_reset) {
            end.next_packet_number = 0;
        }
        if bytes[0] != 0 {
            assert!(self.opened.insert(message), "a datagram is opened twice");
        }
        if let Some(reply) = reply {
            let peer = self.ends[to].device.peer(self.ends[to].peer).unwrap();
            let entry = peer.sessions.unconfirmed().expect("a response has a session");
            let content = Content::Response {
                index: entry.remote_index,
                responder_index: entry.local_index,
                boot_id: peer.boot_id,
            };
            self.messages.push(Message { to: 1 - to, content, bytes: reply.as_bytes().to_vec() });
        }
    }

    /// The invariants.
    fn check(&mut self) {
        for End { device, peer, sessions, .. } in &mut self.ends {
            let state = device.peer(*peer).unwrap();
            sessions.extend(state.sessions.all().map(|entry| (entry.local_index, entry.remote_index)));
            let held = state.pending.iter().map(|handshake| handshake.index);
            let held: BTreeSet<u32> = held.chain(state.sessions.all().map(|entry| entry.local_index)).collect();
            assert!(held.iter().eq(device.session_indices.keys()), "an index is lost, or not released");
            assert!(held.len() <= MAX_INDICES, "{} indices", held.len());
        }
        for end in 0..2 {
            if let Some(entry) = self.current(end) {
                let has_taken_part = self.ends[1 - end].sessions.contains(&(entry.remote_index, entry.local_index));
                assert!(has_taken_part, "a session is established that the peer never had");
            }
        }
    }

    /// Nothing is lost from now on: all messages arrive once more, then `initiators` and their timers alone act for 20 s,
    /// and each end that can seals every second. Then both seal with the same session, which opens at the other end.
    pub(super) fn settle(mut self, initiators: &[usize]) {
        let actions = self.actions_taken.clone();
        for end in initiators {
            let End { device, peer, .. } = &mut self.ends[*end];
            device.start_initiating(self.now, *peer);
        }
        let mut arrived = 0;
        for step in 0..80 {
            self.now += Span::from_millis(250);
            (0..2).for_each(|end| self.run_timers(end));
            for end in (0..2).filter(|_| step % 4 == 0) {
                if self.seals(end) {
                    self.seal(end);
                }
            }
            while arrived < self.messages.len() {
                if !self.opened.contains(&arrived) {
                    self.now += PAUSE;
                    self.deliver(arrived);
                    self.check();
                }
                arrived += 1;
            }
        }
        let indices = |end| self.current(end).map(|entry| (entry.local_index, entry.remote_index));
        let mirrored = indices(1).map(|(local, remote)| (remote, local));
        assert!(
            indices(0).is_some() && indices(0) == mirrored,
            "{:?} and {:?} if {initiators:?} initiate after {actions:?}",
            indices(0),
            indices(1)
        );
        for end in 0..2 {
            self.seal(end);
            let message = self.messages.len() - 1;
            self.deliver(message);
            assert!(self.opened.contains(&message), "{end} cannot be heard after {actions:?}");
        }
    }
}
