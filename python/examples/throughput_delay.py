"""Plots goodput over delay, as Pantheon does: better is up and to the right.

    python throughput_delay.py scenario.toml plot.png

Runs the scenario. A small mark is one run of the first flow, a large one the mean of an algorithm. The delay is the
mean round-trip time over its minimum in that run, so that worlds with other distances share an axis, which is inverted;
goodput is a share of the path's capacity. Needs pandas and matplotlib.
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import ropewalk

KEY = "flow.tcp.congestion"


def main(scenario: str, picture: str) -> None:
    study = ropewalk.Scenario.load(scenario)
    study.set("sweep.case", ["held-out"])
    results = study.run()
    flows, runs = results.flows.to_pandas(), results.runs.to_pandas()
    keys = [key for key in flows.columns if key in runs.columns and (key == "seed" or "." in key)]
    table = flows.merge(runs[[*keys, "capacity_mbps"]], on=keys)
    table["share"] = table["goodput_mbps"] / table["capacity_mbps"]
    table["delay"] = table["rtt_ms.mean"] / table["rtt_ms.min"]
    _, axes = plt.subplots(figsize=(6, 4))
    for name, group in table.groupby(KEY, sort=False):
        mean = group[["delay", "share"]].mean()
        large = axes.scatter(mean["delay"], mean["share"], s=80, alpha=0.5, label=str(name))
        axes.scatter(group["delay"], group["share"], s=8, color=large.get_facecolor()[0][:3])
    axes.invert_xaxis()
    axes.set(xlabel="mean RTT / minimum RTT (better to the right)", ylabel="goodput / capacity")
    axes.legend()
    plt.savefig(picture, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    main(*sys.argv[1:])
