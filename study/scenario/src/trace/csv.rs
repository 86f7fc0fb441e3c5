//! Rows of times and measured rates.
//!
//! A row's rate holds from the time of the row before it until its own, as in Pensieve's simulator and in the output of
//! monitors; the first row is the beginning. A row without a rate is skipped.

use super::columns::Columns;
use super::rates::{Sample, opportunities};
use super::{Lines, TraceError, date};
use link::RateTrace;

const MAX_RATE: f64 = 1e13;
/// Words that monitors write for a missing value.
const MISSING: [&str; 6] = ["", "-", "nan", "na", "null", "none"];

/// Reads lines of a time in s and a rate in Mbit/s.
pub(super) fn two_columns(rows: Lines<'_>) -> Result<RateTrace, TraceError> {
    let separators = |line: &'_ str| -> Vec<String> {
        let fields = line.split([' ', '\t', ',', ';', '\r']).filter(|field| !field.is_empty());
        fields.map(str::to_owned).collect()
    };
    let columns = Columns { time: 0, time_unit: None, rate: 1, rate_unit: 1e6, count: 2 };
    samples(rows.map(|(number, line)| (number, separators(line))), &columns)
}

/// Reads CSV with a header; if several columns are rates, the one called `column`.
pub(super) fn with_header(mut rows: Lines<'_>, column: Option<&str>) -> Result<RateTrace, TraceError> {
    let Some((number, header)) = rows.next() else { return Err(TraceError::new(1, "the trace is empty", "")) };
    let separator = [',', ';', '\t'].into_iter().find(|separator| header.contains(*separator)).unwrap_or(' ');
    let names = fields(header, separator);
    let columns = Columns::find(&names, column).map_err(|(message, help)| TraceError::new(number, message, help))?;
    samples(rows.map(|(number, line)| (number, fields(line, separator))), &columns)
}

/// The trace of rows.
fn samples(rows: impl Iterator<Item = (usize, Vec<String>)>, columns: &Columns) -> Result<RateTrace, TraceError> {
    let (mut samples, mut begin, mut last) = (Vec::new(), None, 0);
    for (line, fields) in rows {
        if fields.len() != columns.count {
            let message = format!("{} columns, but {} above", fields.len(), columns.count);
            return Err(TraceError::new(line, message, "each line has a value for each column"));
        }
        let Some(rate) =
            rate(&fields[columns.rate], columns.rate_unit).map_err(|(m, h)| TraceError::new(line, m, h))?
        else {
            continue;
        };
        let time = time(&fields[columns.time], columns.time_unit).ok_or_else(|| {
            TraceError::new(line, "this is not a time", "seconds, or a date such as `2020-02-13 13:03:24`")
        })?;
        let end = time.checked_sub(*begin.get_or_insert(time)).and_then(|end| u64::try_from(end).ok());
        let end = end.filter(|end| *end >= last).ok_or_else(|| {
            TraceError::new(
                line,
                "time goes backwards",
                "times ascend; if rows have the same time, the first one counts",
            )
        })?;
        if end > last {
            samples.push(Sample { line, end, rate });
        }
        last = end;
    }
    match samples.is_empty() {
        true => Err(TraceError::new(1, "the trace has no two times", "a rate holds until its row's time")),
        false => opportunities(&samples),
    }
}

/// A rate in bit/s; `None` for a row without one.
fn rate(field: &str, unit: f64) -> Result<Option<u64>, (&'static str, &'static str)> {
    if MISSING.contains(&field.to_ascii_lowercase().as_str()) {
        return Ok(None);
    }
    let Ok(number) = field.parse::<f64>() else {
        return Err(("this is not a rate", "a number, or nothing where there is no measurement"));
    };
    rate_of(number * unit).map(Some).ok_or(("the rate is negative or above 10 Tbit/s", "0 is an outage"))
}

/// A rate in bit/s that a link may have.
pub(super) fn rate_of(bits: f64) -> Option<u64> {
    (0.0..=MAX_RATE).contains(&bits).then_some(bits as u64)
}

/// A time in ns. A number without a unit is in seconds, or a Unix time in ms, us or ns if it is as large.
fn time(field: &str, unit: Option<i128>) -> Option<i128> {
    let Ok(number) = field.parse::<f64>() else { return date::nanos(field) };
    let unit = match unit {
        Some(unit) => unit,
        None if number < 1e11 => 1_000_000_000,
        None if number < 1e14 => 1_000_000,
        None if number < 1e17 => 1_000,
        None => 1,
    };
    let rounded = || number.is_finite().then_some((number * unit as f64).round() as i128);
    exact(field, unit).or_else(rounded)
}

/// A decimal number of units in ns; none with a sign or an exponent. A Unix time has more digits than a float.
fn exact(field: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = field.split_once('.').unwrap_or((field, ""));
    let are_digits = [whole, fraction].iter().all(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !are_digits || whole.len() > 20 {
        return None;
    }
    let part: i128 = format!("{fraction:0<9.9}").parse().ok()?;
    Some(whole.parse::<i128>().unwrap_or(0) * unit + part * unit / 1_000_000_000)
}

/// The fields of a line, which may be quoted (RFC 4180, without line breaks in fields).
fn fields(line: &str, separator: char) -> Vec<String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            letter if letter == separator && !is_quoted => fields.push(std::mem::take(&mut field)),
            letter => field.push(letter),
        }
    }
    fields.push(field);
    let fields = fields.iter().map(|field| field.trim().to_owned());
    fields.filter(|field| separator != ' ' || !field.is_empty()).collect()
}
