//! The program's output for results folders.

use crate::shell;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder with the results of all studies, and the program that reads them.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) folder: String,
    pub(super) program: String,
}

/// A value of a table of a report: the mean over its runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) panel: String,
    pub(super) row: String,
    pub(super) column: String,
    pub(super) mean: f64,
}

impl Results {
    /// The file that holds the output of a study.
    pub(super) fn output(&self, study: &str) -> String {
        format!("{}/{study}.out", self.folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        shell::root().join(&self.folder).join(name)
    }

    /// Whether a study's folder exists and is finished: an unfinished one has parts.
    pub(super) fn has(&self, study: &str) -> bool {
        self.path(study).is_dir() && !self.path(study).join("parts").exists()
    }

    /// The document of the claims' verdicts of a folder.
    pub(super) fn claims(&self, name: &str) -> Result<Value, String> {
        let text = shell::output(&format!("{} report {}/{name} --json", self.program, self.folder))?;
        let document: Value = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        Ok(document["claims"].clone())
    }

    /// The output of a study.
    pub(super) fn printed(&self, study: &str) -> Result<String, String> {
        let path = self.output(study);
        fs::read_to_string(shell::root().join(&path)).map_err(|error| format!("{path}: {error}"))
    }

    /// The first file of a study's figures whose name begins and ends so.
    fn figure(&self, study: &str, start: &str, end: &str) -> Result<PathBuf, String> {
        let figures = format!("{}/figures/{study}", self.folder);
        shell::output(&format!("{} report {}/{study} --figures {figures}", self.program, self.folder))?;
        let files = fs::read_dir(shell::root().join(&figures)).map_err(|error| format!("{figures}: {error}"))?;
        let mut paths = files.filter_map(|file| Some(file.ok()?.path()));
        let is_wanted = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(start) && name.ends_with(end)
        };
        paths.find(|path| is_wanted(path)).ok_or(format!("{figures} has no {start}*{end}"))
    }

    /// The table with this number of a study's report.
    pub(super) fn table(&self, study: &str, number: usize) -> Result<Vec<Cell>, String> {
        let path = self.figure(study, &format!("table-{number}-"), ".csv")?;
        cells(&fs::read_to_string(path).map_err(|error| error.to_string())?)
    }

    /// Copies a study's first table as a drawing.
    pub(super) fn copy_figure(&self, study: &str, to: &str) -> Result<(), String> {
        let to = shell::root().join(to);
        fs::create_dir_all(to.parent().unwrap_or(Path::new(""))).map_err(|error| error.to_string())?;
        let copied = fs::copy(self.figure(study, "table-1-", ".svg")?, &to);
        copied.map(drop).map_err(|error| format!("{}: {error}", to.display()))
    }
}

/// The values of a table's CSV file: the labels, then the columns from `mean` on.
fn cells(text: &str) -> Result<Vec<Cell>, String> {
    let mut lines = text.lines().map(fields);
    let header = lines.next().unwrap_or_default();
    let column = |name: &str| header.iter().position(|field| field == name);
    let mean = column("mean").filter(|mean| *mean >= 2).ok_or("a table's CSV file has no column `mean`")?;
    let cell = |fields: Vec<String>| {
        let mean_value = fields.get(mean)?.parse().ok()?;
        let panel = if mean > 2 { fields[..mean - 2].join(", ") } else { String::new() };
        Some(Cell { panel, row: fields[mean - 2].clone(), column: fields[mean - 1].clone(), mean: mean_value })
    };
    Ok(lines.filter_map(cell).collect())
}

/// The fields of a line of CSV. A quoted field holds no quotes here.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            character => fields.last_mut().expect("one at least").push(character),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_with_quoted_names_and_without_empty_values() {
        let text = "panel,\"delay, loss\",congestion,mean,runs\ncase relay,\"0ms, 3%\",cubic,0.95,1\ncase relay,\"0ms, 3%\",bbr,,0\n";
        let cell = Cell { panel: "case relay".into(), row: "0ms, 3%".into(), column: "cubic".into(), mean: 0.95 };
        assert_eq!(cells(text), Ok(vec![cell]));
        assert!(cells("a,b\n").is_err_and(|error| error.contains("mean")));
    }
}
