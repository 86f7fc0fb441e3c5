"""Tables, figures and the report of results."""

from __future__ import annotations

from typing import cast

import numpy
import pandas
import polars
import pyarrow
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

import ropewalk
from ropewalk import Results, Scenario

SWEPT = ["flow.tcp.congestion", "path.link.delay"]
TABLES = ["runs", "flows", "subflows", "paths", "tunnels", "cpu", "histograms", "series"]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_the_swept_keys_and_is_read_by_all_libraries(results: Results, name: str) -> None:
    table = getattr(results, name)
    assert table.columns[:4] == [*SWEPT, "cell", "seed"]
    arrow = pyarrow.table(table)
    assert arrow.column_names == table.columns
    assert arrow.to_pydict() == table.to_dict()
    assert table.to_polars().to_dict(as_series=False) == table.to_dict()
    frame = table.to_pandas()
    assert (list(frame.columns), len(frame)) == (table.columns, len(table))
    for column in table.columns:
        plain = [None if pandas.isna(value) else value for value in frame[column]]
        assert plain == table.to_dict()[column]


def test_rows_are_by_cell_and_seed(results: Results) -> None:
    columns = results.flows.to_dict()
    assert columns["seed"] == [1, 2, 3] * 4
    assert columns["flow.tcp.congestion"] == ["reno"] * 6 + ["bbr"] * 6
    assert columns["path.link.delay"] == (["5ms"] * 3 + ["20ms"] * 3) * 2
    assert columns["congestion_control"] == columns["flow.tcp.congestion"]
    assert all(value > 0 for value in columns["goodput_mbps"])
    assert columns["completion_s"] == [None] * 12


def test_categories_have_the_order_of_the_sweep(results: Results) -> None:
    frame = results.flows.to_pandas()
    assert list(frame["path.link.delay"].cat.categories) == ["5ms", "20ms"]
    means = frame.groupby("path.link.delay", observed=True)["goodput_mbps"].mean()
    assert list(means.index) == ["5ms", "20ms"]


def test_pointers_are_shared_not_copied(results: Results) -> None:
    first, second = (pyarrow.table(results.series).column("time_s").chunk(0).buffers()[1] for _ in range(2))
    assert first.address == second.address


def test_series_are_tidy(results: Results) -> None:
    frame = results.series.to_polars()
    keys = ["cell", "seed", "subject", "time_s"]
    assert frame.height == frame.select(keys).unique().height == 12 * 2 * 20
    flow = frame.filter(polars.col("subject") == "flow tcp")
    assert flow["cwnd_packets"].null_count() == 0
    assert flow["queue_packets"].null_count() == flow.height, "a flow has no queue"


def test_numbers_that_are_swept_are_numbers(scenario: Scenario) -> None:
    text = scenario.to_toml().replace('"path.link.delay" = ["5ms", "20ms"]', '"flow.tcp.count" = [1, 2]')
    flows = Scenario.parse(text, set={"flow.tcp.congestion": "reno", "seeds": [1]}).run(progress=False).flows
    assert flows.to_dict()["flow.tcp.count"] == [1.0, 2.0, 2.0]


def test_estimates_are_those_of_the_table(results: Results) -> None:
    estimates = results.estimates("goodput_mbps")
    frame = results.flows.to_pandas()
    means = frame.groupby("cell")["goodput_mbps"].mean()
    assert [estimate.mean for estimate in estimates] == pytest.approx(list(means), rel=1e-12)
    # Student's t with two degrees of freedom: 4.30265.
    half_widths = 4.30265 * frame.groupby("cell")["goodput_mbps"].std() / 3**0.5
    assert [estimate.half_width for estimate in estimates] == pytest.approx(list(half_widths), rel=1e-9)
    assert [estimate.runs for estimate in estimates] == [3] * 4
    only = results.estimates("rtt_ms.p95", only={"path.link.delay": "5ms"})
    assert [estimate.parameters["flow.tcp.congestion"] for estimate in only] == ["reno", "bbr"]
    with pytest.raises(ropewalk.ResultsError, match="did you mean `goodput_mbps`"):
        results.estimates("goodput_mpbs")


