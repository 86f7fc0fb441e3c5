//! `report --figures`: each figure as SVG, PDF and CSV.

use crate::Failure;
use report::FigureFile;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use svg2pdf::usvg::{Options, Tree};
use svg2pdf::{ConversionOptions, PageOptions};

/// Liberation Sans, which has the widths of Helvetica and Arial.
const FONT: &[u8] = include_bytes!("../../assets/LiberationSans-Regular.ttf");

/// The pixels of an inch in CSS, in which the size of a drawing is counted.
const CSS_DPI: f32 = 96.0;

/// Writes the figures into the folder `out`, and returns their number.
pub(crate) fn write(out: &Path, figures: &[FigureFile]) -> Result<usize, Failure> {
    let options = options();
    for figure in figures {
        let path = |ending: &str| out.join(format!("{}.{ending}", figure.name));
        if let Some(folder) = path("csv").parent() {
            fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))?;
        }
        save(&path("csv"), figure.csv.as_bytes())?;
        if let Some(svg) = &figure.svg {
            save(&path("svg"), svg.as_bytes())?;
            let pdf = pdf(svg, &options).map_err(|error| cannot("make", &path("pdf"), &error))?;
            save(&path("pdf"), &pdf)?;
        }
    }
    Ok(figures.len())
}

fn options() -> Options<'static> {
    let mut options = Options { font_family: "Liberation Sans".to_owned(), ..Options::default() };
    Arc::make_mut(&mut options.fontdb).load_font_data(FONT.to_vec());
    options
}

/// The drawing as a PDF of one page of its size, text as text in an embedded font.
fn pdf(svg: &str, options: &Options<'_>) -> Result<Vec<u8>, String> {
    let tree = Tree::from_str(svg, options).map_err(|error| error.to_string())?;
    let page = PageOptions { dpi: CSS_DPI };
    svg2pdf::to_pdf(&tree, ConversionOptions::default(), page).map_err(|error| error.to_string())
}

/// Writes a file under a hidden name and renames it.
fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let saved = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    saved.map_err(|error| {
        let _ = fs::remove_file(&temporary); // the first error is the one to report
        cannot("write", path, &error)
    })
}

fn cannot(doing: &str, path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Environment(format!("cannot {doing} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_becomes_a_page_of_its_size_with_an_embedded_font() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"252pt\" height=\"156pt\" viewBox=\"0 0 252 156\">\
                   <style>text{font-family:'Liberation Sans';font-size:8px}</style><text x=\"9\" y=\"9\">time, s</text></svg>";
        let pdf = String::from_utf8_lossy(&pdf(svg, &options()).unwrap()).into_owned();
        assert!(pdf.starts_with("%PDF-") && pdf.contains("/MediaBox [0 0 252 156]"), "{pdf}");
        assert!(pdf.contains("LiberationSans") && pdf.contains("/FontFile"), "the text has its font");
        assert!(super::pdf("<svg", &options()).is_err());
    }
}
