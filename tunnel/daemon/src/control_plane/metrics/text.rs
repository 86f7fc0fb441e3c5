//! Metrics as text: OpenMetrics 1.0, or Prometheus's text format 0.0.4, as the request's `Accept` prefers.

use std::fmt::Write as _;

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// Prometheus's text format 0.0.4, which every reader knows.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl MetricsFormat {
    /// The format that the value of an `Accept` header prefers (RFC 9110, section 12.5.1). Text unless it names OpenMetrics.
    #[must_use]
    pub fn preferred(accept: &str) -> Self {
        let quality = |name: &str| {
            let of_range = |range: &str| {
                let mut parts = range.split(';').map(str::trim);
                let is_named = parts.next().is_some_and(|media_type| media_type.eq_ignore_ascii_case(name));
                let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f64>().ok());
                is_named.then(|| weight.unwrap_or(1.0))
            };
            accept.split(',').filter_map(of_range).fold(0.0, f64::max)
        };
        let open_metrics = quality("application/openmetrics-text");
        if open_metrics > 0.0 && open_metrics >= quality("text/plain") { Self::OpenMetrics } else { Self::Text }
    }

    /// The media type, for `Content-Type`.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A value that rises and falls.
    Gauge,
    /// A count from the start of the daemon; `_total` is added to the name.
    Counter,
}

/// Labels of a series, in order.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The text that is being written.
pub(super) struct Writer {
    format: MetricsFormat,
    text: String,
}

impl Writer {
    pub(super) fn new(format: MetricsFormat) -> Self {
        Self { format, text: String::new() }
    }

    /// Writes a family: its description, then its samples. Values that are not known are left out, and a family without
    /// any.
    pub(super) fn family<'a>(
        &mut self,
        name: &str,
        help: &str,
        kind: Kind,
        samples: impl Iterator<Item = (&'a Labels, Option<f64>)>,
    ) {
        let mut samples = samples.filter_map(|(labels, value)| Some((labels, value?))).peekable();
        if samples.peek().is_none() {
            return;
        }
        self.describe(name, help, kind);
        for (labels, value) in samples {
            self.sample(name, kind, labels, value);
        }
    }

    fn describe(&mut self, name: &str, help: &str, kind: Kind) {
        let (suffix, word) = match (kind, self.format) {
            (Kind::Gauge, _) => ("", "gauge"),
            (Kind::Counter, MetricsFormat::Text) => ("_total", "counter"),
            (Kind::Counter, MetricsFormat::OpenMetrics) => ("", "counter"),
        };
        let name = full_name(name);
        let _ = writeln!(self.text, "# HELP {name}{suffix} {help}.\n# TYPE {name}{suffix} {word}");
        let unit = name.rsplit('_').next().filter(|unit| matches!(*unit, "seconds" | "bytes" | "ratio"));
        if let (Some(unit), MetricsFormat::OpenMetrics) = (unit, self.format) {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
    }

    fn sample(&mut self, name: &str, kind: Kind, labels: &Labels, value: f64) {
        let total = if kind == Kind::Counter { "_total" } else { "" };
        let _ = write!(self.text, "{}{total}", full_name(name));
        for (index, (label, text)) in labels.iter().enumerate() {
            let start = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{start}{label}=\"{}\"", escape(text));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    pub(super) fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// The name with the prefix that all but the metrics of processes have.
fn full_name(name: &str) -> String {
    if name.starts_with("process_") { name.to_owned() } else { format!("ropewalk_{name}") }
}

/// A value of a label, in which both formats escape three characters.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_one_that_accept_prefers() {
        for (accept, expected) in [
            ("", MetricsFormat::Text),
            ("*/*", MetricsFormat::Text),
            ("text/html, text/plain;q=0.5", MetricsFormat::Text),
            ("application/openmetrics-text;q=0", MetricsFormat::Text),
            ("application/openmetrics-text;q=0.2,text/plain;q=0.5", MetricsFormat::Text),
            ("application/openmetrics-text", MetricsFormat::OpenMetrics),
            // Prometheus 2 and 3.
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                MetricsFormat::OpenMetrics,
            ),
        ] {
            assert_eq!(MetricsFormat::preferred(accept), expected, "{accept}");
        }
    }

    #[test]
    fn labels_are_escaped_and_unknown_values_left_out() {
        let labels: Labels = vec![("peer", "a\"b\\c\nd".to_owned())];
        let write = |format| {
            let mut writer = Writer::new(format);
            writer.family("x_bytes", "X", Kind::Counter, [(&labels, Some(2.0)), (&labels, None)].into_iter());
            writer.family("y", "Y", Kind::Gauge, [(&labels, None)].into_iter());
            writer.finish()
        };
        let sample = "ropewalk_x_bytes_total{peer=\"a\\\"b\\\\c\\nd\"} 2\n";
        let text = format!("# HELP ropewalk_x_bytes_total X.\n# TYPE ropewalk_x_bytes_total counter\n{sample}");
        assert_eq!(write(MetricsFormat::Text), text);
        let head = "# HELP ropewalk_x_bytes X.\n# TYPE ropewalk_x_bytes counter\n# UNIT ropewalk_x_bytes bytes\n";
        assert_eq!(write(MetricsFormat::OpenMetrics), format!("{head}{sample}# EOF\n"));
    }
}
