//! Dates with a time of day, in the orders of ISO 8601: `2020-02-13T13:03:24.5Z`, `2020.02.13_13.03.24`.

const DAY: i128 = 86_400;

/// Nanoseconds since 1970 of a date; the zone is ignored, because only differences count.
pub(super) fn nanos(text: &str) -> Option<i128> {
    let zone = text.get(19..).and_then(|rest| rest.find(['+', '-', 'Z', 'z']));
    let text = zone.map_or(text, |at| &text[..19 + at]).trim_end();
    let (mut parts, mut separators) = (Vec::new(), Vec::new());
    for part in text.split_inclusive(|letter: char| !letter.is_ascii_digit()) {
        let digits = part.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        parts.push(digits);
        separators.push(&part[digits.len()..]);
    }
    let numbers: Option<Vec<i128>> = parts.iter().map(|part| part.parse().ok()).collect();
    let (date, fraction) = match numbers?[..] {
        [year, month, day, hour, minute, second] => ([year, month, day, hour, minute, second], 0),
        [year, month, day, hour, minute, second, _] if [".", ","].contains(&separators[5]) => {
            let digits = format!("{:0<9.9}", parts[6]);
            ([year, month, day, hour, minute, second], digits.parse().ok()?)
        }
        _ => return None,
    };
    let [year, month, day, hour, minute, second] = date;
    let is_date = (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_time = hour < 24 && minute < 60 && second <= 60;
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    (is_date && is_time).then_some(seconds * 1_000_000_000 + fraction)
}

/// Days since 1970 of a date of the Gregorian calendar; a year begins in March, so that a leap day is its last.
fn days(year: i128, month: i128, day: i128) -> i128 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}
