//! `ropewalk compare`: two stored studies side by side, in the terminal and as a page.

use crate::document::Document;
use crate::{Failure, driver, output, study};
use report::Comparison;
use std::path::Path;
use store::Results;

/// The page's name in the first folder.
const PAGE: &str = "compare.html";

/// Writes the page to `out`; prints the tables and where the page is, or the documents.
pub(crate) fn compare(first: &Path, second: &Path, out: Option<&Path>, json: bool) -> Result<(), Failure> {
    let [a, b] = [Results::open(first)?, Results::open(second)?];
    let names = names(first, second);
    // A folder of an older version may have a layout that is no longer read; its runs are.
    let layout = [&a, &b].into_iter().find_map(|(manifest, _)| study::layout(manifest).ok()).unwrap_or_default();
    let studies = [&a, &b].map(|(manifest, runs)| study::study(manifest, layout.clone(), runs));
    // A simulation is measured by a kernel; otherwise the second by the first.
    let yardstick = usize::from(driver::is_kernel(&b.0.driver) && !driver::is_kernel(&a.0.driver));
    let [one, other] = studies;
    let comparison = Comparison::new([(&names[0], one), (&names[1], other)], yardstick);
    let page = match out {
        None => Results::write_text(first, PAGE, &report::compare_html(&comparison))?,
        Some(file) => {
            let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let wrong = || Failure::Environment(format!("cannot write {}: it is a folder", file.display()));
            let name = file.file_name().filter(|_| !file.is_dir()).ok_or_else(wrong)?;
            Results::write_text(dir, &name.to_string_lossy(), &report::compare_html(&comparison))?
        }
    };
    if json {
        let [first, second] = [a, b].map(|(manifest, runs)| Document::new(&manifest, runs));
        return output::json(&serde_json::json!({ "first": first, "second": second }));
    }
    let table = report::compare_terminal(&comparison, output::width(), output::color());
    output::print(&format!("{table}\npage    {}\n", page.display()))
}

/// What the folders are called: by their last words, or by all where these are the same.
fn names(first: &Path, second: &Path) -> [String; 2] {
    let last = |dir: &Path| {
        let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        whole.file_name().map_or_else(|| dir.display().to_string(), |name| name.to_string_lossy().into_owned())
    };
    let names = [first, second].map(last);
    if names[0] == names[1] { [first, second].map(|dir| dir.display().to_string()) } else { names }
}
