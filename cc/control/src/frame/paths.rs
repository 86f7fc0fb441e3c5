//! What a coupled algorithm sees: its own path among its siblings.

use super::{Window, slow_start};
use crate::Phase;
use units::Span;

/// The least window that a coupling leaves, packets: RFC 5681's least threshold. Below it would be slow start again.
const MIN_WINDOW: u32 = 2;

/// One path of a coupled group, as it stood after its latest event.
#[derive(Debug, Default)]
pub struct Sibling<M> {
    /// It can be used.
    pub up: bool,
    /// It takes part: it is up and its RTT is known.
    pub active: bool,
    /// Its window in packets; while that is being reduced, the threshold that it goes down to (RFC 6356, section 3).
    pub window: f64,
    /// Smoothed RTT, seconds; above zero where it is active.
    pub rtt: f64,
    /// Least RTT; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// Packets in flight.
    pub in_flight: u32,
    /// Where its sender stands.
    pub phase: Phase,
    /// What the algorithm keeps for it.
    pub memory: M,
    /// The part of a packet that the window has still to grow, or to shrink.
    pub(super) fraction: f64,
}

impl<M: Default> Sibling<M> {
    /// A path that takes part, with this window in packets and this RTT in seconds, and nothing remembered.
    #[must_use]
    pub fn taking_part(window: f64, rtt: f64) -> Self {
        Self { up: true, active: true, window, rtt, min_rtt: Span::from_secs_f64(rtt), ..Self::default() }
    }
}

impl<M> Sibling<M> {
    /// Window over RTT, packets a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.window / self.rtt
    }
}

/// The group, from one path: all can be read, and of the own path the memory be written.
#[derive(Debug)]
pub struct Paths<'a, M> {
    pub(super) all: &'a mut [Sibling<M>],
    pub(super) own: usize,
}

impl<'a, M> Paths<'a, M> {
    /// The group, from the path at this place in it.
    pub fn new(all: &'a mut [Sibling<M>], own: usize) -> Self {
        Self { all, own }
    }

    /// The path on which something happened.
    #[must_use]
    pub fn own(&self) -> &Sibling<M> {
        &self.all[self.own]
    }

    /// What the algorithm keeps for the own path.
    pub fn memory(&mut self) -> &mut M {
        &mut self.all[self.own].memory
    }

    /// The paths that take part, in order, and the own one among them, if it does.
    pub fn active(&self) -> impl Iterator<Item = &Sibling<M>> + Clone {
        self.all.iter().filter(|path| path.active)
    }

    /// The other paths, whether they take part or not.
    pub fn others(&self) -> impl Iterator<Item = &Sibling<M>> {
        self.all.iter().enumerate().filter(|&(index, _)| index != self.own).map(|(_, path)| path)
    }

    /// There is nothing to couple: the own path takes no part, or no other does.
    #[must_use]
    pub fn alone(&self) -> bool {
        !self.own().active || !self.others().any(|path| path.active)
    }

    /// The sum of the windows, packets.
    #[must_use]
    pub fn total_window(&self) -> f64 {
        self.active().map(|path| path.window).sum()
    }

    /// The sum of window over RTT, packets a second.
    #[must_use]
    pub fn total_rate(&self) -> f64 {
        self.active().map(Sibling::rate).sum()
    }

    /// Slow start, then `increase` packets for each one acknowledged.
    pub fn grow(&mut self, window: &mut Window, acked: u32, increase: f64) {
        let left = if window.in_slow_start() { slow_start(window, acked) } else { acked };
        self.change(window, increase * f64::from(left));
    }

    /// Changes the own window by `packets`. It moves by whole ones; the rest is kept, until congestion ends the growth.
    fn change(&mut self, window: &mut Window, packets: f64) {
        let own = &mut self.all[self.own];
        own.fraction += packets;
        let whole = own.fraction as i32;
        own.fraction -= f64::from(whole);
        let least = MIN_WINDOW.min(window.size);
        window.size = window.size.saturating_add_signed(whole).clamp(least, window.clamp.max(least));
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Paths that are up, by window in packets and RTT in seconds.
    pub(crate) fn siblings<M: Default>(paths: &[(f64, f64)]) -> Vec<Sibling<M>> {
        paths.iter().map(|&(window, rtt)| Sibling::taking_part(window, rtt)).collect()
    }

    /// What `ask` answers for each of them.
    pub(crate) fn ask<M, R>(all: &mut [Sibling<M>], mut ask: impl FnMut(&mut Paths<'_, M>) -> R) -> Vec<R> {
        (0..all.len()).map(|own| ask(&mut Paths::new(all, own))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::siblings;
    use super::*;

    #[test]
    fn a_window_moves_when_a_whole_packet_came_together_up_or_down() {
        let mut all = siblings::<()>(&[(10.0, 0.1), (10.0, 0.1)]);
        let mut paths = Paths::new(&mut all, 0);
        let mut window = Window { size: 10, threshold: 2, ..Window::default() };
        let mut sizes = |increase| [(); 4].map(|()| (paths.grow(&mut window, 1, increase), window.size).1);
        assert_eq!(sizes(0.25), [10, 10, 10, 11]);
        assert_eq!(sizes(-0.5), [11, 10, 10, 9]);
        assert_eq!(sizes(-3.5), [6, 2, 2, 2], "never below two packets");
    }

    #[test]
    fn slow_start_is_not_coupled_and_hands_on_what_is_left() {
        let mut all = siblings::<()>(&[(10.0, 0.1), (10.0, 0.1)]);
        let mut window = Window { size: 10, threshold: 14, ..Window::default() };
        Paths::new(&mut all, 0).grow(&mut window, 8, 0.25);
        assert_eq!(window.size, 15);
    }

    #[test]
    fn who_takes_no_part_or_has_no_sibling_is_alone() {
        let alone = |active: [bool; 3]| {
            let mut all = siblings::<()>(&[(10.0, 0.1); 3]);
            all.iter_mut().zip(active).for_each(|(path, active)| path.active = active);
            Paths::new(&mut all, 0).alone()
        };
        let cases = [[true, false, false], [false, true, true], [true, false, true], [true; 3]];
        assert_eq!(cases.map(alone), [true, true, false, false]);
    }
}
