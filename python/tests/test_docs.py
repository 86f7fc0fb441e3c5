"""The Python of the documentation runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

# A block of Python, the file that it is, and the output below it.
STEP = re.compile(
    r'^```python(?: title="(?P<file>.*?)")?\n(?P<code>.*?)^```(?:\n\n```text\n(?P<output>.*?)^```)?',
    re.MULTILINE | re.DOTALL,
)
SEPARATOR = "\x1e"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_blocks_of_the_python_page_run_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = BLOCK.findall((ROOT / "docs/how-to/use-python.md").read_text())
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/how-to/use-python.md", "exec"), names)
    assert (tmp_path / "page.html").is_file()


def test_the_blocks_of_the_page_on_learning_run_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "docs/how-to/learn-a-policy.md").read_text())
    own = [block for block in blocks if "stable_baselines3" not in block]  # tests/frameworks.py has SB3
    assert own
    names: dict[str, object] = {}
    for block in own:
        exec(compile(block, "docs/how-to/learn-a-policy.md", "exec"), names)


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("3-your-congestion-control-in-python", ["pandas"]),
        ("6-train-a-policy", ["pandas", "gymnasium", "jax", "optax"]),
    ],
)
def test_a_tutorial_prints_what_it_shows(name: str, modules: list[str], tmp_path: Path) -> None:
    """Blocks with a title are files, the others one script; `...` in output stands for any text."""
    for module in modules:
        pytest.importorskip(module)
    for folder in ("python", "scenarios"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    steps = list(STEP.finditer((ROOT / f"docs/tutorials/{name}.md").read_text()))
    for step in steps:
        if step["file"]:
            (tmp_path / step["file"]).write_text(step["code"])
    code = [step for step in steps if not step["file"]]
    script = tmp_path / "tutorial.py"
    script.write_text("".join(f"{step['code']}\nprint({SEPARATOR!r}, flush=True)\n" for step in code))
    outcome = subprocess.run([sys.executable, script], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)
    printed = outcome.stdout.split(f"{SEPARATOR}\n")
    for step, text in zip(code, printed, strict=False):
        if step["output"]:
            pattern = re.escape(step["output"].rstrip()).replace(re.escape("..."), ".*")
            lines = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
            assert re.fullmatch(pattern, lines, re.DOTALL), text
