"""The page of `ropewalk explore`, from Python."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from html import escape
from pathlib import Path
from types import TracebackType

__all__ = ["Explorer", "explore"]


class Explorer:
    """A page on which a scenario's keys are sliders. In a notebook it is shown in the cell's output.

    url: the page's address; it works until `close`, the end of a `with` block, or the end of Python.
    """

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        """Explorers come from `explore`."""
        self._process, self.url = process, url

    def close(self) -> None:
        """Ends the server, and the page with it."""
        self._process.terminate()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if self._process.poll() is None:
            self.close()

    def __repr__(self) -> str:
        return f"<ropewalk.Explorer at {self.url}>"

    def _repr_html_(self) -> str:
        return f'<iframe src="{escape(self.url)}" style="width: 100%; height: 900px; border: 0"></iframe>'


def explore(scenario: str | os.PathLike[str] | None = None, *, port: int = 0) -> Explorer:
    """Open the page of `ropewalk explore` for a file or a built-in scenario, or for a list of the built-in ones.

    port: by default any that is free.

    Raises `FileNotFoundError` without the program of the wheel, and `ValueError` with the program's message if it does
    not start.
    """
    program = Path(sysconfig.get_path("scripts")) / "ropewalk"
    given = [] if scenario is None else [os.fspath(scenario)]
    line = [os.fspath(program), "explore", *given, "--no-browser", "--port", str(port)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    url = process.stdout.readline().strip()
    if not url.startswith("http://"):
        message = process.communicate()[1].strip()
        raise ValueError(message)
    process.stderr.close()
    return Explorer(process, url)
