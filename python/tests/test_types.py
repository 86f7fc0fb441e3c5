"""The examples of the documentation pass the type checks of editors: pyright's, as basedpyright packages it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

pytest.importorskip("basedpyright")

BLOCK = re.compile(r'^```python(?: title=".*?")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
SETTINGS = {"typeCheckingMode": "standard", "reportMissingImports": "none", "reportUnusedExpression": "none"}
# pandas' own types do not know what `groupby(...).mean()` returns.
UNTYPED = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"


def findings(folder: Path) -> list[str]:
    """What pyright says of the files of a folder."""
    (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    (folder / "typings/pandas").mkdir(parents=True)
    (folder / "typings/pandas/__init__.pyi").write_text(UNTYPED)
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "."]
    outcome = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    report = json.loads(outcome.stdout)
    return [f"{Path(it['file']).name}: {it['message']}" for it in report["generalDiagnostics"]]


def test_the_examples_of_the_documentation_have_the_right_types(tmp_path: Path) -> None:
    pages = {page: BLOCK.findall(page.read_text()) for page in (ROOT / "docs").rglob("*.md")}
    examples = {page: "\n".join(blocks) for page, blocks in pages.items() if blocks}
    assert len(examples) >= 5
    for page, code in examples.items():
        (tmp_path / f"{page.stem.replace('-', '_')}.py").write_text(code)
    assert findings(tmp_path) == []


def test_a_wrong_type_is_found(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "import ropewalk\n"
        "from ropewalk.learning import scenario_env\n\n"
        "ropewalk.Scenario.load('one-link').run(seed=[1])\n"
        "scenario_env('one-link', decides='packets')\n"
        "scenario_env('one-link', observatoin='orca')\n"
    )
    assert len(findings(tmp_path)) == 3
