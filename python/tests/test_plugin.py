"""Plug-ins bring a whole extension module: one at most, of the same version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ropewalk import __version__

# The plug-in's module is the package's own one under another name, with a mark.
MODULE = """
import importlib.machinery, importlib.util, sys
found = importlib.machinery.PathFinder.find_spec("ropewalk", [p for p in sys.path])
import os
folder = os.path.dirname(found.origin)
names = (name for name in os.listdir(folder) if name.startswith("_native") and name.endswith(".so"))
file = os.path.join(folder, next(names))
spec = importlib.util.spec_from_file_location("ropewalk._native", file)
native = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native)
globals().update(vars(native))
plugin_mark = True
"""


def install(folder: Path, name: str, tail: str = "") -> None:
    """A package with an entry point, as pip would leave it."""
    (folder / f"{name}.py").write_text(MODULE + tail)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ropewalk.native]\n{name} = {name}\n")


def python(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)


def test_the_module_of_a_plugin_is_taken(tmp_path: Path) -> None:
    install(tmp_path, "plug")
    program = "import ropewalk, sys; from ropewalk import _native; print(_native.plugin_mark)"
    done = python(tmp_path, program)
    assert done.stdout == "True\n", done.stderr


def test_two_plugins_are_refused(tmp_path: Path) -> None:
    install(tmp_path, "plug")
    install(tmp_path, "socket_")
    done = python(tmp_path, "import ropewalk")
    assert "several packages bring an extension module for Ropewalk: plug, socket_" in done.stderr


def test_a_plugin_of_another_version_is_refused(tmp_path: Path) -> None:
    install(tmp_path, "plug", '__version__ = "0.0.1"\n')
    info = tmp_path / f"ropewalk-{__version__}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ropewalk\nVersion: {__version__}\n")
    done = python(tmp_path, "import ropewalk")
    assert f"compiled with Ropewalk 0.0.1, and this is {__version__}" in done.stderr
