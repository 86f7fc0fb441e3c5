//! The report page of a test: one self-contained HTML file.

use super::result::{End, Measurement, TestResult, mbit};
use std::fmt::Write as _;
use strings::escape_html;

/// The colours of states and lines are those of reports, on white and on black.
const STYLE: &str = ":root{color-scheme:light dark;--ink:#1b1e24;--faint:#5c6370;--a:#0072b2;--b:#d55e00;--page:#fff}\
@media (prefers-color-scheme:dark){:root{--ink:#e8eaee;--faint:#a3abb8;--a:#4ba3db;--b:#f0803c;--page:#14161a}}\
body{font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color:var(--ink);background:var(--page)}\
table{border-collapse:collapse;width:100%}th,td{text-align:right;padding:.3em .5em;border-bottom:1px solid #8886}\
th:first-child,td:first-child{text-align:left}.verdict{font-size:1.25em}small,th{color:var(--faint);font-weight:normal}\
svg{width:100%;height:.8em;display:block}.down{fill:var(--a)}.up{fill:var(--b)}td.bar{width:35%}\
@media(max-width:30em){body{margin:1em auto;padding:0 .7em}h1{font-size:1.5em}th,td{padding:.3em .25em;font-size:.875em}\
td.bar{width:18%}}";

/// The page.
pub(super) fn page(result: &TestResult) -> String {
    let name = escape_html(&result.interface);
    let greatest = result.measurements.iter().map(|found| found.rate_bps).fold(1.0, f64::max);
    let greatest_mbit = mbit(greatest);
    let mut rows = String::new();
    for found in &result.measurements {
        row(&mut rows, found, greatest);
    }
    for direction in ["down", "up"] {
        if let Some(sum) = TestResult::sum_bps(&result.measurements, direction) {
            // Writing to a string does not fail.
            let _ = writeln!(rows, "<tr><td><i>sum of the paths</i><td>{direction}<td>{}<td><td><td>", mbit(sum));
        }
    }
    let [own, other] = &result.ends;
    let date = utc(result.unix_ms / 1000);
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>{name}: speed test</title><style>{STYLE}</style>\n\
         <h1>{name}: speed test</h1><p>{date}</p><p class=\"verdict\">{}</p>\n<table><thead><tr><th>end<th>host\
         <th>version<th>inner address</thead>{}{}</table>\n<table><thead><tr><th>path<th>direction<th>Mbit/s\
         <th>RTT, ms<th>RTT, 95&nbsp;%, ms<th>0 to {greatest_mbit} Mbit/s</thead>\n<tr><td>idle<td><td><td>{}<td>{}<td>\n{rows}</table>\n\
         <p><small>With {}, {} s per measurement, of which the first 30 % are not counted, in random \
         order. Rates are of TCP's payload; \
         RTT is the median and the 95th percentile of small datagrams sent at the same time. Other traffic in the tunnel: \
         {} Mbit/s down, {} Mbit/s up. A sum that is not reached is lost to an uneven delay, to a slow host, or to a router \
         on which the paths meet.</small></html>\n",
        escape_html(&result.verdict),
        end_row("this", own),
        end_row("other", other),
        ms(result.idle_rtt.median_ms),
        ms(result.idle_rtt.p95_ms),
        result.address,
        result.seconds,
        mbit(result.other_traffic.down_bps),
        mbit(result.other_traffic.up_bps),
    )
}

/// Milliseconds, or a dash.
fn ms(ms: Option<f64>) -> String {
    ms.map_or_else(|| "–".into(), |ms| format!("{ms:.1}"))
}

fn end_row(which: &str, end: &End) -> String {
    let known = |text: &Option<String>| text.as_deref().map_or_else(|| "–".into(), escape_html);
    format!("<tr><td>{which}<td>{}<td>{}<td>{}", known(&end.host), known(&end.version), escape_html(&end.address))
}

/// A time, seconds since 1970, as `2026-11-29 10:30 UTC`.
fn utc(seconds: u64) -> String {
    let time = time::OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap_or(0))
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    format!("{} {:02}:{:02} UTC", time.date(), time.hour(), time.minute())
}

fn row(rows: &mut String, found: &Measurement, greatest: f64) {
    let name = found.path.as_deref().map_or_else(|| "<b>all together</b>".into(), escape_html);
    let width = found.rate_bps / greatest * 100.0;
    let (rate, rtt, direction) = (mbit(found.rate_bps), &found.rtt, found.direction);
    // Writing to a string does not fail.
    let _ = writeln!(
        rows,
        "<tr><td>{name}<td>{direction}<td>{rate}<td>{}<td>{}<td class=\"bar\"><svg viewBox=\"0 0 100 4\" \
         preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{rate} Mbit/s\"><rect class=\"{direction}\" \
         width=\"{width:.1}\" height=\"4\"/></svg>",
        ms(rtt.median_ms),
        ms(rtt.p95_ms),
    );
}
