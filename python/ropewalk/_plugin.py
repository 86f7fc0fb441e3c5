"""Extension modules of plug-ins: a package with algorithms in Rust has a whole one, which replaces this package's.

Two libraries that were compiled separately share no Rust types, so one of them has to contain everything.
"""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version

__all__ = ["install"]

GROUP = "ropewalk.native"


def install() -> None:
    """Let `ropewalk._native` be the extension module of the plug-in that is installed, if there is one.

    Raises `ImportError` for more than one, and for one that was compiled with another version of Ropewalk.
    """
    found = sorted({(point.name, point.value) for point in entry_points(group=GROUP)})
    if not found or "ropewalk._native" in sys.modules:
        return
    if len(found) > 1:
        names = ", ".join(name for name, _ in found)
        raise ImportError(
            f"several packages bring an extension module for Ropewalk: {names}. Uninstall all but one, or build one"
            " that registers the algorithms of all."
        )
    ((name, value),) = found
    module = EntryPoint(name, value, GROUP).load()
    own = _own_version()
    if own is not None and module.__version__ != own:
        raise ImportError(
            f"the plug-in `{name}` was compiled with Ropewalk {module.__version__}, and this is {own}:"
            " build it again with this version"
        )
    sys.modules["ropewalk._native"] = module


def _own_version() -> str | None:
    """The installed version; `None` in a checkout that is not installed."""
    try:
        return version("ropewalk")
    except PackageNotFoundError:
        return None


install()
