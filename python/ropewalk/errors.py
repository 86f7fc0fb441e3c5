"""The exceptions of this package. All of them are a `RopewalkError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import Results

__all__ = [
    "ActionError",
    "ConfigError",
    "PolicyError",
    "ResultsError",
    "RopewalkError",
    "RunError",
    "RunInterrupted",
    "ScenarioError",
]


class RopewalkError(Exception):
    """An error of Ropewalk."""


class ActionError(RopewalkError, ValueError):
    """An action that an environment does not take: of another shape, not of numbers, NaN or infinite."""


class ConfigError(RopewalkError, ValueError):
    """An invalid configuration of a learning environment: the message names the key and the fix."""


class PolicyError(RopewalkError, ValueError):
    """A refused model, or an observation of the wrong size."""


class ScenarioError(RopewalkError, ValueError):
    """An error in a scenario. `str()` is the text that the command line shows."""

    file: str
    """The file with the error; `--set` for a value that was set."""
    line: int
    """The line, from 1; 0 for a file that could not be read."""
    key: str
    """The dotted key, such as `path.eno2.delay`; empty if the text is not TOML."""
    message: str
    """The error, in one line."""
    help: str
    """How to fix it, or empty."""

    def __init__(self, text: str, file: str, line: int, key: str, message: str, help: str) -> None:
        super().__init__(text, file, line, key, message, help)
        self.file, self.line, self.key, self.message, self.help = file, line, key, message, help

    def __str__(self) -> str:
        return str(self.args[0])


class RunError(RopewalkError, RuntimeError):
    """A run failed."""


class ResultsError(RopewalkError):
    """A results folder cannot be read or written, or results do not have the requested value."""


class RunInterrupted(KeyboardInterrupt):
    """A study was interrupted: by Ctrl-C, as any `KeyboardInterrupt`."""

    results: Results
    """The finished runs."""

    def __init__(self, results: Results) -> None:
        super().__init__(f"interrupted after {len(results)} runs")
        self.results = results
