//! The report as one HTML page without other files or network access; without JavaScript only the interactive charts
//! are missing.

mod across;
mod bars;
mod claims;
mod compare;
mod distribution;
pub(crate) mod figures;
pub(crate) mod heat_map;
mod overview;
mod plots;
mod samples;
mod scatter;
mod shares;
pub(crate) mod still;
mod tables;

use crate::claim::evaluate_claims;
use crate::colour::DASHES;
use crate::grid::unique;
use crate::number::plural;
use crate::provenance::{Provenance, shell};
use crate::short::short_form;
use crate::study::Study;
use crate::{answer, colour, defaults, drawing, marks, number};
pub use overview::compare_html;
use serde_json::{Value, json};
use strings::escape_html;

pub(crate) const STYLE: &str = include_str!("../assets/report.css");
/// Common functions, the charts of figures, the charts over time of a cell, files of figures, wide tables, and sections.
const SCRIPTS: [&str; 6] = [
    include_str!("../assets/common.js"),
    include_str!("../assets/figures.js"),
    include_str!("../assets/report.js"),
    include_str!("../assets/files.js"),
    include_str!("../assets/scroll.js"),
    include_str!("../assets/pages.js"),
];
const UPLOT: &str = include_str!("../assets/vendor/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../assets/vendor/uPlot.min.css");

/// The style of all pages: the colours as custom properties `--c0` to `--c6`, text and tables, in light and dark.
#[must_use]
pub fn style() -> String {
    format!("{}\n{STYLE}", colour::css())
}

/// The page of a study.
#[must_use]
pub fn html(study: &Study<'_>) -> String {
    let short = short_form(study);
    let (study, note) = short.as_ref().map_or((study, ""), |(shown, note)| (shown, note.as_str()));
    let with_figures = defaults::with_figures(study);
    let study = with_figures.as_ref().unwrap_or(study);
    let percent = if study.layout.figures.is_empty() { 100 } else { 100 - plots::FIGURES_PERCENT };
    let part = PagePart { percent, ..PagePart::default() };
    let (plots, figures) = (plots::plots(study, &study.cells(), &part), figures::figures(study));
    let (summary_tables, shown) = (tables::summary_tables(study), plots.shown);
    let names = study.layout.sections();
    let tables_of = |section: &str| {
        let tables = study.layout.tables.iter().enumerate();
        tables.filter(|(_, table)| table.scope.section == section).map(|(index, _)| index).collect::<Vec<_>>()
    };
    let tables = |tables: &[usize]| tables::results(study, tables, shown);
    let loose = tables_of("");
    let (first, others) = loose.split_at(loose.len().min(1));
    let [first, others] = [("results", "Result", first), ("tables", "More tables", others)]
        .map(|(id, heading, indices)| section(id, heading, &tables(indices)));
    let [leading, closing] =
        if study.layout.tables.is_empty() { [summary_tables, String::new()] } else { [first, summary_tables] };
    let results = evaluate_claims(study);
    let claims = claims::claims(study, &results);
    let [verdicts, later] = if study.is_assessment() { [claims, String::new()] } else { [String::new(), claims] };
    let limits = section("limits", "What limits the results", &limits(study));
    let mut sections = vec![verdicts, leading, limits, figures.section(study, ""), later, others];
    sections.extend(names.iter().map(|name| {
        let parts = [claims::of_section(study, &results, name), tables(&tables_of(name)), figures.section(study, name)];
        section(&format!("section-{}", drawing::slug(name)), &escape_html(name), &parts.concat())
    }));
    sections.extend([plots.section, closing, parameters_and_scenario(study)]);
    page(
        study.title,
        &(header(study, note) + &tables::list(&study.layout, &names)),
        &sections,
        &PageData { over_time: plots.data.into_iter().collect(), figures: figures.data, files: figures.files },
        study,
    )
}

/// The part of the page that a study or comparison has: the whole page, or one part of several.
#[derive(Default)]
struct PagePart {
    /// The index of the part if there are several.
    index: Option<usize>,
    /// The number on the page of its first cell.
    first_cell: usize,
    /// The share of the page's budget of numbers for charts over time, percent.
    percent: usize,
}

impl PagePart {
    /// The index; 0 for the only part.
    fn number(&self) -> usize {
        self.index.unwrap_or(0)
    }

    /// The id of a section.
    fn id(&self, name: &str) -> String {
        self.index.map_or(name.to_owned(), |index| format!("{name}-{index}"))
    }

