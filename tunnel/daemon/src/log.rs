//! The daemon's log on standard error: text lines or JSON. Events at packet rate are counted, not logged.

use serde_json::{Map, Value, json};
use std::fmt;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text lines; without times under journald, which adds its own.
    #[default]
    Text,
    /// One JSON object for each line.
    Json,
}

/// Initialises the log of this process. `RUST_LOG` is the least severe level that is logged (`error`, `warn`, `info`, `debug`,
/// `trace`); `info` is the default.
pub fn start(format: LogFormat) {
    let named = std::env::var("RUST_LOG").ok().and_then(|level| level.parse().ok());
    let level = named.unwrap_or(LevelFilter::INFO);
    let timed = format == LogFormat::Json || std::env::var_os("JOURNAL_STREAM").is_none();
    // A test may have initialised it already.
    let _ = tracing::subscriber::set_global_default(LogSubscriber { format, level, timed });
}

/// Writes each event as a line to standard error.
struct LogSubscriber {
    format: LogFormat,
    level: LevelFilter,
    timed: bool,
}

impl Subscriber for LogSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let time = self.timed.then(|| since_1970().map(timestamp)).flatten();
        let line = match self.format {
            LogFormat::Text => text(time, *event.metadata().level(), &fields.0),
            LogFormat::Json => json(time, *event.metadata().level(), fields.0),
        };
        // There is nowhere to report a failure.
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }

    // The daemon has no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The fields of an event; its text has the key `message`.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

fn text(time: Option<String>, level: Level, fields: &Map<String, Value>) -> String {
    let time = time.map_or_else(String::new, |time| time + " ");
    let message = fields.get("message").and_then(Value::as_str).unwrap_or_default();
    let others = fields.iter().filter(|(key, _)| *key != "message");
    let others: String = others.map(|(key, value)| format!(" {key}={value}")).collect();
    format!("{time}{:>5} {message}{others}\n", level.as_str())
}

fn json(time: Option<String>, level: Level, fields: Map<String, Value>) -> String {
    format!("{}\n", json!({"timestamp": time, "level": level.as_str(), "fields": fields}))
}

fn since_1970() -> Option<u64> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_micros().try_into().ok()
}

/// Microseconds since 1970 as RFC 3339 writes them, in UTC.
fn timestamp(microseconds: u64) -> String {
    let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
    let (mut day, time) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    while day >= days_of(year) {
        day -= days_of(year);
        year += 1;
    }
    let mut month = 0;
    let february = 28 + days_of(year) - 365;
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while day >= months[month] {
        day -= months[month];
        month += 1;
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z", month + 1, day + 1)
}

fn days_of(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    365 + u64::from(leap)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The right sides are of `date --utc`.
    #[test]
    fn days_and_years_are_those_of_the_calendar() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(timestamp(1_709_164_799_000_001), "2024-02-28T23:59:59.000001Z");
        assert_eq!(timestamp(1_709_251_199_000_000), "2024-02-29T23:59:59.000000Z");
        assert_eq!(timestamp(4_107_542_400_000_000), "2100-03-01T00:00:00.000000Z");
    }

    #[test]
    fn a_line_has_level_text_and_fields() {
        let fields = || json!({"message": "up", "interface": "rw0"}).as_object().unwrap().clone();
        assert_eq!(text(None, Level::INFO, &fields()), " INFO up interface=\"rw0\"\n");
        let line = json(Some("now".into()), Level::WARN, fields());
        assert_eq!(
            line,
            "{\"fields\":{\"interface\":\"rw0\",\"message\":\"up\"},\"level\":\"WARN\",\"timestamp\":\"now\"}\n"
        );
    }
}
