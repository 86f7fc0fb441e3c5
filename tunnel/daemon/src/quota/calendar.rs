//! Dates of the Gregorian calendar in UTC.

const DAY_S: u64 = 86_400;

/// The first midnight (UTC) after `unix_s` that begins the `day`th of a month, or the last day of a shorter month.
/// Seconds since the Unix epoch.
pub(super) fn next_reset(unix_s: u64, day: u8) -> u64 {
    let (year, month, _) = civil(unix_s / DAY_S);
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    let start = |year, month| days(year, month, u64::from(day).clamp(1, days_in_month(year, month))) * DAY_S;
    let this_month = start(year, month);
    if this_month > unix_s { this_month } else { start(next_year, next_month) }
}

/// The date, as `2026-12-01`.
pub(crate) fn date(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / DAY_S);
    format!("{year}-{month:02}-{day:02}")
}

fn days_in_month(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date: years are counted from March, so that the leap day is a year's last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    // Five months have 153 days, from March on. 1970-01-01 is day 719468 of the year 0.
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Year, month and day of a day since 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days.min(u64::from(u32::MAX)) + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_those_of_the_calendar() {
        // From `date -u -d DATE +%s`.
        for (unix_s, text) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_767_225_599, "2025-12-31"),
            (4_107_542_399, "2100-02-28"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(unix_s), text);
        }
        // A whole cycle of the calendar, day by day.
        for day in 0..146_097 {
            let (year, month, day_of_month) = civil(day);
            assert_eq!(days(year, month, day_of_month), day);
            assert!((1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day_of_month));
        }
    }

    #[test]
    fn a_day_that_a_month_does_not_have_is_its_last_one() {
        let resets = |start: u64, day: u8, count: usize| {
            let times = std::iter::successors(Some(start), |time| Some(next_reset(*time, day)));
            times.skip(1).take(count).map(date).collect::<Vec<_>>()
        };
        // 2028 is a leap year.
        let end_of_2027 = days(2027, 12, 31) * DAY_S;
        assert_eq!(resets(end_of_2027 - 1, 31, 4), ["2027-12-31", "2028-01-31", "2028-02-29", "2028-03-31"]);
        assert_eq!(resets(days(2026, 1, 31) * DAY_S, 31, 3), ["2026-02-28", "2026-03-31", "2026-04-30"]);
        assert_eq!(resets(days(2100, 2, 1) * DAY_S, 29, 2), ["2100-02-28", "2100-03-29"], "no leap year");
        assert_eq!(resets(end_of_2027, 1, 2), ["2028-01-01", "2028-02-01"]);
    }

    #[test]
    fn a_reset_is_at_midnight_and_the_next_one_is_never_the_present() {
        let reset = days(2026, 11, 15) * DAY_S;
        assert_eq!([next_reset(reset - 1, 15), next_reset(reset, 15)], [reset, days(2026, 12, 15) * DAY_S]);
        assert!(next_reset(u64::MAX / 2, 31) > 0, "an absurd clock does not overflow");
    }
}
