//! Which columns of a CSV file are the time and the rate, by their names.

/// The columns of a table.
#[derive(Debug, PartialEq)]
pub(super) struct Columns {
    pub(super) time: usize,
    /// Nanoseconds per unit; none if the name has no unit.
    pub(super) time_unit: Option<i128>,
    pub(super) rate: usize,
    /// Bit/s per unit.
    pub(super) rate_unit: f64,
    /// Columns in all.
    pub(super) count: usize,
}

/// Parts of the name of a column of rates.
const RATE: [&str; 9] = ["throughput", "goodput", "bandwidth", "capacity", "rate", "bps", "bit", "byte", "b/s"];
/// Units of rates in lower case, bit/s. The first one that a name contains applies.
const RATE_UNITS: [(&[&str], f64); 4] = [
    (&["gbps", "gbit", "gb/s", "gbits"], 1e9),
    (&["mbps", "mbit", "mb/s", "mbits"], 1e6),
    (&["kbps", "kbit", "kb/s", "kbits"], 1e3),
    (&["bps", "bit/s", "bits_per", "bits per", "bits/s", "bit_per"], 1.0),
];
/// Units of bytes, which differ from those of bits by a capital letter.
const BYTES: [&str; 5] = ["Bps", "B/s", "Byte", "byte", "BYTE"];
/// Names in G-NetTrack's logs, as in the 4G and 5G data sets of University College Cork: kbit/s.
const G_NET_TRACK: [&str; 2] = ["dl_bitrate", "ul_bitrate"];
/// Ends of a name of a column of times, ns.
const TIME_UNITS: [(&[&str], i128); 4] = [
    (&["ms", "msec", "millis", "milliseconds"], 1_000_000),
    (&["us", "usec", "micros", "microseconds"], 1_000),
    (&["ns", "nsec", "nanos", "nanoseconds"], 1),
    (&["s", "sec", "secs", "seconds"], 1_000_000_000),
];

/// A message and a help.
type Fault = (String, String);

impl Columns {
    /// The columns of time and rate among `names`; if several are rates, the one called `wanted`, or that of the download.
    pub(super) fn find(names: &[String], wanted: Option<&str>) -> Result<Self, Fault> {
        let lower: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let time = lower.iter().position(|name| is_time(name)).ok_or_else(|| {
            ("no column is recognised as a time".to_owned(), "call it `time_s`, `time_ms` or `timestamp`".to_owned())
        })?;
        let rate = match wanted {
            Some(wanted) => names.iter().position(|name| name == wanted).ok_or_else(|| {
                (format!("no column is called `{wanted}`"), "the name after `#` has to be that of a column".to_owned())
            })?,
            None => only_rate(&lower, time)?,
        };
        let rate_unit = rate_unit(&names[rate]).ok_or_else(|| {
            let help = "end its name with `_mbps`, `_kbps` or `_bps`".to_owned();
            (format!("the name of column {} has no unit of a rate", rate + 1), help)
        })?;
        Ok(Self { time, time_unit: time_unit(&lower[time]), rate, rate_unit, count: names.len() })
    }
}

/// The only column of rates, or the only one of a download.
fn only_rate(names: &[String], time: usize) -> Result<usize, Fault> {
    let is_rate = |index: &usize| *index != time && RATE.iter().any(|part| names[*index].contains(part));
    let rates: Vec<usize> = (0..names.len()).filter(is_rate).collect();
    let is_download = |index: &&usize| names[**index].starts_with("dl") || names[**index].contains("down");
    let downloads: Vec<usize> = rates.iter().filter(is_download).copied().collect();
    match (rates.as_slice(), downloads.as_slice()) {
        ([only], _) | (_, [only]) => Ok(*only),
        ([], _) => Err((
            "no column is recognised as a rate".to_owned(),
            "call it `throughput_mbps`, or add `#COLUMN`".to_owned(),
        )),
        (several, _) => {
            let numbers: Vec<String> = several.iter().map(|index| (index + 1).to_string()).collect();
            let help = "add `#` and the column's name to the file's";
            Err((format!("columns {} are all recognised as rates", numbers.join(", ")), help.to_owned()))
        }
    }
}

fn is_time(name: &str) -> bool {
    let word = name.split([' ', '_', '(', '[', '-', '.']).next().unwrap_or(name);
    name.contains("time") || ["date", "t", "s", "ms", "sec", "second", "seconds", "elapsed", "epoch"].contains(&word)
}

fn time_unit(name: &str) -> Option<i128> {
    let last = name.split(|letter: char| !letter.is_ascii_alphabetic()).rfind(|word| !word.is_empty())?;
    TIME_UNITS.iter().find(|(units, _)| units.contains(&last)).map(|(_, nanos)| *nanos)
}

fn rate_unit(name: &str) -> Option<f64> {
    let lower = name.to_ascii_lowercase();
    let prefix = ["g", "m", "k"].into_iter().zip([1e9, 1e6, 1e3]);
    if G_NET_TRACK.contains(&lower.as_str()) {
        return Some(1e3);
    }
    if let Some(at) = BYTES.iter().filter_map(|unit| name.find(unit)).min() {
        let before = lower[..at].chars().next_back();
        let scale = prefix.into_iter().find(|(letter, _)| before == letter.chars().next()).map_or(1.0, |(_, n)| n);
        return Some(8.0 * scale);
    }
    RATE_UNITS.iter().find(|(units, _)| units.iter().any(|unit| lower.contains(unit))).map(|(_, bits)| *bits)
}
