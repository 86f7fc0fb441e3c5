//! The translations of the relay: the packets that leave by the TUN device and come in again, and their new addresses.
//!
//! A relayed connection has two: its own packets come in as the daemon's socket expects them, and the socket's packets
//! as those of the connection's other end. Both stay for a while after the socket is closed, because the kernel still
//! completes the connection's end.

use super::kernel::KernelTranslations;
use std::collections::{HashMap, VecDeque};
use units::{Instant, Span};
use wire::relay::Addresses;

/// Time for which a closed connection is still translated: longer than TIME-WAIT (60 s in Linux) and than the timeouts
/// of the last segments of most connections. Also the time for which packets of a refused connection go through the
/// tunnel.
const LINGER: Span = Span::from_secs(120);
/// Maximum number of connections with all peers: each has a number, and none has 0.
pub(super) const MAX_CONNECTIONS: u16 = u16::MAX;
/// Maximum number of remembered connections that are not relayed.
const MAX_PASSED: usize = 65_536;

/// The action for a packet that leaves by the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Its connection is being opened.
    Hold,
    /// Its connection is not relayed: it goes through the tunnel.
    Pass(Instant),
    /// It comes in again with other addresses.
    Translate(Translation),
}

/// A translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Translation {
    /// The new addresses.
    pub(super) to: Addresses,
    /// The port of the internal network's remote address, which is the connection's number.
    pub(super) number: u16,
    /// Whether the socket is open.
    pub(super) is_live: bool,
    /// Whether initial SYNs are dropped: a connection that the client began has the client's.
    pub(super) drops_syn: bool,
}

/// An entry that will expire.
#[derive(Clone, Copy, Debug)]
enum Ended {
    Connection { number: u16, packets: Addresses, socket: Addresses },
    Passed(Addresses),
}

/// All translations.
pub(super) struct Translations {
    actions: HashMap<Addresses, Action>,
    /// The same translations in the kernel, if it takes them.
    kernel: Option<KernelTranslations>,
    free_numbers: VecDeque<u16>,
    /// In the order in which they ended.
    ended: VecDeque<(Instant, Ended)>,
    passed: usize,
}

impl Translations {
    pub(super) fn new(kernel: Option<KernelTranslations>) -> Self {
        Self {
            actions: HashMap::new(),
            kernel,
            free_numbers: (1..=MAX_CONNECTIONS).collect(),
            ended: VecDeque::new(),
            passed: 0,
        }
    }

    /// Whether the kernel has all translations.
    pub(super) fn is_in_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// The action for packets with these addresses.
    pub(super) fn get(&self, addresses: &Addresses) -> Option<Action> {
        self.actions.get(addresses).copied()
    }

    /// Notes that the connection of these packets is being opened. The entries of an earlier connection with the same
    /// addresses are forgotten.
    pub(super) fn hold(&mut self, packets: Addresses) {
        if let Some(Action::Translate(earlier)) = self.set(packets, Action::Hold) {
            self.remove(&earlier.to.reversed(), |_| true);
        }
    }

    /// The connection of these packets is not opened after all.
    pub(super) fn release(&mut self, packets: &Addresses) {
        if self.actions.get(packets) == Some(&Action::Hold) {
            self.actions.remove(packets);
        }
    }

    /// The connection of these packets is not relayed.
    pub(super) fn pass(&mut self, now: Instant, packets: Addresses) {
        self.expire(now, usize::from(self.passed >= MAX_PASSED));
        self.set(packets, Action::Pass(now));
        self.ended.push_back((now, Ended::Passed(packets)));
        self.passed += 1;
    }

    /// Takes a number that no connection has.
    pub(super) fn take_number(&mut self, now: Instant) -> Option<u16> {
        self.expire(now, 0);
        while self.free_numbers.is_empty() && !self.ended.is_empty() {
            self.expire(now, 1);
        }
        self.free_numbers.pop_front()
    }

    /// Gives back a number that was not used.
    pub(super) fn return_number(&mut self, number: u16) {
        self.free_numbers.push_front(number);
    }

    /// Adds the translations of a connection that has a socket from now on: its packets and the socket's are translated
    /// into each other.
    pub(super) fn add(&mut self, packets: Addresses, socket: Addresses, number: u16, drops_syn: bool) {
        self.hold(packets);
        let translation = |to: Addresses, drops_syn: bool| {
            Action::Translate(Translation { to: to.reversed(), number, is_live: true, drops_syn })
        };
        self.set(packets, translation(socket, false));
        self.set(socket, translation(packets, drops_syn));
    }

    /// Forgets the packets of a connection that was reset: further ones no longer go to its socket.
    pub(super) fn forget_packets(&mut self, packets: &Addresses, number: u16) {
        self.remove(packets, |action| matches!(action, Action::Translate(translation) if translation.number == number));
    }

    /// The socket of a connection was closed.
    pub(super) fn end(&mut self, now: Instant, packets: Addresses, socket: Addresses, number: u16) {
        for addresses in [packets, socket] {
            if let Some(Action::Translate(translation)) = self.actions.get_mut(&addresses)
                && translation.number == number
            {
                translation.is_live = false;
            }
        }
        self.ended.push_back((now, Ended::Connection { number, packets, socket }));
        self.expire(now, 0);
    }

