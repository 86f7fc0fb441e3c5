//! A time series at other instants than its own.

/// The values of a series (`times` ascending) at `instants` (ascending), by linear interpolation; NaN
/// before the first one, after the last one, and beside one that is NaN.
pub(crate) fn resampled(times: &[f64], values: &[f64], instants: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut next = 0;
    instants
        .map(|instant| {
            while next < times.len() && times[next] < instant - SAME {
                next += 1;
            }
            match times.get(next) {
                Some(time) if *time <= instant + SAME => values[next],
                Some(time) if next > 0 => {
                    let share = (instant - times[next - 1]) / (time - times[next - 1]);
                    values[next - 1] + share * (values[next] - values[next - 1])
                }
                _ => f64::NAN,
            }
        })
        .collect()
}

/// Instants that differ by less are the same, seconds.
const SAME: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_samples_a_series_is_straight_and_beyond_them_unknown() {
        let (times, values) = ([1.0, 2.0, 4.0, 5.0], [10.0, 20.0, 0.0, f64::NAN]);
        let instants = [0.5, 1.0, 1.25, 2.0, 3.5, 4.0, 4.5, 5.5];
        let shown = format!("{:?}", resampled(&times, &values, instants.into_iter()));
        assert_eq!(shown, "[NaN, 10.0, 12.5, 20.0, 5.0, 0.0, NaN, NaN]");
        assert!(resampled(&[], &[], instants.into_iter()).iter().all(|value| value.is_nan()));
    }
}
