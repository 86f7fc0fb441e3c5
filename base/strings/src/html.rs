//! Text in HTML and SVG.

/// Escapes text for HTML, as content or in a quoted attribute.
#[must_use]
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_element_or_attribute() {
        assert_eq!(escape_html("<b a=\"1\" c='2'>&amp; é"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp; é");
    }
}
