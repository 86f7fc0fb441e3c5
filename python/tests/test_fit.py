"""Links fitted to the measurements of iperf3 and ping."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ropewalk
from conftest import ROOT
from ropewalk.calibration import Fit

FILES = ROOT / "study/measured/tests/files"


@pytest.fixture
def measured(tmp_path: Path) -> list[Path]:
    """A download by iperf3 and a ping over one path, which has the files' name."""
    names = {"iperf3-tcp-reverse.json": "lte.json", "ping-iputils.txt": "lte.txt"}
    return [Path(shutil.copy(FILES / name, tmp_path / as_name)) for name, as_name in names.items()]


def fitted(measured: list[Path], jobs: int) -> Fit:
    return ropewalk.fit(to=measured, members=2, evaluations=4, jobs=jobs)


def test_a_fit_is_the_same_on_any_number_of_threads_and_its_members_run(measured: list[Path], tmp_path: Path) -> None:
    fit = fitted(measured, 1)
    assert fit.digest == fitted(measured, 2).digest
    for values in fit.parameters.values():
        assert 0 < values["low"] <= values["median"] <= values["high"]
    member = fit.ensemble[0]
    member.set("duration", "2s")
    flow = member.run(progress=False).flows.to_pandas().iloc[0]
    assert flow["goodput_mbps"] > 0
    page = fit.save(tmp_path / "fit")
    assert page.read_text().startswith("<!doctype html>")
    assert fit.digest in fit.report()


def test_what_cannot_be_fitted_is_named(measured: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("nothing measured\n")
    with pytest.raises(ValueError, match=r"notes\.txt:1: "):
        ropewalk.fit(to=file)
    with pytest.raises(ValueError, match=r"path\.nowhere\.rate"):
        ropewalk.fit(to=measured, free={"path.nowhere.rate": "1mbit..2mbit"}, evaluations=4)


def test_paths_have_the_names_that_are_given() -> None:
    named = [f"dsl={FILES / name}" for name in ("iperf3-tcp-reverse.json", "ping-iputils.txt")]
    fit = ropewalk.fit(to=named, members=2, evaluations=4, jobs=1)
    assert {key.split(".")[1] for key in fit.parameters} == {"dsl"}
    with pytest.raises(ValueError, match=r"nowhere\.json"):
        ropewalk.fit(to={"dsl": "nowhere.json"})
