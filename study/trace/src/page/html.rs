//! The page as HTML: what is readable without its script, and the columns.

use super::{Column, Counts, FlowColumns, Heading, Page, SCRIPTS, STYLE, Strand, micros, packed};
use report::colour;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::io::{self, Write};
use strings::escape_html;
use transport::path::Limit;

impl Page {
    /// Writes the page.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&mut self, file: &mut impl Write, heading: &Heading, digest: &str) -> io::Result<()> {
        if self.captured.is_some() {
            let packets = |flow: &FlowColumns| flow.strands.iter().map(|strand| strand.counts().sent).sum::<u64>();
            self.flows.sort_by_cached_key(|flow| Reverse(packets(flow))); // the page opens with the first
        }
        for flow in &mut self.flows {
            flow.strands.iter_mut().for_each(|strand| strand.mark_spurious(&flow.arrived));
        }
        let title = escape_html(&heading.title);
        let digest = ("Digest".to_owned(), digest.to_owned());
        let facts = heading.facts.iter().chain([&digest]).filter(|(_, value)| !value.is_empty());
        let facts = facts
            .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>", escape_html(name), escape_html(value)));
        let what = if self.captured.is_some() { "a capture" } else { "one run" };
        write!(
            file,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}: trace</title>\n\
             <style>{}\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}: trace of {what}</h1>\n<dl>{}</dl>\n</header>\n\
             {BODY}\n{}",
            report::style(),
            facts.collect::<String>(),
            self.counts()
        )?;
        let data = self.data()?.to_string().replace('<', "\\u003c"); // no name can contain `</script>` or `<!--`
        write!(
            file,
            "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>{}</script>\n</body>\n</html>\n",
            SCRIPTS.concat()
        )?;
        file.flush()
    }

    fn data(&self) -> io::Result<Value> {
        let flow = |flow: &FlowColumns| {
            let strand = |strand: &Strand| strand.packed(colour::of_path(strand.path.unwrap_or(self.links.len())));
            let strands = flow.strands.iter().map(strand).collect::<io::Result<Vec<_>>>()?;
            Ok(json!({
                "name": flow.name,
                "hasDataNumbers": flow.has_data_numbers,
                "hasDataAcks": flow.has_data_acks,
                "limits": flow.limits.packed()?,
                "choices": packed(&["t", "strand", "data", "count"], &flow.choices.each_ref())?,
                "strands": strands,
            }))
        };
        let queue = |((link, is_reverse), columns): (&(usize, bool), &[Column; 2])| {
            let table = packed(&["t", "packets"], &columns.each_ref())?;
            Ok(json!({ "link": link, "isReverse": is_reverse, "colour": colour::of_path(*link), "table": table }))
        };
        Ok(json!({
            "end": micros(self.end),
            "isCapture": self.captured.is_some(),
            "links": self.links,
            "limits": Limit::ALL.map(Limit::name),
            "flows": self.flows.iter().map(flow).collect::<io::Result<Vec<_>>>()?,
            "queues": self.queues.iter().map(queue).collect::<io::Result<Vec<_>>>()?,
        }))
    }

    /// The table of counts: a row for each strand.
    fn counts(&self) -> String {
        let strands = self.flows.iter().flat_map(|flow| flow.strands.iter().map(move |strand| (flow, strand)));
        let rows = strands.map(|(flow, strand)| {
            let (counts, [declared, timeouts]) = (strand.counts(), strand.declared());
            let Counts { sent, retransmitted, spurious, copies, lost } = counts;
            let cells = [sent, retransmitted, spurious, copies, lost, declared, timeouts];
            // A capture shows neither losses nor the sender's state.
            let is_known = |place: &usize| self.captured.is_none() || [0, 1, 3].contains(place);
            let cell = |(place, count): (usize, &u64)| if is_known(&place) { count.to_string() } else { String::new() };
            let cells: String = cells.iter().enumerate().map(|cell_of| format!("<td>{}</td>", cell(cell_of))).collect();
            let name = escape_html(&format!("{}, {}", flow.name, strand.name));
            format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>\n")
        });
        format!("{COUNTS_HEAD}{}</tbody></table></div>\n</section>\n", rows.collect::<String>())
    }
}

const BODY: &str = include_str!("../../assets/trace.html");

const COUNTS_HEAD: &str = "<section id=\"counts\">\n<h2>Packets with data</h2>\n<div class=\"scroll\"><table class=\"plain\">\n<thead><tr>\
<th class=\"corner\" scope=\"col\">flow, path</th><th scope=\"col\">sent</th><th scope=\"col\">retransmissions</th>\
<th scope=\"col\">spurious</th><th scope=\"col\">copies</th><th scope=\"col\">lost in the network</th>\
<th scope=\"col\">marked lost</th><th scope=\"col\">timeouts</th></tr></thead>\n<tbody>\n";
