//! The frame of a chart: caption, axes with titles and units, grid. Sizes are points, so that a chart of one column of a
//! paper (252 pt) has text of 8 pt.

use crate::svg::tick_text;
use strings::escape_html;

/// Width and height of a picture, points.
pub(crate) type Size = (f64, f64);

/// The size of a chart: one column of a two-column paper.
pub(crate) const PANEL: Size = (252.0, 156.0);
/// The height of a line of text.
const LINE: f64 = 10.0;
/// The approximate width of a character.
pub(crate) const CHARACTER: f64 = 4.2;

/// The width of a digit in the widest font of a page (DejaVu Sans).
const DIGIT: f64 = 5.1;

/// Titles of a chart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Titles<'t> {
    /// What the chart shows among others, such as the setting of a key; may be empty.
    pub(crate) caption: &'t str,
    pub(crate) x: &'t str,
    pub(crate) y: &'t str,
    /// What the chart shows, for screen readers.
    pub(crate) label: &'t str,
}

/// The area within the axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Area {
    /// The place of a share of the width.
    pub(crate) fn x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    /// The place of a share of the height, from below.
    pub(crate) fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }
}

/// A picture of the size of [`PANEL`]: its vertical axis has `ticks` with the shares of the height at which they stand.
pub(crate) fn picture(titles: &Titles<'_>, ticks: &[(f64, String)], draw: impl FnOnce(&Area) -> String) -> String {
    let (width, height) = PANEL;
    let caption = wrapped(titles.caption, ((width - 8.0) / CHARACTER) as usize);
    let widest = ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(1) as f64;
    let area = Area {
        left: 16.0 + widest * CHARACTER + 3.0,
        right: width - 8.0,
        top: 6.0 + caption.len() as f64 * LINE,
        bottom: height - 24.0,
    };
    let middle = f64::midpoint(area.left, area.right);
    let mut out = String::new();
    for (line, text) in caption.iter().enumerate() {
        let y = 8.0 + line as f64 * LINE;
        out += &format!("<text class=\"x h\" x=\"{middle:.1}\" y=\"{y:.1}\">{}</text>", escape_html(text));
    }
    for (share, text) in ticks {
        let (y, label) = (area.y(*share), area.left - 3.0);
        out += &format!(
            "<path d=\"M{:.1} {y:.1}H{:.1}\"/><text x=\"{label:.1}\" y=\"{:.1}\">{text}</text>",
            area.left,
            area.right,
            y + 2.8
        );
    }
    out += &draw(&area);
    out += &format!("<path class=\"a\" d=\"M{:.1} {:.1}V{:.1}H{:.1}\"/>", area.left, area.top, area.bottom, area.right);
    let turned = f64::midpoint(area.top, area.bottom);
    out += &format!(
        "<text class=\"x\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>\
         <text class=\"x\" transform=\"translate(9 {turned:.1}) rotate(-90)\">{}</text>",
        height - 4.0,
        escape_html(titles.x),
        escape_html(titles.y)
    );
    format!(
        "<svg class=\"p\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">{out}</svg>",
        escape_html(titles.label)
    )
}

/// A text below the horizontal axis.
pub(crate) fn x_tick(area: &Area, x: f64, text: &str) -> String {
    let (y, start, end) = (area.bottom + 9.5, area.bottom, area.bottom + 2.5);
    // The whole text lies within the picture.
    let middle = x.min(PANEL.0 - text.chars().count() as f64 * DIGIT / 2.0);
    format!(
        "<path class=\"a\" d=\"M{x:.1} {start:.1}V{end:.1}\"/><text class=\"x\" x=\"{middle:.1}\" y=\"{y:.1}\">{}</text>",
        escape_html(text)
    )
}

/// Ticks with their shares of the last one.
pub(crate) fn shares(ticks: &[f64]) -> Vec<(f64, String)> {
    let max = ticks.last().copied().unwrap_or(1.0);
    ticks.iter().map(|tick| (tick / max, tick_text(*tick))).collect()
}

/// `name, unit`.
pub(crate) fn with_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") }
}

/// Lines of at most `columns` characters where words allow it.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
