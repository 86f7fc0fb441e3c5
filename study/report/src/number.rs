//! Numbers and units as a reader of papers expects them.

use crate::layout::Scope;

/// The text for a missing value.
pub(crate) const DASH: &str = "–";
/// In the place of a confidence interval: the runs of all seeds are one and the same.
pub(crate) const IDENTICAL: &str = "identical";

/// The mark of a value to which a disturbed run contributes.
const DISTURBED_MARK: &str = "†";

/// The mark of a mean with an outlier in it.
const OUTLIER_MARK: &str = "‡";

/// `text` with the mark of outliers, if there is one.
pub(crate) fn mark_outlier(text: String, outlier: bool) -> String {
    if outlier { text + OUTLIER_MARK } else { text }
}

/// `text` with the mark of disturbed runs, if there is one.
pub(crate) fn mark_disturbed(text: String, disturbed: bool) -> String {
    if disturbed && text != DASH { text + DISTURBED_MARK } else { text }
}

/// `x` with `digits` significant digits; whole numbers are neither rounded nor padded: 0.609, 5.65, 56.3, 45, 1234.
pub(crate) fn format_digits(x: f64, digits: usize) -> String {
    if !x.is_finite() {
        return DASH.to_owned();
    }
    if x == x.trunc() && x.abs() < 1e15 {
        return (x as i64).to_string();
    }
    let scientific = format!("{x:.*e}", digits - 1); // its exponent is the one after rounding
    let exponent: i64 = scientific.rsplit('e').next().and_then(|e| e.parse().ok()).unwrap_or(0);
    if !(-4..=14).contains(&exponent) {
        return scientific;
    }
    let decimals = usize::try_from(digits as i64 - 1 - exponent).unwrap_or(0);
    format!("{x:.decimals$}")
}

/// `x` with three significant digits.
pub(crate) fn format_number(x: f64) -> String {
    format_digits(x, 3)
}

/// Half the width of an interval: two significant digits, and at most one decimal more than its mean is shown with.
pub(crate) fn format_half_width(half_width: f64, mean: f64) -> String {
    let mean = format_number(mean);
    let finest = 0.1_f64.powi(i32::try_from(decimals(&mean)).unwrap_or(0) + 1);
    let text = format_digits(half_width, 2);
    match half_width {
        half_width if half_width <= 0.0 || mean.contains('e') => text,
        half_width if half_width < finest => format!("<{}", format_digits(finest, 1)),
        half_width => format!("{half_width:.*}", decimals(&text).min(decimals(&mean) + 1)),
    }
}

/// The number of decimals of a number's text.
fn decimals(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, decimals)| decimals.len())
}

/// `x` with three significant digits, or a dash.
pub(crate) fn format_optional(x: Option<f64>) -> String {
    x.map_or_else(|| DASH.to_owned(), format_number)
}

/// Numbers with three significant digits, or with up to six if different numbers would look equal.
pub(crate) fn format_distinct(numbers: &[f64]) -> Vec<String> {
    let with_digits = |digits| numbers.iter().map(|number| format_digits(*number, digits)).collect::<Vec<_>>();
    let are_equal = |texts: &[String]| {
        let mut pairs = (0..texts.len()).flat_map(|first| (0..first).map(move |second| (first, second)));
        pairs.any(|(first, second)| texts[first] == texts[second] && numbers[first] != numbers[second])
    };
    (3..6).map(with_digits).find(|texts| !are_equal(texts)).unwrap_or_else(|| with_digits(6))
}

/// `1 cell`, `48 cells`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A relative error in percent, with its sign.
pub(crate) fn format_percent(error: f64) -> String {
    let percent = error * 100.0;
    match percent.abs() {
        0.0..0.05 => "0.0%".to_owned(), // has no sign
        0.05..9.95 => format!("{percent:+.1}%"),
        _ => format!("{percent:+.0}%"),
    }
}

/// `simulated / published - 1`; none if `published` is zero.
pub(crate) fn relative_error(simulated: f64, published: f64) -> Option<f64> {
    (published != 0.0).then(|| simulated / published - 1.0)
}

