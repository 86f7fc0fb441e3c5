//! A figure as it is drawn: its charts and its legend, which the page shows and a file holds.

use crate::axes::{CHARACTER, PANEL};
use crate::chart::Line;
use crate::colour;
use crate::marker::marker;
use crate::svg::stroke;
use serde_json::{Value, json};
use strings::escape_html;

/// A figure.
#[derive(Default)]
pub(crate) struct Drawing {
    /// The title with the unit.
    pub(crate) title: String,
    /// What a reader has to know of it.
    pub(crate) notes: Vec<String>,
    /// The name and the look of each series.
    pub(crate) legend: Vec<Line>,
    /// How the series look.
    pub(crate) look: Look,
    /// Each chart as `<svg class="p" ...>`, of the size of a panel.
    pub(crate) panels: Vec<String>,
}

/// How the series of a figure look, and their samples in its legend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Look {
    #[default]
    Lines,
    /// Lines with a marker at each value.
    MarkedLines,
    /// Bars, or areas.
    Bars,
    Markers,
}

/// Distance between charts of a file.
const GAP: f64 = 10.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 12.0;
/// Width of a legend entry's sample.
const SAMPLE: f64 = 20.0;
/// The beginning of a chart's markup.
const PANEL_START: &str = "<svg class=\"p\" ";

/// The style of a file, whose readers know neither the page's style sheet nor its custom properties.
pub(crate) const STYLE: &str = "text{font-family:'Liberation Sans',Arial,Helvetica,sans-serif;font-size:8px;fill:#222;text-anchor:end}\
     text.x{text-anchor:middle}text.s{text-anchor:start}path{fill:none;stroke:#ddd;stroke-width:.5}path.a{stroke:#222}\
     path.l{stroke-linejoin:round}path.d{stroke:#666}path.t{stroke:none}path.w{stroke:#222;stroke-width:.7}\
     path.b{stroke:#222;stroke-width:1;stroke-dasharray:4 2}path.hatch{stroke:#fff;stroke-width:1}\
     circle.run{fill:#222;fill-opacity:.5}circle.out{fill:#d55e00}circle.left{fill:none;stroke:#666;stroke-width:.5}";

/// The layout of a file.
struct Sheet {
    width: f64,
    height: f64,
    legend: String,
    places: Vec<(f64, f64)>,
}

impl Drawing {
    /// The file: a complete SVG without references, with the colours of a light page.
    pub(crate) fn file(&self) -> String {
        let Sheet { width, height, legend, places } = self.sheet();
        let panels = self.panels.iter().zip(places).map(|(panel, (x, y))| {
            let place = format!("<svg x=\"{x:.1}\" y=\"{y:.1}\" width=\"{}\" height=\"{}\" ", PANEL.0, PANEL.1);
            panel.replacen(PANEL_START, &place, 1)
        });
        let body = format!("{legend}{}", panels.collect::<String>());
        let body = colour::light()
            .iter()
            .enumerate()
            .fold(body, |body, (index, colour)| body.replace(&format!("var(--c{index})"), colour));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}pt\" height=\"{height:.0}pt\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\"><title>{}</title><desc>{}</desc><style>{STYLE}</style>\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>{body}</svg>\n",
            escape_html(&self.title),
            escape_html(&self.notes.join(" "))
        )
    }

    /// What the page's script needs to make the same file of the charts on the page.
    pub(crate) fn data(&self, name: &str, csv: Option<&str>) -> Value {
        let Sheet { width, height, legend, places } = self.sheet();
        json!({
            "name": name, "title": self.title, "note": self.notes.join(" "), "width": width, "height": height,
            "legend": legend, "places": places, "csv": csv,
        })
    }

    fn sheet(&self) -> Sheet {
        let columns = self.panels.len().clamp(1, 2);
        let width = columns as f64 * PANEL.0 + (columns as f64 - 1.0) * GAP;
        let (legend, top) = self.legend_markup(width);
        let place = |index: usize| {
            let (row, column) = (index / columns, index % columns);
            (column as f64 * (PANEL.0 + GAP), top + row as f64 * (PANEL.1 + GAP / 2.0))
        };
        let rows = self.panels.len().div_ceil(columns) as f64;
        let height = top + rows * PANEL.1 + (rows - 1.0) * GAP / 2.0;
        Sheet { width, height, legend, places: (0..self.panels.len()).map(place).collect() }
    }

    /// The legend above the charts, and its height; nothing for a single series.
    fn legend_markup(&self, width: f64) -> (String, f64) {
        let (mut out, mut x, mut y) = (String::new(), 20.0, 10.0);
        if self.legend.len() < 2 {
            return (out, 0.0);
        }
        for line in &self.legend {
            let sample_width = if self.look == Look::Bars { SAMPLE * 0.6 } else { SAMPLE };
            let length = sample_width + 4.0 + line.name.chars().count() as f64 * CHARACTER * 1.1 + 10.0;
            if x + length > width && x > 20.0 {
                (x, y) = (20.0, y + LEGEND_LINE);
            }
            let path = || format!("<path class=\"l\" {} d=\"M{x:.1} {:.1}h{SAMPLE}\"/>", stroke(line), y - 2.8);
            let mark = || marker(line, x + SAMPLE / 2.0, y - 2.8);
            let sample = match self.look {
                Look::Bars => bar(line, (x, y - 6.5, sample_width, 6.5), ""),
                Look::Lines => path(),
                Look::MarkedLines => path() + &mark(),
                Look::Markers => mark(),
            };
            let text = x + sample_width + 4.0;
            out +=
                &format!("{sample}<text class=\"s\" x=\"{text:.1}\" y=\"{y:.1}\">{}</text>", escape_html(&line.name));
            x += length;
        }
        (out, y + 4.0)
    }
}

/// A bar (left, top, width, height) with further `attributes`; bars of one colour differ in their hatching.
pub(crate) fn bar(line: &Line, (x, y, width, height): (f64, f64, f64, f64), attributes: &str) -> String {
    let colour = line.colour;
    let rect = format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" style=\"fill:var(--c{colour})\"{attributes}/>"
    );
    // The dashes of the first slots are their own numbers; of later ones the hatching tells the difference.
    let round = (line.dash + colour::COLOURS - colour) % colour::COLOURS;
    if round == 0 {
        return rect;
    }
    let step = 2.0 + 2.0 * f64::from(u8::try_from(round).unwrap_or(1));
    let stripes: String = (1..)
        .map(|index| f64::from(index) * step)
        .take_while(|stripe| *stripe < height)
        .map(|stripe| format!("M{x:.1} {:.1}h{width:.1}", y + stripe))
        .collect();
    format!("{rect}<path class=\"hatch\" d=\"{stripes}\"/>")
}

/// A file name's part: letters and digits of a title, joined by hyphens.
pub(crate) fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.take(6).map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}
