//! The losses that caused a reduction of the window. If all of these packets arrive later, the reduction was spurious
//! and is undone.

use std::ops::Range;

/// The latest recovery period of a path (RFC 9002, section 7.3.2), by packet numbers.
#[derive(Clone, Debug, Default)]
pub struct RecoveryPeriod {
    /// Packets sent before the period began, but not before the previous period.
    packets: Range<u64>,
    /// Of these, packets declared lost that have not arrived.
    missing: u32,
    /// Packets declared lost that were sent since then; they begin the next period.
    missing_later: u32,
    may_undo: bool,
}

impl RecoveryPeriod {
    /// Records that packet `number` was declared lost.
    pub fn on_lost(&mut self, number: u64) {
        if let Some(missing) = self.missing_of(number) {
            *missing += 1;
        }
    }

    /// Records that packet `number`, which was declared lost, has arrived.
    pub fn on_arrived(&mut self, number: u64) {
        if let Some(missing) = self.missing_of(number) {
            *missing -= 1;
        }
    }

    fn missing_of(&mut self, number: u64) -> Option<&mut u32> {
        if number >= self.packets.end {
            Some(&mut self.missing_later)
        } else {
            self.packets.contains(&number).then_some(&mut self.missing)
        }
    }

    /// Begins a period before packet `next`; with `may_undo` its reduction is undone if it proves spurious.
    pub fn begin(&mut self, next: u64, may_undo: bool) {
        self.packets = self.packets.end..next;
        self.missing = std::mem::take(&mut self.missing_later);
        self.may_undo = may_undo;
    }

    /// Keeps the reduction, because there is another sign of congestion: a CE mark, or persistent congestion.
    pub fn keep(&mut self) {
        self.may_undo = false;
    }

    /// Takes the first packet of the period if its reduction must be undone, because all packets declared lost have
    /// arrived. Losses from that packet on begin another period.
    #[must_use]
    pub fn take_spurious(&mut self) -> Option<u64> {
        (self.missing == 0 && std::mem::take(&mut self.may_undo)).then(|| {
            self.packets.end = self.packets.start;
            self.packets.start
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A period before packet 10 that packets 2 and 4 began.
    fn period() -> RecoveryPeriod {
        let mut period = RecoveryPeriod::default();
        [2, 4].into_iter().for_each(|number| period.on_lost(number));
        period.begin(10, true);
        period
    }

    #[test]
    fn a_reduction_is_undone_once_when_all_its_losses_have_arrived() {
        let mut period = period();
        period.on_arrived(4);
        assert_eq!(period.take_spurious(), None);
        period.on_arrived(2);
        assert_eq!((period.take_spurious(), period.take_spurious()), (Some(0), None));
    }

    #[test]
    fn a_loss_found_later_in_the_period_counts_and_those_of_other_periods_do_not() {
        let mut period = period();
        [7, 12].into_iter().for_each(|number| period.on_lost(number));
        [2, 4].into_iter().for_each(|number| period.on_arrived(number));
        assert_eq!(period.take_spurious(), None, "7 is missing");
        period.begin(20, true);
        period.on_arrived(7);
        assert_eq!(period.take_spurious(), None, "12 is missing, and 7 was of the period before");
        period.on_arrived(12);
        assert_eq!(period.take_spurious(), Some(10));
    }

    #[test]
    fn a_reduction_with_another_sign_of_congestion_stays() {
        let mut period = period();
        period.keep();
        [2, 4].into_iter().for_each(|number| period.on_arrived(number));
        assert_eq!(period.take_spurious(), None);
    }
}
