//! Prometheus's text format, version 0.0.4.

use std::fmt::Write;

/// A metric with its samples.
#[derive(Debug)]
pub(super) struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: String,
}

impl Family {
    /// A value that goes up and down. `help` is one line, without a backslash.
    pub(super) fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: "gauge", help, samples: String::new() }
    }

    /// A sum that only grows.
    pub(super) fn counter(name: &'static str, help: &'static str) -> Self {
        Self { kind: "counter", ..Self::gauge(name, help) }
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.samples, "{}{labels} {value}", self.name);
    }

    /// The text of the family; empty if it has no sample.
    pub(super) fn text(&self) -> String {
        let Self { name, kind, help, samples } = self;
        if samples.is_empty() {
            return String::new();
        }
        format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}")
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_written_as_prometheus_documents_it() {
        let mut family = Family::gauge("a_ratio", "What it is.");
        assert_eq!(family.text(), "");
        family.add(&[], 0.25);
        family.add(&[("name", "a \"quoted\" \\ line\nbreak"), ("id", "7")], 3.0);
        let expected = "# HELP a_ratio What it is.\n# TYPE a_ratio gauge\na_ratio 0.25\n\
                        a_ratio{name=\"a \\\"quoted\\\" \\\\ line\\nbreak\",id=\"7\"} 3\n";
        assert_eq!(family.text(), expected);
    }
}
