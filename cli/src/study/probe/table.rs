//! The table of a measurement: a row per path and direction, with the columns for which the terminal has room.

use ::probe::median;
use measured::{Direction, Measured, MeasuredPath, Summary, TcpFlow, UdpStream};

/// A column with its cells; those of a lower rank stay longer in a narrow terminal.
struct Column {
    heading: String,
    rank: u8,
    cells: Vec<String>,
}

/// The table, with what was not measured below.
pub(super) fn table(measured: &Measured, width: usize) -> String {
    let rows: Vec<(&MeasuredPath, Direction)> = measured
        .paths
        .iter()
        .flat_map(|path| Direction::ALL.map(|direction| (path, direction)))
        .filter(|(path, direction)| has_data(path, *direction))
        .collect();
    let mut text = fitted(columns(measured, &rows), width);
    for line in policers(measured).into_iter().chain(together(measured)).chain(measured.not_measured.clone()) {
        text += &format!("{}\n", crate::output::wrapped(&line, width).join("\n"));
    }
    text
}

fn has_data(path: &MeasuredPath, direction: Direction) -> bool {
    let has_direction = path.udp.iter().any(|udp| udp.direction == direction)
        || path.tcp.iter().any(|tcp| tcp.direction == direction)
        || path.parallel.iter().any(|parallel| parallel.flow.direction == direction)
        || path.calls.iter().any(|call| call.direction == direction);
    has_direction || direction == Direction::Up && !path.idle_rtt.is_empty()
}

fn columns(measured: &Measured, rows: &[(&MeasuredPath, Direction)]) -> Vec<Column> {
    let column = |heading: &str, rank, cell: &dyn Fn(&MeasuredPath, Direction) -> String| Column {
        heading: heading.to_owned(),
        rank,
        cells: rows.iter().map(|(path, direction)| cell(path, *direction)).collect(),
    };
    let mut columns = vec![
        column("path", 0, &|path, _| path.name.clone()),
        column("direction", 0, &|_, direction| direction.name().to_owned()),
        column("idle RTT ms", 1, &|path, _| {
            number(median(path.idle_rtt.iter().filter_map(|idle| typical(idle.rtt_ms))), 1)
        }),
        column("jitter ms", 4, &|path, direction| {
            let streams = streams(path, direction);
            number(median(streams.filter_map(|udp| udp.delay_variation_ms?.p95.or(udp.jitter_rfc3550_ms))), 1)
        }),
        column("loss %", 2, &|path, direction| share(streams(path, direction).map(|udp| (udp.lost, udp.sent)))),
        column("reordered %", 5, &|path, direction| {
            share(streams(path, direction).map(|udp| (udp.reordered, udp.received)))
        }),
    ];
    for congestion in congestions(measured) {
        let name = if congestion.is_empty() { "TCP" } else { congestion.as_str() };
        columns.push(column(&format!("{name} Mbit/s"), 1, &|path, direction| {
            number(median(flows(path, direction, &congestion).filter_map(|tcp| tcp.goodput_mbps)), 1)
        }));
        columns.push(column(&format!("{name} RTT ms"), 4, &|path, direction| {
            number(median(flows(path, direction, &congestion).filter_map(|tcp| typical(tcp.rtt_ms))), 0)
        }));
        columns.push(column(&format!("{name} resent %"), 3, &|path, direction| {
            share(flows(path, direction, &congestion).map(|tcp| (tcp.retransmitted_segments, tcp.sent_segments)))
        }));
    }
    let parallel = |path: &MeasuredPath, direction| -> Vec<TcpFlow> {
        let flows = path.parallel.iter().map(|parallel| &parallel.flow);
        flows.filter(|flow| flow.direction == direction).cloned().collect()
    };
    columns.push(column("parallel Mbit/s", 3, &|path, direction| {
        number(median(parallel(path, direction).iter().filter_map(|flow| flow.goodput_mbps)), 1)
    }));
    columns.push(column("parallel RTT ms", 3, &|path, direction| {
        number(median(parallel(path, direction).iter().filter_map(|flow| typical(flow.rtt_ms))), 0)
    }));
    columns.push(column("call RTT ms", 2, &|path, direction| {
        let calls = path.calls.iter().filter(|call| call.direction == direction);
        number(median(calls.filter_map(|call| typical(call.rtt_ms))), 0)
    }));
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    columns
}

