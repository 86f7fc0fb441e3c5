//! A text as a QR code for terminals: two modules per character, by half blocks.

use qrcode::{Color, EcLevel, QrCode};

/// Light modules around the code (ISO/IEC 18004 asks for four).
const MARGIN: isize = 4;

/// The lines of the code, dark on light whatever the terminal's colours are; `None` if the text is too long for a code of
/// `width` columns.
pub(super) fn lines(text: &str, width: usize) -> Option<Vec<String>> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let size = code.width() as isize;
    if (size + 2 * MARGIN) as usize > width {
        return None;
    }
    let is_dark = |x: isize, y: isize| {
        (0..size).contains(&x) && (0..size).contains(&y) && code[(x as usize, y as usize)] == Color::Dark
    };
    let line = |y: isize| {
        let characters = (-MARGIN..size + MARGIN).map(|x| match (is_dark(x, y), is_dark(x, y + 1)) {
            (false, false) => ' ',
            (true, false) => '▀',
            (false, true) => '▄',
            (true, true) => '█',
        });
        format!("\x1b[30;107m{}\x1b[0m", characters.collect::<String>())
    };
    Some((-MARGIN..size + MARGIN).step_by(2).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_the_modules_that_the_library_draws_and_fits_the_terminal() {
        let text = "rw1-abcdefghijklmnopqrstuvwxyz0123456789";
        let lines = lines(text, 80).unwrap();
        let code = QrCode::with_error_correction_level(text, EcLevel::L).unwrap();
        let plain = |line: &String| line.replace("\x1b[30;107m", "").replace("\x1b[0m", "");
        for y in 0..code.width() {
            let row: Vec<char> = plain(&lines[(y + MARGIN as usize) / 2]).chars().collect();
            for x in 0..code.width() {
                let half = if (y + MARGIN as usize).is_multiple_of(2) { "▀█" } else { "▄█" };
                assert_eq!(half.contains(row[x + MARGIN as usize]), code[(x, y)] == Color::Dark, "{x} {y}");
            }
        }
        assert_eq!(super::lines(text, 20), None);
        assert_eq!(super::lines(&"x".repeat(5000), 500), None);
    }
}