def test_a_figure_has_a_line_an_algorithm_in_the_reports_colours(results: Results) -> None:
    axes = results.figure("goodput_mbps", x="path.link.delay", lines="flow.tcp.congestion")
    lines = cast("list[ErrorbarContainer]", axes.containers)
    assert [line.get_label() for line in lines] == ["reno", "bbr"]
    estimates = results.estimates("goodput_mbps")
    for index, line in enumerate(lines):
        points = line.lines[0]
        assert numpy.asarray(points.get_xdata()).tolist() == [5.0, 20.0]
        expected = [estimate.mean for estimate in estimates[2 * index : 2 * index + 2]]
        assert numpy.asarray(points.get_ydata()).tolist() == expected
        assert to_hex(points.get_color()) == ropewalk.colours(["reno", "bbr"])[index][0]
    only = {"flow.tcp.congestion": "bbr"}
    alone = results.figure("goodput_mbps", x="path.link.delay", lines="flow.tcp.congestion", only=only)
    [bbr] = cast("list[ErrorbarContainer]", alone.containers)
    looks = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in (bbr.lines[0], lines[1].lines[0])]
    assert looks[0] == looks[1], "BBR looks the same alone"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("path.link.delay, ms", "goodput, Mbit/s")


def test_by_default_numbers_are_across_and_the_other_key_makes_lines(results: Results) -> None:
    axes = results.figure()
    assert axes.get_xlabel() == "path.link.delay, ms"
    legend = axes.get_legend()
    assert legend is not None and legend.get_title().get_text() == "flow.tcp.congestion"


def test_several_cells_at_one_point_are_refused(results: Results) -> None:
    with pytest.raises(ropewalk.ResultsError, match=r"choose values of `path\.link\.delay` with `only`"):
        results.figure(x="flow.tcp.congestion", lines="flow")


def test_a_figure_over_time_draws_each_run_on_given_axes(results: Results) -> None:
    axes = Figure().subplots()
    only = {"path.link.delay": "20ms"}
    assert results.figure("cwnd_packets", x="time", lines="flow.tcp.congestion", only=only, ax=axes) is axes
    assert len(axes.lines) == 6
    assert axes.get_xlabel() == "time, s"
    with pytest.raises(ropewalk.ResultsError, match="no column `cwnd`"):
        results.figure("cwnd", x="time")


def test_a_figure_of_samples_is_their_cumulative_distribution(results: Results) -> None:
    axes = results.figure("rtt_ms", x="samples", only={"path.link.delay": "20ms"})
    assert [line.get_label() for line in axes.lines] == ["reno", "bbr"]
    frame = results.histograms.to_pandas()
    of_reno = frame[(frame["column"] == "rtt_ms") & (frame["path.link.delay"] == "20ms")]
    of_reno = of_reno[of_reno["flow.tcp.congestion"] == "reno"].groupby("max_ms")["count"].sum()
    assert numpy.asarray(axes.lines[0].get_xdata()).tolist() == of_reno.index.tolist()
    assert numpy.allclose(axes.lines[0].get_ydata(), of_reno.cumsum() / of_reno.sum())
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("RTT, ms", "share of the samples")
    with pytest.raises(ropewalk.ResultsError, match="several cells in one line"):
        results.figure("rtt_ms", x="samples", lines="flow.tcp.congestion")
    with pytest.raises(ropewalk.ResultsError, match="no samples of `goodput_mbps`; known: rtt_ms"):
        results.figure("goodput_mbps", x="samples")


def test_a_notebook_shows_the_tables(results: Results) -> None:
    html = results._repr_html_()
    assert html.count("<tr") >= 5 and "goodput Mbit/s" in html and "reno" in html
    assert "10 rows" not in results.flows._repr_html_()
    assert "12 rows" in results.flows._repr_html_()
    assert "reno, 5ms, tcp" in str(results)
    assert repr(results) == f"<ropewalk.Results of 'two': 12 runs, digest {results.digest}>"
