"""The Python of the documentation runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import ROOT

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
