//! The marked parts of a page: the text between `<!-- MARK -->` and `<!-- end -->` is written by a chore.

const END: &str = "<!-- end -->";

/// The page with other contents in a marked part.
///
/// # Errors
/// A mark is missing; the error names it.
pub(crate) fn replace(text: &str, mark: &str, contents: &str) -> Result<String, String> {
    let line = format!("<!-- {mark} -->\n");
    let (before, rest) = text.split_once(&line).ok_or(format!("the page has no line `{}`", line.trim_end()))?;
    let (_, after) = rest.split_once(END).ok_or(format!("no `{END}` follows `{mark}`"))?;
    Ok(format!("{before}{line}\n{}\n\n{END}{after}", contents.trim_end()))
}

/// The marks of a page that begin with `kind` and a colon, without these.
pub(crate) fn marks<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let name = |line: &'a str| {
        let mark = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        mark.strip_prefix(kind)?.strip_prefix(": ")
    };
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "a\n\n<!-- table: one -->\n\n| old |\n\n<!-- end -->\n\nb\n";

    #[test]
    fn a_part_is_replaced_between_its_marks_and_nothing_else_is() {
        let once = replace(PAGE, "table: one", "| new |\n").expect("it is marked");
        assert_eq!(once, PAGE.replace("old", "new"));
        assert_eq!(replace(&once, "table: one", "| new |"), Ok(once.clone()), "again changes nothing");
    }

    #[test]
    fn a_mark_that_is_missing_is_named() {
        assert!(replace(PAGE, "table: two", "").is_err_and(|error| error.contains("table: two")));
        assert!(replace("<!-- table: one -->\n| a |", "table: one", "").is_err_and(|error| error.contains("end")));
    }

    #[test]
    fn marks_of_one_kind_are_found() {
        assert_eq!(marks(PAGE, "table"), ["one"]);
        assert!(marks(PAGE, "generated").is_empty());
    }
}
