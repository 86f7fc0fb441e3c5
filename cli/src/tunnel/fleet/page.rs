//! The table of hosts as a page of HTML, which needs no other file and no script.

use super::{HEADINGS, Row, columns, problems, sorted};
use crate::Failure;
use filesystem::Folder;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use strings::escape_html;

const STYLE: &str = "body{font:16px system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}\
    table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.4rem .6rem;border-bottom:1px solid #8888}\
    .scroll{overflow-x:auto}small{display:block}:root{color-scheme:light dark}";

/// Replaces the page. A browser loads it again after `every` seconds.
pub(super) fn write(file: &Path, rows: &[Row], every: Option<u32>) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let (folder, name) = Folder::of_file(file)?;
        let mut new_name = name.clone();
        new_name.push(".ropewalk-new");
        folder.remove(&new_name)?;
        let mut output = folder.create_new(&new_name, 0o644)?;
        output.write_all(text(rows, every).as_bytes())?;
        folder.rename(&new_name, &name)
    };
    write().map_err(|error| Failure::Environment(format!("{}: {error}", file.display())))
}

fn text(rows: &[Row], every: Option<u32>) -> String {
    let refresh =
        every.map_or_else(String::new, |seconds| format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">"));
    let silent = rows.iter().filter(|row| row.error.is_some()).count();
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">{refresh}\
         <title>{}Ropewalk: {} hosts</title><style>{STYLE}</style><h1>Tunnels of {} hosts</h1>\
         <p>{}, {silent} without an answer.</p><div class=\"scroll\" tabindex=\"0\"><table><thead><tr>",
        if silent > 0 { "(!) " } else { "" },
        rows.len(),
        rows.len(),
        crate::setup::date(daemon::config::unix_time()),
    );
    HEADINGS.iter().for_each(|heading| html += &format!("<th scope=\"col\">{heading}</th>"));
    html += "</tr></thead><tbody>";
    for row in sorted(rows) {
        html += "<tr>";
        let [name, rest @ ..] = columns(row);
        let notes: String = problems(row).iter().map(|line| format!("<small>{}</small>", escape_html(line))).collect();
        let _ = write!(
            html,
            "<th scope=\"row\"><a href=\"{}\">{}</a>{notes}</th>",
            escape_html(&row.url),
            escape_html(&name)
        );
        rest.iter().for_each(|cell| html += &format!("<td>{}</td>", escape_html(cell)));
        html += "</tr>";
    }
    html + "</tbody></table></div></html>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_errors_of_hosts_are_text_and_the_title_tells_trouble() {
        let error = Some("<b>no</b>".to_owned());
        let rows = [Row { name: "a<script>".into(), url: "http://a/\"x".into(), error, ..Row::default() }];
        let html = text(&rows, Some(30));
        assert!(html.contains("<title>(!) Ropewalk: 1 hosts</title>") && html.contains("content=\"30\""), "{html}");
        assert!(html.contains("a&lt;script&gt;") && html.contains("&lt;b&gt;no"), "{html}");
        assert!(!html.contains("<script>") && !html.contains("/\"x"), "{html}");
    }
}