/// The lines of the table, without as many columns as the width needs.
fn fitted(mut columns: Vec<Column>, width: usize) -> String {
    let widths = |columns: &[Column]| -> Vec<usize> {
        let length = |text: &String| text.chars().count();
        let widest = |column: &Column| column.cells.iter().map(length).max().unwrap_or(0).max(length(&column.heading));
        columns.iter().map(widest).collect()
    };
    while widths(&columns).iter().map(|width| width + 2).sum::<usize>() > width + 2 {
        let Some(rank) = columns.iter().map(|column| column.rank).max().filter(|rank| *rank > 0) else { break };
        columns.retain(|column| column.rank < rank);
    }
    let widths = widths(&columns);
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let line = |cell: &dyn Fn(&Column) -> String| {
        let cells = columns.iter().zip(&widths).map(|(column, width)| match column.rank {
            0 => format!("{:<width$}", cell(column)),
            _ => format!("{:>width$}", cell(column)),
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let heading = line(&|column| column.heading.clone());
    (0..rows).map(|row| line(&|column| column.cells[row].clone())).fold(heading, |text, line| text + &line)
}

/// A line per policer that was found.
fn policers(measured: &Measured) -> Vec<String> {
    let all = measured.paths.iter().flat_map(|path| path.policers.iter().map(move |policer| (path, policer)));
    let found = all.filter(|(_, policer)| policer.found == Some(true));
    let describe = |(path, policer): (&MeasuredPath, &measured::Policer)| {
        let burst = policer.burst_bytes.map(|bytes| bytes as f64 / 1e3);
        let (name, direction, rate) = (&path.name, policer.direction.name(), number(policer.rate_mbps, 1));
        format!("{name}, {direction}: a policer of {rate} Mbit/s with a burst of {} kB", number(burst, 0))
    };
    found.map(describe).collect()
}

/// A line per group of paths and direction that was measured together.
fn together(measured: &Measured) -> Vec<String> {
    let mut groups: Vec<(Vec<&str>, Direction)> = Vec::new();
    let key = |together: &measured::Together| -> (Vec<String>, Direction) {
        (together.flows.iter().map(|flow| flow.path.clone()).collect(), together.direction)
    };
    for together in &measured.together {
        let names: Vec<&str> = together.flows.iter().map(|flow| flow.path.as_str()).collect();
        if !groups.contains(&(names.clone(), together.direction)) {
            groups.push((names, together.direction));
        }
    }
    let describe = |(names, direction): (Vec<&str>, Direction)| {
        let of_group = || {
            measured
                .together
                .iter()
                .filter(|together| key(together) == (names.iter().map(|name| (*name).to_owned()).collect(), direction))
        };
        let sum = |value: fn(&measured::SharedFlow) -> Option<f64>| {
            median(of_group().filter_map(|together| together.flows.iter().map(value).sum::<Option<f64>>()))
        };
        let shares = of_group().filter(|together| together.shared_bottleneck == Some(true)).count();
        let own = of_group().filter(|together| together.shared_bottleneck == Some(false)).count();
        let verdict = match shares.cmp(&own) {
            std::cmp::Ordering::Greater => "they share a bottleneck",
            std::cmp::Ordering::Less => "no shared bottleneck",
            std::cmp::Ordering::Equal => "a shared bottleneck can neither be told nor excluded",
        };
        format!(
            "{} together, {}: {} of {} Mbit/s: {verdict}",
            names.join(" and "),
            direction.name(),
            number(sum(|flow| flow.goodput_mbps), 1),
            number(sum(|flow| flow.alone_mbps), 1)
        )
    };
    groups.into_iter().map(describe).collect()
}

/// The algorithms of all TCP flows, in alphabetical order; empty for one that is not known.
fn congestions(measured: &Measured) -> Vec<String> {
    let flows = measured.paths.iter().flat_map(|path| &path.tcp);
    let mut names: Vec<String> = flows.map(|tcp| tcp.congestion.clone().unwrap_or_default()).collect();
    names.sort();
    names.dedup();
    names
}

fn flows<'a>(path: &'a MeasuredPath, direction: Direction, congestion: &'a str) -> impl Iterator<Item = &'a TcpFlow> {
    let is_asked =
        move |tcp: &&TcpFlow| tcp.direction == direction && tcp.congestion.as_deref().unwrap_or_default() == congestion;
    path.tcp.iter().filter(is_asked)
}

fn streams(path: &MeasuredPath, direction: Direction) -> impl Iterator<Item = &UdpStream> {
    path.udp.iter().filter(move |udp| udp.direction == direction)
}

/// The median, or else the mean.
fn typical(summary: Option<Summary>) -> Option<f64> {
    summary.and_then(|summary| summary.p50.or(summary.mean))
}

/// A number, or nothing.
fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.decimals$}"))
}

/// The share of parts in wholes, percent, of those that have both.
fn share(pairs: impl Iterator<Item = (Option<u64>, Option<u64>)>) -> String {
    let both = pairs.filter_map(|(part, whole)| part.zip(whole));
    let (part, whole) = both.fold((0, 0), |(part, whole), pair| (part + pair.0, whole + pair.1));
    if whole == 0 { String::new() } else { format!("{:.2}", 100.0 * part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Measured {
        let mut measured = Measured { not_measured: vec!["lte: the kernel has no bbr".into()], ..Measured::default() };
        for (name, goodput) in [("lte", 20.04), ("fibre", 91.0)] {
            let path = measured.path_mut(name);
            let summary = Summary::of([30.0]);
            path.idle_rtt.push(measured::IdleRtt { rtt_ms: summary, ..measured::IdleRtt::default() });
            path.udp.push(UdpStream { sent: Some(200), lost: Some(3), ..UdpStream::new(Direction::Down) });
            path.tcp.push(TcpFlow {
                congestion: Some("cubic".into()),
                goodput_mbps: Some(goodput),
                rtt_ms: summary,
                sent_segments: Some(1000),
                retransmitted_segments: Some(5),
                ..TcpFlow::new(Direction::Down)
            });
        }
        measured
    }

    #[test]
    fn a_wide_terminal_has_all_columns_that_were_measured() {
        let text = table(&measured(), 120);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0].join(" "), "path direction idle RTT ms loss % cubic Mbit/s cubic RTT ms cubic resent %");
        assert_eq!(lines[1], ["lte", "up", "30.0"]);
        assert_eq!(lines[2], ["lte", "down", "30.0", "1.50", "20.0", "30", "0.50"]);
        assert_eq!(text.lines().last(), Some("lte: the kernel has no bbr"));
    }

    #[test]
    fn a_policer_is_told_below_the_table_whatever_the_width() {
        let mut measured = measured();
        measured.paths[0].policers.push(measured::Policer {
            direction: Direction::Down,
            found: Some(true),
            rate_mbps: Some(9.56),
            burst_bytes: Some(400_000),
        });
        assert!(table(&measured, 80).contains("lte, down: a policer of 9.6 Mbit/s with a burst of 400 kB\n"));
    }

    #[test]
    fn a_narrow_terminal_keeps_rates_and_idle_times() {
        let text = table(&measured(), 44);
        assert!(text.lines().all(|line| line.chars().count() <= 44), "{text}");
        assert_eq!(
            text.lines().next().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")),
            Some("path direction idle RTT ms cubic Mbit/s".into())
        );
    }
}