    /// Forgets entries that ended long ago, and `more` of the oldest ones.
    fn expire(&mut self, now: Instant, more: usize) {
        let mut more = more;
        while let Some((at, ended)) = self.ended.front().copied() {
            if now.since(at) < LINGER {
                let Some(left) = more.checked_sub(1) else { break };
                more = left;
            }
            self.ended.pop_front();
            match ended {
                Ended::Connection { number, packets, socket } => {
                    for addresses in [packets, socket] {
                        self.remove(
                            &addresses,
                            |action| matches!(action, Action::Translate(translation) if translation.number == number),
                        );
                    }
                    self.free_numbers.push_back(number);
                }
                Ended::Passed(packets) => {
                    self.passed -= 1;
                    self.remove(&packets, |action| *action == Action::Pass(at));
                }
            }
        }
    }

    fn remove(&mut self, addresses: &Addresses, condition: impl Fn(&Action) -> bool) {
        if !self.actions.get(addresses).is_some_and(condition) {
            return;
        }
        let removed = self.actions.remove(addresses);
        if let (Some(Action::Translate(_)), Some(kernel)) = (removed, &mut self.kernel) {
            kernel.remove(addresses);
        }
    }

    /// Sets the action of packets; returns the earlier one.
    fn set(&mut self, addresses: Addresses, action: Action) -> Option<Action> {
        let earlier = self.actions.insert(addresses, action);
        if let Some(kernel) = &mut self.kernel {
            let is_kept = match (action, earlier) {
                (Action::Translate(translation), _) => kernel.insert(&addresses, &translation.to),
                (_, Some(Action::Translate(_))) => {
                    kernel.remove(&addresses);
                    true
                }
                _ => true,
            };
            // Without the program packets leave by the device, and the daemon translates them.
            self.kernel = self.kernel.take().filter(|_| is_kept);
        }
        earlier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::ZERO;

    fn addresses(source: u16, destination: u16) -> Addresses {
        let address = |port: u16| ([192, 0, 2, 1], port).into();
        Addresses { source: address(source), destination: address(destination) }
    }

    fn translation(translations: &Translations, addresses: &Addresses) -> Option<Translation> {
        match translations.get(addresses)? {
            Action::Translate(translation) => Some(translation),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_directions_of_a_connection_are_translated_into_each_other_until_it_has_lingered() {
        let mut translations = Translations::new(None);
        let (packets, socket) = (addresses(1, 2), addresses(3, 4));
        let number = translations.take_number(START).expect("all are free");
        translations.hold(packets);
        assert_eq!(translations.get(&packets), Some(Action::Hold));
        translations.add(packets, socket, number, true);
        let (of_packets, of_socket) = (translation(&translations, &packets), translation(&translations, &socket));
        assert_eq!(of_packets.map(|translation| translation.to), Some(socket.reversed()));
        assert_eq!(
            of_socket.map(|translation| (translation.to, translation.drops_syn)),
            Some((packets.reversed(), true))
        );
        translations.end(START, packets, socket, number);
        assert!(translation(&translations, &packets).is_some_and(|translation| !translation.is_live));
        translations.take_number(START + LINGER);
        assert_eq!((translations.get(&packets), translations.get(&socket)), (None, None));
    }

    #[test]
    fn a_new_connection_of_the_same_addresses_replaces_what_the_old_one_has_left() {
        let mut translations = Translations::new(None);
        let (packets, old, new) = (addresses(1, 2), addresses(3, 4), addresses(5, 6));
        let [first, second] = [(); 2].map(|()| translations.take_number(START).expect("all are free"));
        translations.add(packets, old, first, false);
        translations.end(START, packets, old, first);
        translations.add(packets, new, second, false);
        assert_eq!(translations.get(&old), None);
        translations.take_number(START + LINGER);
        assert_eq!(translation(&translations, &packets).map(|translation| translation.number), Some(second));
    }

    #[test]
    fn numbers_run_out_only_when_as_many_connections_are_open_and_the_oldest_ended_one_is_reused_first() {
        let mut translations = Translations::new(None);
        let numbers: Vec<u16> = std::iter::from_fn(|| translations.take_number(START)).collect();
        assert_eq!(numbers.len(), 65_535);
        for number in [7, 5] {
            translations.end(START, addresses(number, 1), addresses(number, 2), number);
        }
        let reused = [(); 3].map(|()| translations.take_number(START));
        assert_eq!(reused, [Some(7), Some(5), None]);
    }

    #[test]
    fn a_connection_that_is_not_relayed_is_remembered_for_a_while() {
        let mut translations = Translations::new(None);
        translations.hold(addresses(1, 2));
        translations.pass(START, addresses(1, 2));
        assert_eq!(translations.get(&addresses(1, 2)), Some(Action::Pass(START)));
        translations.take_number(START + LINGER);
        assert_eq!(translations.get(&addresses(1, 2)), None);
    }
}