    /// The heading of a section.
    fn heading(&self, text: &str) -> String {
        let level = if self.index.is_some() { 3 } else { 2 };
        format!("<h{level}>{text}</h{level}>\n")
    }

    /// A heading within a section.
    fn subheading(&self, text: &str) -> String {
        let level = if self.index.is_some() { 4 } else { 3 };
        format!("<h{level}>{text}</h{level}>\n")
    }
}

/// A page of sections about a study, with the data of the charts over time and of the figures.
fn page(title: &str, header: &str, sections: &[String], data: &PageData, study: &Study<'_>) -> String {
    let head = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <style>{UPLOT_STYLE}\n{}</style>\n</head>\n",
        escape_html(title),
        style()
    );
    let scripts = scripts(data);
    let footer =
        format!("<footer>Made by Ropewalk {} {}.</footer>\n", escape_html(study.version), escape_html(study.commit));
    let (contents, sections) = (contents(sections), sections.concat());
    format!("{head}<body>\n{header}{contents}{sections}{footer}{scripts}</body>\n</html>\n")
}

/// What the page's scripts are given.
#[derive(Default)]
struct PageData {
    /// The charts over time.
    over_time: Vec<Value>,
    /// The interactive figures.
    figures: Vec<Value>,
    /// What makes a file of each figure.
    files: Vec<Value>,
}

fn scripts(PageData { over_time, figures, files }: &PageData) -> String {
    let data = json!({
        "dashes": DASHES, "light": colour::light(), "style": drawing::STYLE, "figures": figures, "time": over_time, "files": files,
    });
    let data = data.to_string().replace('<', "\\u003c"); // no name can contain `</script>` or `<!--`
    let library = match over_time.is_empty() && figures.is_empty() {
        true => String::new(),
        false => format!("<script>{UPLOT}</script>\n"),
    };
    format!(
        "<script type=\"application/json\" id=\"data\">{data}</script>\n{library}<script>{}</script>\n",
        SCRIPTS.concat()
    )
}

/// A section of the page; empty without content.
fn section(id: &str, heading: &str, content: &str) -> String {
    match content.is_empty() {
        true => String::new(),
        false => format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{content}</section>\n"),
    }
}

/// Links to the sections, by their ids and headings.
fn contents(sections: &[String]) -> String {
    let heading = |section: &String| {
        let (_, after_id) = section.split_once("id=\"")?;
        let (id, after_id) = after_id.split_once('"')?;
        let (title, _) = after_id.split_once("<h2>")?.1.split_once("</h2>")?;
        Some(format!("<a href=\"#{id}\">{title}</a>"))
    };
    format!("<nav>{}</nav>\n", sections.iter().filter_map(heading).collect::<Vec<_>>().join(" "))
}

/// The head of a page: a note on a short run, the answer, and what the study is.
fn header(study: &Study<'_>, note: &str) -> String {
    let strong = |text: &str| format!("<p><strong>{}</strong></p>\n", escape_html(text));
    let note = if note.is_empty() { String::new() } else { strong(note) };
    format!(
        "<header>\n<h1>{}</h1>\n{note}{}{}{}</header>\n",
        escape_html(study.title),
        answer(study),
        tables::disturbance_notes(study),
        paragraphs(study.about)
    )
}

/// The sentences that answer the study's question, and what their words mean.
fn answer(study: &Study<'_>) -> String {
    let sentences = answer::sentences(study);
    if sentences.is_empty() {
        return String::new();
    }
    let note = answer::note(&sentences).map(|note| format!("<p class=\"note\">{note}</p>\n"));
    format!("<p class=\"answer\">{}</p>\n{}", escape_html(&sentences.join(" ")), note.unwrap_or_default())
}

/// What limits the results, a sentence each; empty if nothing is known to.
fn limits(study: &Study<'_>) -> String {
    let sentences = marks::sentences(study).into_iter();
    let items: String = sentences.map(|sentence| format!("<li>{}</li>\n", escape_html(&sentence))).collect();
    match items.is_empty() {
        true => items,
        false => format!("<ul>\n{items}</ul>\n"),
    }
}

/// What repeats the study, in names and values.
fn facts(study: &Study<'_>) -> String {
    let cells = study.cells().len();
    definition_list(&[
        ("Source", study.source.to_owned()),
        ("Scenario", study.scenario.to_owned()),
        ("Driver", study.driver.to_owned()),
        ("Baseline", study.baseline.map_or(String::new(), |baseline| baseline.name.to_owned())),
        ("Runs", format!("{} ({}, {})", study.runs.len(), plural(cells, "cell"), seeds(study))),
        ("Digest", study.digest.to_owned()),
        ("Program", format!("ropewalk {} {}", study.version, study.commit)),
    ])
}

