//! When clients expire: a date, a time from now, or never.

use super::clients::date;
use daemon::config::unix_time;
use time::{Date, Month, Time};

/// Days in the longest time, ten years.
const MAX_DAYS: u64 = 3660;
/// The description of times.
pub(super) const HELP: &str =
    "a day such as 2027-03-31, which is its last one (UTC), a time from now such as 90d or 12h, or never";

/// Reads the end of a client's time: Unix time in seconds, or `None` for never.
///
/// # Errors
/// It is no such time, or is over already.
pub(super) fn parse(text: &str) -> Result<Option<u64>, String> {
    parse_at(text, unix_time())
}

fn parse_at(text: &str, now: u64) -> Result<Option<u64>, String> {
    if text == "never" {
        return Ok(None);
    }
    let end = of_duration(text, now).or_else(|| of_day(text));
    let end = end.ok_or_else(|| format!("`{}` is no time: {HELP}", text.escape_debug()))?;
    if end <= now {
        return Err(format!("`{text}` is over: it is {} now; `--revoke` ends a session at once", date(now)));
    }
    if end > now + MAX_DAYS * 86_400 {
        return Err(format!("`{text}` is more than {MAX_DAYS} days from now: `never` has no end"));
    }
    Ok(Some(end))
}

fn of_duration(text: &str, now: u64) -> Option<u64> {
    let (number, seconds) = [('d', 86_400), ('h', 3600)]
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?.parse::<u64>().ok()?, *seconds)))?;
    now.checked_add(number.checked_mul(seconds)?)
}

/// The end of a day.
fn of_day(text: &str) -> Option<u64> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let month = Month::try_from(month.parse::<u8>().ok()?).ok()?;
    let day = Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()?;
    let end = day.next_day()?.with_time(Time::MIDNIGHT).assume_utc().unix_timestamp();
    parts.next().is_none().then(|| u64::try_from(end).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-29 10:00 UTC.
    const NOW: u64 = 1_795_946_400;

    #[test]
    fn days_and_times_from_now_are_read_and_others_are_refused() {
        assert_eq!(parse_at("never", NOW), Ok(None));
        assert_eq!(parse_at("12h", NOW), Ok(Some(NOW + 43_200)));
        assert_eq!(parse_at("90d", NOW), Ok(Some(NOW + 90 * 86_400)));
        // Until the day is over: today, too, and a leap day.
        assert_eq!(parse_at("2026-11-29", NOW), Ok(Some(NOW + 14 * 3600)));
        assert_eq!(parse_at("2028-02-29", NOW).map(|end| end.map(|end| end % 86_400)), Ok(Some(0)));
        for (text, phrase) in [
            ("2026-11-28", "is over"),
            ("0d", "is over"),
            ("2027-02-29", "no time"),
            ("2027-13-01", "no time"),
            ("2027-03", "no time"),
            ("2027-03-01-", "no time"),
            ("tomorrow", "no time"),
            ("-1d", "no time"),
            ("99999999999999999999d", "no time"),
            ("9999d", "more than"),
            ("", "no time"),
        ] {
            let error = parse_at(text, NOW).unwrap_err();
            assert!(error.contains(phrase), "{text}: {error}");
        }
    }
}