/// The name of a field for people, and its unit: `rtt_ms.p95` is "RTT p95" in "ms".
pub(crate) fn name_and_unit(field: &str) -> (String, &'static str) {
    const UNITS: [(&str, &str); 7] = [
        ("_mbps", "Mbit/s"),
        ("_ms", "ms"),
        ("_us", "µs"),
        ("_s", "s"),
        ("_packets", "packets"),
        ("_bytes", "bytes"),
        ("_percent", "%"),
    ];
    match field {
        "drop_percent" => return ("dropped packets".to_owned(), "%"),
        "jain" => return ("Jain's index".to_owned(), ""),
        "share" => return ("share of the goodput".to_owned(), ""),
        "cpu_s_per_gb" => return ("CPU time".to_owned(), "s/GB"),
        "tunnel_cpu_s_per_gb" => return ("tunnel's CPU time".to_owned(), "s/GB"),
        "cpu_percent" => return ("CPU use".to_owned(), "% of first CPU"),
        "tunnel_cpu_percent" => return ("tunnel's CPU use".to_owned(), "% of first CPU"),
        _ => {}
    }
    let (field_name, component) = field.split_once('.').unwrap_or((field, ""));
    let known = UNITS.iter().find_map(|(suffix, unit)| Some((field_name.strip_suffix(suffix)?, *unit)));
    let (name, unit) = known.unwrap_or((field_name, ""));
    let name = format!("{name} {component}")
        .trim()
        .replace(['_', '.'], " ")
        .replace("srtt", "smoothed RTT")
        .replace("rtt", "RTT");
    (name, unit)
}

/// [`name_and_unit`] as one text: "goodput, Mbit/s".
pub(crate) fn name_with_unit(field: &str) -> String {
    name_with_unit_in(&Scope::default(), field)
}

/// [`name_and_unit`] of a value in a scope: a share of what is attainable has no unit.
pub(crate) fn name_and_unit_in(scope: &Scope, field: &str) -> (String, &'static str) {
    match (name_and_unit(field), scope.attainable) {
        ((name, _), Some(_)) => (format!("{name}, share of attainable"), ""),
        (name_and_unit, None) => name_and_unit,
    }
}

/// [`name_and_unit_in`] as one text.
pub(crate) fn name_with_unit_in(scope: &Scope, field: &str) -> String {
    match name_and_unit_in(scope, field) {
        (name, "") => name,
        (name, unit) => format!("{name}, {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_look_like_the_papers() {
        let with_digits =
            [0.609, 5.65, 56.3, 180.04, 1234.5, 9.996, 999.6, 0.0, -2.0, 1e-7, f64::NAN].map(format_number);
        assert_eq!(with_digits, ["0.609", "5.65", "56.3", "180", "1234", "10.0", "1000", "0", "-2", "1.00e-7", "–"]);
    }

    #[test]
    fn half_an_interval_is_no_finer_than_its_mean() {
        let of =
            [(48.1, 0.033), (48.1, 0.0011), (48.1, 6.4), (48.1, 0.0), (0.0170, 0.0022), (109.0, 12.7), (109.0, 0.05)];
        let texts = of.map(|(mean, half_width)| format_half_width(half_width, mean));
        assert_eq!(texts, ["0.03", "<0.01", "6.4", "0", "0.0022", "13", "<0.1"]);
    }

    #[test]
    fn different_numbers_look_different() {
        assert_eq!(format_distinct(&[183.04, 183.02, 12.0]), ["183.04", "183.02", "12"]);
        assert_eq!(format_distinct(&[183.04, 183.04, 1.5]), ["183", "183", "1.50"]);
        assert_eq!(format_distinct(&[1.0000001, 1.0000002]), ["1.00000", "1.00000"], "but not at any price");
    }

    #[test]
    fn the_relative_error_is_a_share_of_the_published_value() {
        assert_eq!(relative_error(110.0, 100.0).map(format_percent).unwrap(), "+10%");
        assert_eq!(relative_error(98.0, 100.0).map(format_percent).unwrap(), "-2.0%");
        assert_eq!(relative_error(99.999, 100.0).map(format_percent).unwrap(), "0.0%");
        assert_eq!(relative_error(0.0, 5.65), Some(-1.0));
        assert_eq!(relative_error(1.0, 0.0), None);
    }

    #[test]
    fn units_come_from_names() {
        assert_eq!(name_with_unit("goodput_mbps"), "goodput, Mbit/s");
        assert_eq!(name_with_unit("rtt_ms.p95"), "RTT p95, ms");
        assert_eq!(name_with_unit("recoveries"), "recoveries");
        assert_eq!(name_with_unit("response_time_ms.p99"), "response time p99, ms");
        assert_eq!(name_with_unit("jain"), "Jain's index");
        assert_eq!(name_with_unit("mean_cwnd_error_percent"), "mean cwnd error, %");
        assert_eq!(name_with_unit("cwnd_packets"), "cwnd, packets");
    }
}
