//! The folder of a fit: the document, the members as scenario files, and the page.

use crate::{Error, Fit, Links};
use std::path::{Path, PathBuf};

/// The document of a fit.
const DOCUMENT: &str = "fit.json";
/// The greatest length of a document, bytes.
const MAX_LEN: u64 = 64 << 20;

/// The traffic of a member's scenario: a connection over all of its paths.
const STREAM: &str = "[[flow]]\nname = \"stream\"\nkind = \"mptcp\"\nstart_within = \"300ms\"\n";

impl Fit {
    /// Writes the fit into a folder: `fit.json`, `member-1.toml` and so on, `naive.toml`, and `report.html`, whose path it
    /// returns. A folder that holds anything but a fit is refused.
    ///
    /// # Errors
    /// The folder holds something else, or cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, Error> {
        let failed = |path: &Path, error: &dyn std::fmt::Display| Error::Output(format!("{}: {error}", path.display()));
        let is_occupied = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if is_occupied && !folder.join(DOCUMENT).is_file() {
            return Err(failed(folder, &"the folder is not empty and holds no fit: name another one with --out"));
        }
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        let mut files = vec![(DOCUMENT.to_owned(), self.json()), ("report.html".to_owned(), self.page())];
        files.push(("naive.toml".to_owned(), scenario_text(&self.naive_links)?));
        for (index, member) in self.members.iter().enumerate() {
            files.push((format!("member-{}.toml", index + 1), scenario_text(&member.links)?));
        }
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| failed(&path, &error))?;
        }
        Ok(folder.join("report.html"))
    }

    /// The document as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads the fit in a folder that [`Fit::write`] has written.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(DOCUMENT);
        let text = filesystem::read_text_of_any(&path, MAX_LEN)
            .map_err(|error| Error::Input(format!("{}: {error}", path.display())))?;
        serde_json::from_str(&text).map_err(|error| Error::Input(format!("{}: {error}", path.display())))
    }
}

/// The links as an ordinary scenario, with a connection over all paths.
fn scenario_text(links: &Links) -> Result<String, Error> {
    let scenario = links.scenario(STREAM, &[])?;
    Ok(scenario.effective_text.unwrap_or(scenario.text))
}
