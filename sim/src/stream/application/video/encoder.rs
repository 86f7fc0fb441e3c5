//! The sizes of a video's frames.
//!
//! Frames come in groups of pictures (GOP). A group's first frame, the I-frame, is `intra` times as large as the
//! others, the P-frames. With G frames per group, F frames per second and a rate R, the mean frame has m = R / 8F bytes, an
//! I-frame m G intra / (G - 1 + intra), a P-frame m G / (G - 1 + intra). Rounding is carried over, so that constant bit
//! rate is exact: n whole groups have n G m bytes, to the byte.
//!
//! Variable bit rate multiplies a frame with two lognormal draws of mean 1, one of its own and one of its group: frames
//! of real video are about lognormal or gamma, and scenes keep neighbours alike (Krunz and Tripathi 1997). Draws of
//! single frames average out in half a second; the bursts that matter to a network are those of groups.

use scenario::model::{Video, standard_normal};
use units::{Rate, RngStream};

/// Draws the sizes of frames.
#[derive(Debug)]
pub(super) struct Encoder {
    fps: f64,
    gop: u64,
    /// Size of an I-frame and of a P-frame, in mean frames.
    i_frame: f64,
    p_frame: f64,
    frames: LogNormal,
    groups: LogNormal,
    /// The current group's factor.
    group_factor: f64,
    /// Remainder of rounding, bytes.
    carry: f64,
    rng: RngStream,
}

impl Encoder {
    pub(super) fn new(video: &Video, rng: RngStream) -> Self {
        let gop = f64::from(video.gop);
        let p_frame = gop / (gop - 1.0 + video.intra);
        Self {
            fps: f64::from(video.fps),
            gop: u64::from(video.gop),
            i_frame: p_frame * video.intra,
            p_frame,
            frames: LogNormal::new(video.variation),
            groups: LogNormal::new(video.group_variation),
            group_factor: 1.0,
            carry: 0.0,
            rng,
        }
    }

    /// Bytes of frame `number`, from 0, at a mean rate; at least one. Frames must be requested in order.
    pub(super) fn frame(&mut self, number: u64, rate: Rate) -> u64 {
        let is_first = number.is_multiple_of(self.gop);
        if is_first {
            self.group_factor = self.groups.draw(&mut self.rng);
        }
        let relative_size = if is_first { self.i_frame } else { self.p_frame };
        let mean = rate.as_bits() as f64 / 8.0 / self.fps;
        let exact = mean * relative_size * self.group_factor * self.frames.draw(&mut self.rng) + self.carry;
        // A millionth of a byte, so that a sum that is whole except for binary rounding counts as whole.
        let bytes = ((exact + 1e-6) as u64).max(1);
        self.carry = exact - bytes as f64;
        bytes
    }
}

/// A lognormal distribution with mean 1.
#[derive(Clone, Copy, Debug)]
struct LogNormal {
    /// Standard deviation of the logarithm.
    sigma: f64,
}

impl LogNormal {
    /// With this coefficient of variation c: sigma^2 = ln(1 + c^2).
    fn new(variation: f64) -> Self {
        Self { sigma: libm::sqrt(libm::log1p(variation * variation)) }
    }

    /// exp(sigma z - sigma^2 / 2), z standard normal.
    fn draw(self, rng: &mut RngStream) -> f64 {
        if self.sigma == 0.0 {
            return 1.0;
        }
        libm::exp(self.sigma * (standard_normal(rng) - self.sigma / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::model::Playback;
    use units::Span;

    fn video(intra: f64, variation: f64, group_variation: f64) -> Video {
        let playback = Playback::Live { latency: Span::from_secs(1) };
        Video { ladder: Vec::new(), fps: 30, gop: 10, intra, variation, group_variation, playback }
    }

    fn sizes(video: &Video, rate: Rate, count: u64) -> Vec<f64> {
        let mut encoder = Encoder::new(video, RngStream::named(1, "video"));
        (0..count).map(|number| encoder.frame(number, rate) as f64).collect()
    }

    /// Mean and coefficient of variation.
    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn a_constant_bit_rate_is_exact_whatever_the_groups_look_like() {
        // 1 Mbit/s at 30 frames a second: 4166 2/3 bytes a frame, 41 666 2/3 a group.
        for intra in [1.0, 3.0, 8.5] {
            let sizes = sizes(&video(intra, 0.0, 0.0), Rate::from_mbit(1), 3000);
            assert_eq!(sizes.iter().sum::<f64>(), 100.0 * 125_000.0);
            assert!((sizes[0] / sizes[1] - intra).abs() < 0.005, "{} and {}", sizes[0], sizes[1]);
            assert!(sizes.chunks(10).all(|group| (group.iter().sum::<f64>() - 41_666.67).abs() <= 1.0));
        }
    }

    /// With n frames the mean's standard error is c / sqrt(n). That of a lognormal's c is about
    /// c sqrt((1 + c^2)^4 / n) for c up to 1; with 300 000 frames and c = 0.5 below 0.003.
    #[test]
    fn a_variable_bit_rate_has_its_mean_and_its_variation() {
        let (mean, variation) = moments(&sizes(&video(1.0, 0.5, 0.0), Rate::from_mbit(6), 300_000));
        assert!((mean / 25_000.0 - 1.0).abs() < 5.0 * 0.5 / 300_000_f64.sqrt(), "{mean} bytes");
        assert!((variation - 0.5).abs() < 0.015, "{variation}");
        // Groups: 30 000 draws of ten frames each.
        let frames = sizes(&video(1.0, 0.0, 0.5), Rate::from_mbit(6), 300_000);
        let groups: Vec<f64> = frames.chunks(10).map(|group| group.iter().sum()).collect();
        let (mean, variation) = moments(&groups);
        assert!((mean / 250_000.0 - 1.0).abs() < 5.0 * 0.5 / 30_000_f64.sqrt(), "{mean} bytes a group");
        assert!((variation - 0.5).abs() < 0.03, "{variation}");
    }
}
