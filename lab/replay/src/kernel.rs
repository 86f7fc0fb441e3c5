//! A kernel, as far as a script depends on it.

use control::LinuxRelease;
use serde::{Deserialize, Serialize};
use transport::tcp::sender::SenderConfig;

/// How a script names a [`LinuxRelease`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "LinuxRelease")]
pub(crate) enum Release {
    #[serde(rename = "6.1")]
    V6_1,
    #[serde(rename = "6.12")]
    V6_12,
    #[serde(rename = "6.18")]
    V6_18,
}

/// What a script depends on.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its series.
    pub release: LinuxRelease,
    /// The tick of its timers, microseconds.
    pub tick_us: u64,
    /// Its memory for the headers of a packet, bytes (`MAX_TCP_HEADER`).
    pub max_header: u32,
}

/// `max_header` of a script that does not say it.
pub(crate) fn default_max_header() -> u32 {
    SenderConfig::MAX_HEADER
}

pub(crate) fn is_default(release: &LinuxRelease) -> bool {
    *release == LinuxRelease::default()
}

/// The series whose rules are nearest to those of a kernel: the latest that is not newer than it.
#[must_use]
pub fn series_of(version: &str) -> LinuxRelease {
    let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
    match (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) {
        kernel if kernel >= (6, 18) => LinuxRelease::V6_18,
        kernel if kernel >= (6, 12) => LinuxRelease::V6_12,
        _ => LinuxRelease::V6_1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_follows_the_latest_series_that_is_not_newer() {
        for (version, series) in [
            ("6.1.192", LinuxRelease::V6_1),
            ("6.11.0-generic", LinuxRelease::V6_1),
            ("6.12.90+deb13", LinuxRelease::V6_12),
            ("6.18.44-vm", LinuxRelease::V6_18),
            ("7.0.0", LinuxRelease::V6_18),
        ] {
            assert_eq!(series_of(version), series, "{version}");
        }
    }
}
