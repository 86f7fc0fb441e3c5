"""Scenarios that are built in Python."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from conftest import TEXT
from ropewalk import Scenario, ScenarioError, _native, _toml, build

PACKAGE = Path(__file__).parents[1]


def two() -> Scenario:
    """The scenario of the other tests."""
    return build.scenario(
        name="two",
        duration="2s",
        sample="100ms",
        seeds=[1, 2, 3],
        path=[
            build.Path(name="link", rate="10mbit", delay="10ms", loss="0.1%", queue=build.Queue(limit="1bdp")),
        ],
        flow=[build.Flow(name="tcp", congestion="cubic")],
        sweep={"flow.tcp.congestion": ["reno", "bbr"], "path.link.delay": ["5ms", "20ms"]},
    )


def test_a_built_scenario_is_the_one_of_the_same_text() -> None:
    assert two().cells == Scenario.parse(TEXT).cells
    here, there = (scenario.run(seeds=[1], progress=False) for scenario in (two(), Scenario.parse(TEXT)))
    assert here.digest == there.digest


def test_its_file_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(two().to_toml())
    assert Scenario.load(path).hash == two().hash
    changed = two()
    changed.set("duration", "1s")
    assert 'duration = "1s"' in changed.to_toml()
    assert Scenario.parse(changed.to_toml()).cells == changed.cells


def test_an_error_is_at_a_line_of_its_file() -> None:
    with pytest.raises(ScenarioError, match="unknown path `wifi`") as caught:
        build.scenario(
            name="wrong",
            duration="1s",
            path=[build.Path(name="lte", rate="1mbit")],
            flow=[build.Flow(name="tcp", path="wifi")],
        )
    assert (caught.value.file, caught.value.key) == ("wrong.toml", "flow.tcp.path")
    assert caught.value.line > 1


def test_the_classes_have_every_key_of_the_schema() -> None:
    generate = _generator()
    schema = generate.without_twins(json.loads(_native.schema()))
    tables = {name: table for name, table in schema["$defs"].items() if "properties" in table}
    for name, table in tables.items():
        of_class = dataclasses.fields(getattr(build, generate.type_name(name)))
        assert {field.name.removesuffix("_") for field in of_class} == set(table["properties"])


def test_the_files_are_what_the_schema_makes() -> None:
    texts = _generator().formatted(json.loads(_native.schema()))
    stored = {name: (PACKAGE / "ropewalk" / name).read_text() for name in texts}
    assert texts == stored, "stale: `cargo xtask python-types`"


def test_values_are_written_as_toml_reads_them() -> None:
    assert _toml.value(True) == "true" and _toml.value(3) == "3" and _toml.value(0.5) == "0.5"
    assert _toml.value('a "b" \\ \n\x7f') == r'"a \"b\" \\ \n\u007f"'
    assert _toml.value({"a.b": [1, "x"], "c": {}}) == '{ "a.b" = [1, "x"], c = {} }'
    assert _toml.document({"a": None, "b": 1, "c": {"d": {"e": "f"}}}) == 'b = 1\n\n[c]\nd = { e = "f" }\n'


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", PACKAGE / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
