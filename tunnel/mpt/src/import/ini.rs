//! MPT's INI dialect: `[section]`, `key = value`, comments after `;` or `#`.

use parse::{Diagnostic, Error};
use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;

/// An INI file with the span of every value.
#[derive(Debug)]
pub(super) struct Ini {
    origin: String,
    text: String,
    sections: BTreeMap<String, Section>,
}

/// A section: the span of its name, and its keys.
#[derive(Debug, Default)]
struct Section {
    span: Range<usize>,
    keys: BTreeMap<String, (String, Range<usize>)>,
}

impl Ini {
    /// Parses `text`; `origin` is its name in errors. The value of `auth_key`, a secret, is masked in them.
    pub(super) fn parse(origin: &str, text: &str) -> Result<Self, Error> {
        let mut ini = Self { origin: origin.into(), text: mask_auth_key(text), sections: BTreeMap::new() };
        let (mut section, mut start) = (String::new(), 0);
        for line in text.split_inclusive('\n') {
            let end = line.find([';', '#']).unwrap_or(line.len());
            let (content, span) = (line[..end].trim(), start..start + line.trim_end().len());
            start += line.len();
            if let Some(name) = content.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
                section = name.trim().to_owned();
                ini.sections.insert(section.clone(), Section { span, keys: BTreeMap::new() });
            } else if let Some((key, value)) = content.split_once('=') {
                let entry = ini.sections.entry(section.clone()).or_default();
                entry.keys.insert(key.trim().to_owned(), (value.trim().trim_matches('"').to_owned(), span));
            } else if !content.is_empty() {
                return Err(ini.error_at(
                    span,
                    "neither a [section] nor `key = value`",
                    "as in MPT's manual, section 5",
                ));
            }
        }
        Ok(ini)
    }

    /// The value of a key; `None` if it is missing or empty.
    pub(super) fn text(&self, section: &str, key: &str) -> Option<&str> {
        self.sections.get(section)?.keys.get(key).map(|(value, _)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// As [`Ini::text`], parsed. `valid` describes valid values for the error.
    pub(super) fn value<T: FromStr>(&self, section: &str, key: &str, valid: &str) -> Result<Option<T>, Error> {
        let Some(text) = self.text(section, key) else { return Ok(None) };
        let error = |_| self.error(section, key, &format!("`{key}` cannot be `{text}`"), valid);
        text.parse().map(Some).map_err(error)
    }

    /// As [`Ini::value`], and an error if it is missing.
    pub(super) fn required<T: FromStr>(&self, section: &str, key: &str, valid: &str) -> Result<T, Error> {
        let missing = || self.error(section, key, &format!("missing key `{key}` in [{section}]"), valid);
        self.value(section, key, valid)?.ok_or_else(missing)
    }

    pub(super) fn has(&self, section: &str) -> bool {
        self.sections.contains_key(section)
    }

    /// The keys of a section.
    pub(super) fn keys(&self, section: &str) -> impl Iterator<Item = &str> {
        self.sections.get(section).into_iter().flat_map(|section| section.keys.keys().map(String::as_str))
    }

    /// An error at a key, or at its section if the key is missing.
    pub(super) fn error(&self, section: &str, key: &str, message: &str, valid: &str) -> Error {
        let entry = self.sections.get(section);
        let span =
            entry.map_or(0..0, |section| section.keys.get(key).map_or(section.span.clone(), |(_, span)| span.clone()));
        self.error_at(span, message, valid)
    }

    fn error_at(&self, span: Range<usize>, message: &str, valid: &str) -> Error {
        Error::new(&self.origin, &self.text, Diagnostic::new(span, message).with_help(valid))
    }
}

/// Overwrites the value of `auth_key` in `text` by `*`, without moving a byte.
fn mask_auth_key(text: &str) -> String {
    let mask_line = |line: &str| match line.split_once('=') {
        Some((key, value)) if key.contains("auth_key") => {
            let mask = value.chars().map(|c| if c.is_whitespace() { c.to_string() } else { "*".repeat(c.len_utf8()) });
            format!("{key}={}", mask.collect::<String>())
        }
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(mask_line).collect()
}
