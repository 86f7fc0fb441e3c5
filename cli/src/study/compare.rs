//! `ropewalk compare`: compares pairs of stored studies, in the terminal and as a page.

use super::document::document;
use crate::{Failure, output};
use record::Run;
use report::Comparison;
use std::path::{Path, PathBuf};
use store::{Manifest, Results};
use units::Span;

/// The page's name in the first folder.
const PAGE_NAME: &str = "compare.html";

/// Two folders that are compared.
struct Pair {
    dirs: [PathBuf; 2],
    names: [String; 2],
    studies: [(Manifest, Vec<Run>); 2],
}

/// Writes the page to `out`; prints the tables and the path of the page, or the documents.
pub(crate) fn compare(dirs: &[PathBuf], out: Option<&Path>, json: bool) -> Result<(), Failure> {
    let pairs = pairs(dirs)?;
    let comparisons: Vec<Comparison<'_>> = pairs.iter().map(Pair::comparison).collect();
    if let Some(reason) = comparisons.iter().find_map(Comparison::unrelated) {
        let help = "compare folders of one scenario, or of scenarios with the same cells and names of flows";
        return Err(Failure::Environment(format!("{reason}\n{help}")));
    }
    let page = report::compare_html(&comparisons);
    let page = match out {
        None => Results::write_text(&dirs[0], PAGE_NAME, &page)?,
        Some(file) => {
            let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let folder_error = || Failure::Environment(format!("cannot write {}: it is a folder", file.display()));
            let name = file.file_name().filter(|_| !file.is_dir()).ok_or_else(folder_error)?;
            Results::write_text(dir, &name.to_string_lossy(), &page)?
        }
    };
    if json {
        let documents: Vec<String> = pairs.iter().map(Pair::document).collect();
        // A single pair is printed without a list around it.
        let text = documents.join(",\n");
        return output::print(&if documents.len() == 1 { text + "\n" } else { format!("[\n{text}\n]\n") });
    }
    let table = report::compare_terminal(&comparisons, output::width(), output::color());
    output::print(&format!("{table}\npage    {}\n", page.display()))
}

/// Prints where two captures begin to differ, flow by flow.
pub(crate) fn captures(files: &[PathBuf], within: Span) -> Result<(), Failure> {
    let [a, b] = files else {
        return Err(Failure::Usage(format!("--trace compares two captures, not {}", files.len())));
    };
    output::print(&trace::compare(&[a, b], within).map_err(Failure::Environment)?)
}

/// Pairs of folders: the first and the second, the third and the fourth, and so on.
fn pairs(dirs: &[PathBuf]) -> Result<Vec<Pair>, Failure> {
    let (pairs, remainder) = dirs.as_chunks();
    if let [unpaired] = remainder {
        let [count, unpaired] = [dirs.len().to_string(), unpaired.display().to_string()];
        let message =
            format!("folders are compared in pairs: of {count}, {unpaired} has no partner\n  help: A1 B1 A2 B2 ...");
        return Err(Failure::Usage(message));
    }
    pairs.iter().map(Pair::open).collect()
}

impl Pair {
    fn open(dirs: &[PathBuf; 2]) -> Result<Self, Failure> {
        let [first, second] = dirs;
        Ok(Self {
            dirs: dirs.clone(),
            names: names(first, second),
            studies: [Results::open(first)?, Results::open(second)?],
        })
    }

    fn comparison(&self) -> Comparison<'_> {
        let [first, second] = &self.studies;
        // A folder of an older version may have a layout that is no longer read; its runs are.
        let layout =
            [first, second].into_iter().find_map(|(manifest, _)| runner::layout(manifest).ok()).unwrap_or_default();
        let studies = [first, second].map(|(manifest, runs)| runner::to_report(manifest, layout.clone(), runs));
        // The baseline is the kernel's study if the other is simulated, otherwise the first one.
        let baseline = usize::from(runner::is_kernel(&second.0.driver) && !runner::is_kernel(&first.0.driver));
        let [first, second] = studies;
        Comparison::new([(&self.names[0], first), (&self.names[1], second)], baseline)
    }

    fn document(&self) -> String {
        let [first, second] = [0, 1].map(|index| {
            let (manifest, runs) = &self.studies[index];
            let claims = runner::with_study(&self.dirs[index], manifest, runs, report::claims_document);
            // A folder of an older version may have a layout that is no longer read.
            document(manifest, runs, &claims.unwrap_or_default())
        });
        format!("{{\n\"first\": {first},\n\"second\": {second}\n}}")
    }
}

/// Names of two folders: their last components, or their whole paths if those are equal.
fn names(first: &Path, second: &Path) -> [String; 2] {
    let last_component = |dir: &Path| {
        let path = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        path.file_name().map_or_else(|| dir.display().to_string(), |name| name.to_string_lossy().into_owned())
    };
    let names = [first, second].map(last_component);
    if names[0] == names[1] { [first, second].map(|dir| dir.display().to_string()) } else { names }
}
