//! Packet loss on the wire.

use crate::config::LossModel;
use units::RngStream;

/// A loss model with its state.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossState {
    model: LossModel,
    /// Gilbert-Elliott: whether the state is the bad one. The initial state is good, as in netem.
    in_bad_state: bool,
}

impl LossState {
    pub(super) fn new(model: LossModel) -> Self {
        Self { model, in_bad_state: false }
    }

    /// Whether the model loses no packets.
    pub(super) fn is_none(&self) -> bool {
        matches!(self.model, LossModel::None)
    }

    /// Whether the next packet is lost.
    #[inline]
    pub(super) fn loses_packet(&mut self, rng: &mut RngStream) -> bool {
        match self.model {
            LossModel::None => false,
            LossModel::Random(probability) => rng.chance(probability),
            LossModel::GilbertElliott { to_bad, to_good, loss_bad, loss_good } => {
                self.in_bad_state ^= rng.chance(if self.in_bad_state { to_good } else { to_bad });
                rng.chance(if self.in_bad_state { loss_bad } else { loss_good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: u32 = 1_000_000;

    fn losses(model: LossModel) -> Vec<bool> {
        let (mut state, mut rng) = (LossState::new(model), RngStream::named(3, "loss"));
        (0..PACKETS).map(|_| state.loses_packet(&mut rng)).collect()
    }

    fn share(losses: &[bool]) -> f64 {
        losses.iter().filter(|lost| **lost).count() as f64 / losses.len() as f64
    }

    #[test]
    fn random_loss_hits_its_rate_within_five_standard_errors() {
        let error = (0.01 * 0.99 / f64::from(PACKETS)).sqrt();
        assert!((share(&losses(LossModel::Random(0.01))) - 0.01).abs() < 5.0 * error);
        assert_eq!(share(&losses(LossModel::None)), 0.0);
    }

    #[test]
    fn gilbert_elliott_loses_at_its_stationary_rate_within_five_standard_errors() {
        let (to_bad, to_good, loss_bad, loss_good) = (0.02, 0.25, 0.6, 0.001);
        let in_bad_state = to_bad / (to_bad + to_good);
        let rate = in_bad_state * loss_bad + (1.0 - in_bad_state) * loss_good;
        let model = LossModel::GilbertElliott { to_bad, to_good, loss_bad, loss_good };
        assert!((model.mean() - rate).abs() < f64::EPSILON, "{}", model.mean());
        // States a distance k apart correlate by rho^k: the variance of the mean of n indicator variables.
        let rho: f64 = 1.0 - to_bad - to_good;
        let covariance = in_bad_state * (1.0 - in_bad_state) * (loss_bad - loss_good) * (loss_bad - loss_good);
        let variance = rate * (1.0 - rate) + 2.0 * covariance * rho / (1.0 - rho);
        let error = (variance / f64::from(PACKETS)).sqrt();
        let share_lost = share(&losses(model));
        assert!((share_lost - rate).abs() < 5.0 * error, "{share_lost} instead of {rate}, standard error {error}");
    }

    #[test]
    fn gilbert_bursts_have_mean_length_one_over_to_good() {
        let to_good = 0.25;
        let losses = losses(LossModel::GilbertElliott { to_bad: 0.02, to_good, loss_bad: 1.0, loss_good: 0.0 });
        let bursts: Vec<f64> = losses.split(|lost| !lost).filter(|b| !b.is_empty()).map(|b| b.len() as f64).collect();
        let mean = bursts.iter().sum::<f64>() / bursts.len() as f64;
        // Geometric: variance (1 - p) / p^2.
        let error = ((1.0 - to_good) / (to_good * to_good) / bursts.len() as f64).sqrt();
        assert!((mean - 1.0 / to_good).abs() < 5.0 * error, "{mean}, standard error {error}");
    }
}
