//! The marked tables of a page.

const END: &str = "<!-- end -->";

/// The page with other contents in a marked table.
///
/// # Errors
/// Says which mark is missing.
pub(super) fn replace(text: &str, table: &str, contents: &str) -> Result<String, String> {
    let mark = format!("<!-- table: {table} -->\n");
    let (before, rest) = text.split_once(&mark).ok_or(format!("the page has no line `{}`", mark.trim_end()))?;
    let (_, after) = rest.split_once(END).ok_or(format!("no `{END}` follows table `{table}`"))?;
    Ok(format!("{before}{mark}\n{}\n\n{END}{after}", contents.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "a\n\n<!-- table: one -->\n\n| old |\n\n<!-- end -->\n\nb\n";

    #[test]
    fn a_table_is_replaced_between_its_marks_and_nothing_else_is() {
        let once = replace(PAGE, "one", "| new |\n").expect("it is marked");
        assert_eq!(once, PAGE.replace("old", "new"));
        assert_eq!(replace(&once, "one", "| new |"), Ok(once.clone()), "again changes nothing");
    }

    #[test]
    fn a_mark_that_is_missing_is_named() {
        assert!(replace(PAGE, "two", "").is_err_and(|error| error.contains("table: two")));
        assert!(replace("<!-- table: one -->\n| a |", "one", "").is_err_and(|error| error.contains("end")));
    }
}
