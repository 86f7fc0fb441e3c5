"""Scenarios: loading, setting, errors."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import ropewalk
from ropewalk import Scenario, ScenarioError

ROOT = Path(__file__).parents[2]
ONE_LINK = ROOT / "scenarios/one-link.toml"


def test_the_version_is_that_of_the_workspace() -> None:
    assert f'version = "{ropewalk.__version__}"' in (ROOT / "Cargo.toml").read_text()


def test_a_scenario_is_loaded_with_sets_and_quick() -> None:
    paper = ROOT / "scenarios/papers/al-imareen-2024.toml"
    scenario = Scenario.load(paper, set={"flow.tcp.congestion": "bbr", "seeds": [7]}, quick=True)
    assert (scenario.name, scenario.seeds) == ("al-imareen-2024", [7])
    assert scenario.cells and len(scenario.cells) < len(Scenario.load(paper).cells)


def test_setting_changes_the_hash_and_a_wrong_value_changes_nothing() -> None:
    scenario = Scenario.load(ONE_LINK)
    before = scenario.hash
    with pytest.raises(ScenarioError):
        scenario.set("path.link.speed", "1mbit")
    assert scenario.hash == before
    scenario.set("path.link.rate", "1mbit")
    assert scenario.hash != before
    assert scenario.hash == Scenario.load(ONE_LINK, set={"path.link.rate": "1mbit"}).hash


def test_a_study_is_its_content_and_not_the_history_of_its_sets() -> None:
    scenario = Scenario.load(ONE_LINK)
    scenario.set("duration", "2s")
    scenario.set("flow.tcp.congestion", "bbr")
    once = scenario.hash
    scenario.set("duration", "3s")
    scenario.set("duration", "2s")  # the cell of a notebook, again
    assert scenario.hash == once
    other = Scenario.load(ONE_LINK, set={"flow.tcp.congestion": "bbr", "duration": "2s", "seeds": [4]})
    assert other.hash == once
    sweep = '[sweep]\n"path.link.rate" = [{ label = "slow", value = "1mbit" }, "9mbit"]\n'
    swept = Scenario.parse(ONE_LINK.read_text() + sweep)
    swept.set("path.link.rate", "9mbit")
    swept.set("path.link.rate", "slow")  # of the file's entries, not of the one that was left
    assert swept.cells == [{"path.link.rate": "slow"}]


def test_a_changed_scenario_has_a_file() -> None:
    assert Scenario.load(ONE_LINK).to_toml() == ONE_LINK.read_text()
    scenario = Scenario.load(ONE_LINK, set={"path.link.rate": "1mbit"})
    scenario.set("duration", "2s")
    again = Scenario.parse(scenario.to_toml())
    assert 'rate = "1mbit"' in scenario.to_toml()
    assert again.run(progress=False).digest == scenario.run(progress=False).digest
    quick = Scenario.load("wifi-lte", quick=True)  # it has no short form
    assert quick.to_toml() == Scenario.load("wifi-lte").to_toml()


def test_scenarios_are_listed_and_loaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {"one-link", "wifi-lte", "al-imareen-2024"} <= set(ropewalk.scenarios())
    text = ONE_LINK.read_text()
    for name in ("one-link", "one-link.toml", "scenarios/one-link.toml"):
        assert Scenario.load(name).to_toml() == text
    assert Scenario.load("papers/al-imareen-2024").name == "al-imareen-2024"
    for name in ("onelink", "one_link", "scenarios/one-lnk.toml"):
        with pytest.raises(ScenarioError, match="did you mean 'one-link'") as caught:
            Scenario.load(name)
        assert caught.value.help == "did you mean 'one-link'?"
    with pytest.raises(ScenarioError, match=r"ropewalk.scenarios\(\) lists"):
        Scenario.load("xyz")


def test_an_error_names_file_line_key_and_what_would_be_right(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(ONE_LINK.read_text().replace("delay =", "dealy ="))
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(path)
    error = caught.value
    lines = path.read_text().splitlines()
    assert (error.file, lines[error.line - 1]) == (str(path), 'dealy = "10ms"')
    assert (error.key, error.help) == ("path.link.dealy", "did you mean `delay`?")
    assert all(part in str(error) for part in (str(path), error.message, error.help, 'dealy = "10ms"'))
    assert isinstance(error, ValueError) and isinstance(error, ropewalk.RopewalkError)


def test_errors_in_a_set_in_a_text_and_of_a_missing_file_name_their_place() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(ONE_LINK, set={"path.link.rate": "7mbps"})
    assert (caught.value.file, caught.value.line, caught.value.key) == ("--set", 1, "path.link.rate")
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse("name = 1", origin="cell 3")
    assert (caught.value.file, caught.value.line, caught.value.key) == ("cell 3", 1, "name")
    with pytest.raises(ScenarioError, match="cannot read the scenario") as caught:
        Scenario.load("no/such/file.toml")
    assert (caught.value.file, caught.value.line) == ("no/such/file.toml", 0)


def test_scenarios_and_errors_are_pickled() -> None:
    scenario = Scenario.load(ONE_LINK, set={"path.link.rate": "1mbit"})
    assert pickle.loads(pickle.dumps(scenario)).hash == scenario.hash
    error = ScenarioError("text", "file", 3, "key", "message", "help")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.line, copy.help) == ("text", 3, "help")


def test_a_scenario_says_what_it_is() -> None:
    assert repr(Scenario.load(ONE_LINK)) == "<ropewalk.Scenario 'one-link': 1 cell with 1 seed>"


def test_values_that_no_scenario_has_are_refused() -> None:
    scenario = Scenario.load(ONE_LINK)
    with pytest.raises(TypeError, match="values of type object"):
        scenario.set("duration", object())
    with pytest.raises(ValueError, match="nan is not a number"):
        scenario.set("duration", float("nan"))


def test_numbers_and_arrays_of_numpy_are_values() -> None:
    np = pytest.importorskip("numpy")
    scenario = Scenario.load(ONE_LINK)
    scenario.set("sweep", {"flow.tcp.count": np.arange(1, 3), "path.link.mtu": [f"{np.int64(1400)}b"]})
    scenario.set("seeds", np.array([3, 4]))
    assert (len(scenario.cells), scenario.seeds) == (2, [3, 4])
