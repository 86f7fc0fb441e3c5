//! Decimation of time series that keeps their peaks.

use record::Series;

/// Series on one time axis.
pub(crate) struct Aligned {
    pub(crate) times: Vec<f64>,
    /// Series, column, instant.
    pub(crate) values: Vec<Vec<Vec<f64>>>,
}

/// Brings series to one axis of at most `limit` instants. Series that have too many, or instants of their own, are cut
/// into equal spans of time; each span keeps its minimum and maximum, in the order of time.
pub(crate) fn aligned(series: &[Series], limit: usize) -> Aligned {
    let times = series.first().map_or(&[][..], |first| &first.time_s);
    if times.len() <= limit && series.iter().all(|series| series.time_s == times) {
        return Aligned { times: times.to_vec(), values: series.iter().map(|series| series.values.clone()).collect() };
    }
    let ends = || series.iter().flat_map(|series| series.time_s.first().into_iter().chain(series.time_s.last()));
    let start = ends().copied().fold(f64::INFINITY, f64::min);
    let end = ends().copied().fold(f64::NEG_INFINITY, f64::max);
    let spans = (limit / 2).max(1);
    let length = ((end - start) / spans as f64).max(f64::MIN_POSITIVE);
    let span_of = |time: f64| (((time - start) / length) as usize).min(spans - 1);
    let midpoints = (0..2 * spans).map(|half| start + (half as f64 + 0.5) * length / 2.0).collect();
    let decimate = |series: &Series| {
        let slots: Vec<usize> = series.time_s.iter().map(|time| span_of(*time)).collect();
        series.values.iter().map(|column| extremes(&slots, column, spans)).collect()
    };
    Aligned { times: midpoints, values: series.iter().map(decimate).collect() }
}

/// The minimum and the maximum value of each span, in order of time; NaN for a span without values.
fn extremes(slots: &[usize], values: &[f64], spans: usize) -> Vec<f64> {
    let mut min: Vec<Option<usize>> = vec![None; spans];
    let mut max = min.clone();
    for (index, (span, value)) in slots.iter().zip(values).enumerate().filter(|(_, (_, value))| value.is_finite()) {
        if min[*span].is_none_or(|best| *value < values[best]) {
            min[*span] = Some(index);
        }
        if max[*span].is_none_or(|best| *value > values[best]) {
            max[*span] = Some(index);
        }
    }
    let pair = |(min, max): (Option<usize>, Option<usize>)| match (min, max) {
        (Some(min), Some(max)) => [values[min.min(max)], values[min.max(max)]],
        _ => [f64::NAN; 2],
    };
    min.into_iter().zip(max).flat_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(time_s: Vec<f64>, values: Vec<f64>) -> Series {
        Series { subject: "flow a".to_owned(), columns: vec!["x".to_owned()], time_s, values: vec![values] }
    }

    #[test]
    fn a_single_peak_among_many_points_survives_in_its_place() {
        let times: Vec<f64> = (0..100_000).map(|step| f64::from(step) / 1000.0).collect();
        let mut values = vec![1.0; times.len()];
        values[77_777] = 9.0;
        values[12_345] = -3.0;
        let thin = aligned(&[series(times, values)], 2000);
        assert_eq!(thin.times.len(), 2000);
        let time_of = |value: f64| thin.times[thin.values[0][0].iter().position(|sample| *sample == value).unwrap()];
        assert!((time_of(9.0) - 77.777).abs() < 0.1, "{}", time_of(9.0));
        assert!((time_of(-3.0) - 12.345).abs() < 0.1, "{}", time_of(-3.0));
        assert!(thin.times.is_sorted());
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let thin = aligned(&[series(vec![0.0, 1.0, 5.0], vec![1.0, 2.0, 3.0])], 2000);
        assert_eq!((thin.times, &thin.values[0][0]), (vec![0.0, 1.0, 5.0], &vec![1.0, 2.0, 3.0]));
    }

    #[test]
    fn different_instants_come_to_one_axis() {
        let thin = aligned(&[series(vec![0.0, 1.0], vec![1.0, 2.0]), series(vec![0.5, 4.0], vec![5.0, 6.0])], 8);
        assert_eq!(thin.times.len(), 8);
        assert_eq!(thin.values[0][0][..4], [1.0, 1.0, 2.0, 2.0]);
        assert_eq!(thin.values[1][0][0], 5.0);
        assert!(thin.values[0][0][4..].iter().all(|value| value.is_nan()));
    }
}
