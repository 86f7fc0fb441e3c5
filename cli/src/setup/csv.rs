//! Tables of clients as CSV (RFC 4180), as spreadsheets write them: a heading, then a record per line. Fields are separated
//! by commas or semicolons, and may stand in quotes.

use crate::Failure;
use std::fs;
use std::io::Read as _;
use std::path::Path;

/// The longest table, bytes.
const MAX_LEN: u64 = 4 << 20;

/// A record and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) line: usize,
    /// The fields in the order of the wanted columns; empty if the table does not have the column.
    pub(super) fields: Vec<String>,
}

/// The errors of a table, each with its line.
pub(super) type RowErrors = Vec<(usize, String)>;

/// Reads a table. Its heading names each of `required`, and perhaps `optional` columns, in any order.
///
/// # Errors
/// The file cannot be read, or is no such table; with all errors at their lines.
pub(super) fn read(path: &Path, required: &[&str], optional: &[&str]) -> Result<Vec<Row>, Failure> {
    let unreadable = |error| Failure::Environment(format!("{}: {error}", path.display()));
    let file = fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(MAX_LEN + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_LEN {
        return Err(Failure::Usage(format!("{}: longer than {MAX_LEN} bytes", path.display())));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{}: it is not UTF-8", path.display())))?;
    parse(&text, required, optional).map_err(|errors| failure(path, &errors))
}

/// All errors, a line each. Nothing was changed.
pub(super) fn failure(path: &Path, errors: &[(usize, String)]) -> Failure {
    let lines: Vec<_> = errors.iter().map(|(line, error)| format!("{}:{line}: {error}", path.display())).collect();
    Failure::Usage(format!("nothing is changed:\n  {}", lines.join("\n  ")))
}

fn parse(text: &str, required: &[&str], optional: &[&str]) -> Result<Vec<Row>, RowErrors> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines =
        text.lines().enumerate().map(|(index, line)| (index + 1, line)).filter(|(_, l)| !l.trim().is_empty());
    let wanted: Vec<&str> = required.iter().chain(optional).copied().collect();
    let help = || format!("the first line names the columns: {}", wanted.join(","));
    let (line, heading) = lines.next().ok_or_else(|| vec![(1, help())])?;
    let separator = if heading.contains(';') { ';' } else { ',' };
    let names = split(heading, separator).map_err(|error| vec![(line, error)])?;
    let columns = columns(&names, &wanted, required).map_err(|error| vec![(line, format!("{error}; {}", help()))])?;
    let (mut rows, mut errors) = (Vec::new(), Vec::new());
    for (line, text) in lines {
        match split(text, separator) {
            Ok(fields) if fields.len() == names.len() => {
                let field = |column: &Option<usize>| column.map_or_else(String::new, |index| fields[index].clone());
                rows.push(Row { line, fields: columns.iter().map(field).collect() });
            }
            Ok(fields) => {
                errors.push((line, format!("{} fields, where the heading has {}", fields.len(), names.len())));
            }
            Err(error) => errors.push((line, error)),
        }
    }
    if errors.is_empty() { Ok(rows) } else { Err(errors) }
}

/// The place of each wanted column in the table.
fn columns(names: &[String], wanted: &[&str], required: &[&str]) -> Result<Vec<Option<usize>>, String> {
    if let Some(unknown) = names.iter().find(|name| !wanted.contains(&name.as_str())) {
        return Err(format!("there is no column `{}`", unknown.escape_debug()));
    }
    if let Some(twice) = wanted.iter().find(|name| names.iter().filter(|other| other == *name).count() > 1) {
        return Err(format!("the column `{twice}` stands twice"));
    }
    let place = |name: &&str| names.iter().position(|other| other == name);
    match required.iter().find(|name| place(name).is_none()) {
        Some(missing) => Err(format!("the column `{missing}` is missing")),
        None => Ok(wanted.iter().map(place).collect()),
    }
}

/// The fields of a line, without blanks around them.
fn split(line: &str, separator: char) -> Result<Vec<String>, String> {
    let (mut fields, mut rest) = (Vec::new(), line);
    loop {
        let trimmed = rest.trim_start();
        let (field, after) = match trimmed.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)?,
            None => {
                let end = trimmed.find(separator).unwrap_or(trimmed.len());
                (trimmed[..end].trim_end().to_owned(), &trimmed[end..])
            }
        };
        fields.push(field);
        let after = after.trim_start();
        match after.strip_prefix(separator) {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err("text follows a closing quote".to_owned()),
        }
    }
}

/// A field after its opening quote, and what follows its closing one. Two quotes are one that belongs to the field.
fn quoted_field(text: &str) -> Result<(String, &str), String> {
    let (mut field, mut rest) = (String::new(), text);
    loop {
        let (before, after) = rest.split_once('"').ok_or("a quote is not closed on its line")?;
        field += before;
        match after.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Ok((field, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<Row>, RowErrors> {
        parse(text, &["name"], &["lan"])
    }

    #[test]
    fn tables_of_spreadsheets_are_read() {
        let expected = |line, fields: [&str; 2]| Row { line, fields: fields.map(str::to_owned).into() };
        let table = rows("\u{feff}lan;name\r\n;site-1\r\n\r\n\"10.0.0.0/8\" ; \"a \"\"b\"\"\"\r\n");
        assert_eq!(table, Ok(vec![expected(2, ["site-1", ""]), expected(4, ["a \"b\"", "10.0.0.0/8"])]));
        assert_eq!(rows("name\nsite-1\n"), Ok(vec![expected(2, ["site-1", ""])]));
        assert_eq!(rows("name\n"), Ok(vec![]));
    }

    #[test]
    fn every_wrong_line_is_named() {
        let errors = rows("name,lan\na\n\"b,c\n\"d\"e,\nf,,\ng,\n").unwrap_err();
        assert_eq!(errors.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4, 5]);
        for (text, phrase) in [
            ("", "names the columns"),
            ("lan\n", "`name` is missing"),
            ("name,name\n", "twice"),
            ("name,Lan\n", "no column `Lan`"),
        ] {
            let errors = rows(text).unwrap_err();
            assert!(errors[0].0 == 1 && errors[0].1.contains(phrase), "{text}: {errors:?}");
        }
    }
}
