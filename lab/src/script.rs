//! The setup of a study's cells as a script, to be repeated by hand.

use std::collections::BTreeMap;
use std::fmt::Write;

/// All lines of all cells in order, each once; a line that not all cells have is preceded by the indices of its cells.
pub(crate) fn script(cells: &[Vec<String>]) -> String {
    let mut lines: Vec<&String> = Vec::new();
    let mut cells_by_line: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        for line in cell {
            let cells_of_line = cells_by_line.entry(line).or_default();
            if cells_of_line.is_empty() {
                lines.push(line);
            }
            if cells_of_line.last() != Some(&index) {
                cells_of_line.push(index);
            }
        }
    }
    let mut text = String::new();
    for line in lines {
        let indices = &cells_by_line[line];
        let label = if indices.len() == cells.len() { String::new() } else { format!("[{}] ", ranges(indices)) };
        let _ = writeln!(text, "{label}{line}");
    }
    text
}

/// `0-2,5` for 0, 1, 2, 5.
fn ranges(indices: &[usize]) -> String {
    let mut runs: Vec<[usize; 2]> = Vec::new();
    for &index in indices {
        match runs.last_mut() {
            Some([_, last]) if *last + 1 == index => *last = index,
            _ => runs.push([index, index]),
        }
    }
    let texts =
        runs.iter().map(|[first, last]| if first == last { first.to_string() } else { format!("{first}-{last}") });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_some_cells_has_their_numbers() {
        let cell = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let cells = [cell(&["a", "b"]), cell(&["a", "c"]), cell(&["a", "b"]), cell(&["a", "b"])];
        assert_eq!(script(&cells), "a\n[0,2-3] b\n[1] c\n");
    }
}
