//! The elementary steps of a window. Linux 6.1 `tcp_cong.c`.

use super::Window;

/// Slow start: grow by what was acked, not beyond the threshold. Returns the packets left over.
pub fn slow_start(window: &mut Window, acked: u32) -> u32 {
    let size = (window.size + acked).min(window.threshold).max(window.size);
    let used = size - window.size;
    window.size = size.min(window.clamp);
    acked - used
}

/// One packet more per `period` packets acked; `window.credit` keeps the fraction.
///
/// The early test avoids a burst when `period` has just shrunk.
pub fn additive_increase(window: &mut Window, period: u32, acked: u32) {
    let period = period.max(1);
    if window.credit >= period {
        window.credit = 0;
        window.size += 1;
    }
    window.credit += acked;
    if window.credit >= period {
        let whole = window.credit / period;
        window.credit -= whole * period;
        window.size += whole;
    }
    window.size = window.size.min(window.clamp);
}

/// Reno's growth: slow start, then one packet a window.
pub fn reno_increase(window: &mut Window, acked: u32) {
    let left = if window.in_slow_start() { slow_start(window, acked) } else { acked };
    if left > 0 {
        additive_increase(window, window.size, left);
    }
}

/// Reno's decrease: half, at least two packets.
#[must_use]
pub fn reno_threshold(window: &Window) -> u32 {
    (window.size / 2).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(size: u32, threshold: u32, credit: u32) -> Window {
        Window { size, threshold, credit, ..Window::default() }
    }

    #[test]
    fn additive_increase_matches_the_kernels_three_cases() {
        let step = |size, period, credit, acked| {
            let mut w = window(size, 2, credit);
            additive_increase(&mut w, period, acked);
            (w.size, w.credit)
        };
        assert_eq!(step(10, 10, 9, 1), (11, 0));
        assert_eq!(step(10, 10, 0, 25), (12, 5));
        assert_eq!(step(10, 4, 7, 0), (11, 0));
    }

    #[test]
    fn slow_start_stops_at_the_threshold_and_returns_the_rest() {
        let mut w = window(10, 12, 0);
        assert_eq!(slow_start(&mut w, 5), 3);
        assert_eq!(w.size, 12);
    }
}
