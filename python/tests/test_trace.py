"""Traces and the explorer: what the program writes and shows, from Python."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import ropewalk
from ropewalk import Results, Scenario

CELL = {"congestion": "bbr", "path.link.delay": "20ms"}


def test_a_trace_is_the_run_and_its_events_count_as_the_record(scenario: Scenario, results: Results) -> None:
    trace = scenario.trace(cell=CELL, seed=2)
    runs, flows = results.runs.to_pandas(), results.flows.to_pandas()
    is_it = (runs["flow.tcp.congestion"] == "bbr") & (runs["path.link.delay"] == "20ms") & (runs["seed"] == 2)
    assert [trace.digest] == list(runs[is_it].digest)
    events = trace.events.to_pandas()
    sent = events[(events.event == "sent") & events.packet.isin(["data", "retransmission"])]
    assert len(sent) == int(flows[is_it].sent_packets.iloc[0])
    assert events.time_s.is_monotonic_increasing
    assert set(events[events.event == "limit"].limit.dropna()) <= {
        "handshake", "application", "receive-window", "send-buffer", "recovery", "pacing", "window", "scheduler",
    }  # fmt: skip


def test_files_are_those_of_the_command(command: Path, scenario: Scenario, tmp_path: Path) -> None:
    names = {"pcap": "p.pcapng", "events": "e.parquet", "qlog": "q.sqlog", "page": "p.html"}
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    pcap, events, qlog, page = (here / name for name in names.values())
    scenario.trace(cell=CELL, seed=1, pcap=pcap, events=events, qlog=qlog, page=page)
    (there / "two.toml").write_text(scenario.to_toml())
    options = [word for key, name in names.items() for word in (f"--{key}", name)]
    cells = [word for key, value in CELL.items() for word in ("--cell", f"{key}={value}")]
    line = [str(command), "trace", "two.toml", *cells, "--seed", "1", *options]
    subprocess.run(line, check=True, capture_output=True, cwd=there)
    for name in ("p.pcapng", "e.parquet", "q.sqlog"):
        assert (here / name).read_bytes() == (there / name).read_bytes(), name
    assert (here / "p.html").read_text().startswith("<!doctype html>")


def test_a_capture_has_the_packets_of_the_run(scenario: Scenario, tmp_path: Path) -> None:
    pcap = tmp_path / "p.pcapng"
    truth = scenario.trace(cell=CELL, seed=1, pcap=pcap).events.to_pandas()
    read = ropewalk.read_capture(pcap).to_pandas()
    assert list(read.columns) == list(truth.columns)
    sent = [
        events[(events.event == "sent") & (events.direction == "forward") & events.seq.notna()]
        for events in (truth, read)
    ]
    assert len(sent[0]) > 100
    assert list(sent[0].seq) == list(sent[1].seq)
    with pytest.raises(ValueError, match="no place 'middle' of a capture: near or far"):
        ropewalk.read_capture(pcap, at="middle")  # type: ignore[arg-type]
    with pytest.raises(OSError, match="No such file"):
        ropewalk.read_capture(tmp_path / "none.pcap")


def test_what_cannot_be_traced_is_an_error(scenario: Scenario, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"12 cells|4 cells match.*congestion is reno \| bbr"):
        scenario.trace()
    with pytest.raises(ValueError, match="no cell has congestion=cubic"):
        scenario.trace(cell={"congestion": "cubic"})
    with pytest.raises(ValueError, match=r"no place 'middle': near, far, or a link \("):
        scenario.trace(cell=CELL, pcap=tmp_path / "p.pcapng", at="middle")
    with pytest.raises(OSError, match=r"no such folder|cannot write"):
        scenario.trace(cell=CELL, pcap=tmp_path / "no such folder" / "p.pcapng")


def test_the_explorer_answers_until_it_is_closed(command: Path) -> None:
    assert command.exists()
    with ropewalk.explore("one-link") as explorer:
        page = urllib.request.urlopen(explorer.url).read().decode()
        assert "<title>" in page and explorer.url in explorer._repr_html_()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(explorer.url)
    with pytest.raises(ValueError, match="onelink"):
        ropewalk.explore("onelink")
    assert json.dumps(repr(explorer)).startswith('"<ropewalk.Explorer at http://127.0.0.1:')