/// A list of names and values, without empty values.
fn definition_list(items: &[(&str, String)]) -> String {
    let items = items.iter().filter(|(_, value)| !value.trim().is_empty());
    let items: String =
        items.map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape_html(value))).collect();
    format!("<dl>{items}</dl>")
}

fn seeds(study: &Study<'_>) -> String {
    let seeds = study.seeds();
    format!("{} {seeds}", if seeds.contains(' ') { "seeds" } else { "seed" })
}

fn paragraphs(text: &str) -> String {
    let blocks = text.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    blocks.map(|block| format!("<p>{}</p>\n", with_code(block))).collect()
}

/// A text whose parts in backticks are code.
fn with_code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let is_code = |index: usize| index % 2 == 1 && index + 1 < parts.len();
    let part = |(index, part): (usize, &&str)| match (is_code(index), index % 2) {
        (true, _) => format!("<code>{}</code>", escape_html(part)),
        (false, 1) => format!("`{}", escape_html(part)),
        (false, _) => escape_html(part),
    };
    parts.iter().enumerate().map(part).collect()
}

fn parameters_and_scenario(study: &Study<'_>) -> String {
    let varying_keys = study.varying_keys();
    let fixed = study.runs.first().map_or(Vec::new(), |run| {
        run.parameters.iter().filter(|(key, _)| !varying_keys.contains(&key.as_str())).collect()
    });
    let swept = varying_keys.iter().map(|key| {
        let values = unique(study.cells().iter().map(|cell| cell.parameter(key).to_owned()));
        format!(
            "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td></tr>",
            escape_html(key),
            escape_html(&values.join(", "))
        )
    });
    let fixed = fixed.into_iter().map(|(key, value)| {
        format!("<tr><th scope=\"row\"><code>{}</code></th><td>{}</td></tr>", escape_html(key), escape_html(value))
    });
    let parameters: String = swept.chain(fixed).collect();
    let parameters = match parameters.is_empty() {
        true => String::new(),
        false => format!(
            "<div class=\"scroll\"><table class=\"plain text\"><caption>Parameters</caption>{parameters}</table></div>\n"
        ),
    };
    let duration = number::format_number(study.runs.first().map_or(0.0, |run| run.duration_s));
    format!(
        "<section id=\"run\">\n<h2>What was run</h2>\n{}\n<p>Each run lasted {duration} s. All records are in the Parquet files \
         next to this page.</p>\n{parameters}{}</section>\n",
        facts(study),
        provenance(&study.provenance, study.is_simulated())
    )
}

/// The command, the scenario as it was run, and what the options of the command changed in the file.
fn provenance(provenance: &Provenance<'_>, is_simulated: bool) -> String {
    let again = match is_simulated {
        true => "with the program named above, gives these numbers again to the last digit; the digest proves it",
        false => "with the program and the kernel named above, repeats the experiment",
    };
    let files = "Files that it names are looked for in its folder.";
    let command = match provenance.command {
        [] => String::new(),
        _ => format!("<h3>Command</h3>\n<pre><code>{}</code></pre>\n", escape_html(&shell(provenance.command))),
    };
    let about = match provenance.needs_options() {
        true => format!("This is the file. The command above changes it; the command, {again}. {files}"),
        false => format!("This text, without any option, {again}. {files}"),
    };
    let changes = provenance.changes();
    let changes = match changes.is_empty() {
        true => String::new(),
        false => format!(
            "<h3>What the options changed in the file</h3>\n<pre class=\"diff\"><code>{}</code></pre>\n",
            changes.lines().map(changed_line).collect::<String>()
        ),
    };
    format!(
        "{command}<h3>Scenario as it was run</h3>\n<p>{about}</p>\n<pre><code>{}</code></pre>\n{changes}",
        escape_html(provenance.text())
    )
}

/// A line of a unified diff.
fn changed_line(line: &str) -> String {
    let line_text = escape_html(line);
    match line.chars().next() {
        Some('+') => format!("<ins>{line_text}</ins>\n"),
        Some('-') => format!("<del>{line_text}</del>\n"),
        _ => format!("{line_text}\n"),
    }
}
