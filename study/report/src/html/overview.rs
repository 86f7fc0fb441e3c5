//! The page of one comparison, or of several: then a table of all errors comes first.

use super::compare::{ComparisonSections, about, cells, error_curve, sections};
use super::{PageData, PagePart, plots};
use crate::compare::Comparison;
use crate::number::plural;
use crate::overview::{HEADINGS, Row, rows, total};
use strings::escape_html;

/// The page of one comparison, or of several.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn compare_html(comparisons: &[Comparison<'_>]) -> String {
    match comparisons {
        [] => panic!("nothing is compared"),
        [comparison] => single_page(comparison),
        _ => combined_page(comparisons),
    }
}

fn single_page(comparison: &Comparison<'_>) -> String {
    let ComparisonSections { sections, data, .. } =
        sections(comparison, &PagePart { percent: 100, ..PagePart::default() });
    let header = format!("<header>\n<h1>{}</h1>\n{}</header>\n", escape_html(&comparison.name()), about(comparison));
    super::page(
        &comparison.name(),
        &header,
        &sections,
        &PageData { over_time: data.into_iter().collect(), ..PageData::default() },
        comparison.measured(),
    )
}

fn combined_page(comparisons: &[Comparison<'_>]) -> String {
    let title = format!("{} side by side", plural(comparisons.len(), "comparison"));
    let header = format!("<header>\n<h1>{title}</h1>\n</header>\n");
    let rows = rows(comparisons);
    let (mut sections, mut data) = (vec![overview(comparisons, &rows)], Vec::new());
    let mut first_cell = 0;
    for (index, (comparison, percent)) in comparisons.iter().zip(budget_percents(comparisons)).enumerate() {
        let part = PagePart { index: Some(index), first_cell, percent };
        let content = self::sections(comparison, &part);
        first_cell += content.plotted_cells;
        data.extend(content.data);
        sections.push(section(comparison, &rows[index].label, index, &content.sections.concat()));
    }
    super::page(
        &title,
        &header,
        &sections,
        &PageData { over_time: data, ..PageData::default() },
        comparisons[0].measured(),
    )
}

/// Each comparison's share of the budget for charts over time, percent: its share of all lines.
fn budget_percents(comparisons: &[Comparison<'_>]) -> Vec<usize> {
    let lines =
        |comparison: &Comparison<'_>| cells(&comparison.worst_first()).iter().map(plots::max_lines).sum::<usize>();
    let lines: Vec<usize> = comparisons.iter().map(lines).collect();
    let total = lines.iter().sum::<usize>().max(1);
    lines.into_iter().map(|lines| (100 * lines).div_ceil(total)).collect()
}

/// One comparison of several, below its own heading.
fn section(comparison: &Comparison<'_>, label: &str, index: usize, sections: &str) -> String {
    let (label, about) = (escape_html(label), about(comparison));
    format!("<section class=\"pair\" id=\"pair-{index}\">\n<h2>{label}</h2>\n{about}\n{sections}</section>\n")
}

/// All errors of the goodput: in numbers, for each comparison, and as a curve.
fn overview(comparisons: &[Comparison<'_>], rows: &[Row]) -> String {
    let total = total(rows);
    let numbers = |row: &Row| row.numbers().map(|number| format!("<td>{number}</td>")).concat();
    let row = |(index, (row, comparison)): (usize, (&Row, &Comparison<'_>))| {
        let (label, sides, numbers) = (escape_html(&row.label), escape_html(&comparison.name()), numbers(row));
        format!(
            "<tr><th scope=\"row\"><a href=\"#pair-{index}\">{label}</a></th>{numbers}<td class=\"name\">{sides}</td></tr>\n"
        )
    };
    let body: String = rows.iter().zip(comparisons).enumerate().map(row).collect();
    let heads = HEADINGS.map(|head| format!("<th scope=\"col\">{}</th>", nonbreaking(head))).concat();
    let curve = total.errors.as_ref().filter(|errors| errors.0.len() > 1).map_or(String::new(), |errors| {
        format!(
            "<h3>How many values are within which error</h3>\n<p>Dashed: the median and the 95th percentile.</p>\n\
             <div class=\"charts curves\">\n{}</div>\n",
            error_curve(errors, "goodput, all comparisons", "goodput of all")
        )
    });
    format!(
        "<section id=\"agreement\">\n<h2>All together</h2>\n<p><b>{}</b></p>\n<div class=\"scroll\"><table class=\"plain\">\
         <caption>|error| of the goodput, percent of the baseline's, and how many values are within 5, 10 and 20 %. Percentiles \
         are interpolated linearly between order statistics</caption><thead><tr><th scope=\"col\" class=\"corner\">scenario</th>\
         {heads}<th scope=\"col\" class=\"corner\">compared</th></tr></thead>\n<tbody>\n{body}</tbody><tfoot><tr><th scope=\"row\">{}</th>{}<td></td></tr></tfoot></table>\
         </div>\n{curve}</section>\n",
        nonbreaking(&escape_html(&total.sentence(comparisons.len()))),
        total.label,
        numbers(&total)
    )
}

fn nonbreaking(text: &str) -> String {
    text.replace(" %", "&nbsp;%")
}
