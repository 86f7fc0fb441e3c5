//! The kernel's timestamps of a connection.

/// Milliseconds of the script at which the kernel sent packets, and their TSval.
#[derive(Debug, Default)]
pub(super) struct Stamps(Vec<(u32, u32)>);

impl Stamps {
    pub(super) fn add(&mut self, at_us: u64, tsval: u32) {
        self.0.push(((at_us / 1000) as u32, tsval));
    }

    /// The latest TSval; zero without timestamps.
    pub(super) fn last(&self) -> u32 {
        self.0.last().map_or(0, |stamp| stamp.1)
    }

    /// The TSval of the packet that was sent at this millisecond of the script, to a millisecond. If none was sent then, what
    /// the kernel's clock said.
    pub(super) fn echo(&self, millisecond: u32) -> u32 {
        let nearest = self.0.iter().min_by_key(|stamp| stamp.0.abs_diff(millisecond));
        nearest.map_or(0, |(sent, tsval)| match sent.abs_diff(millisecond) {
            0 | 1 => *tsval,
            _ => tsval.wrapping_add(millisecond).wrapping_sub(*sent),
        })
    }
}
