"""The extension module. One block for each file of `python/src`."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

__version__: str

# policy.rs

class Policy:
    """A policy read from an ONNX file."""

    def __init__(self, path: str | PathLike[str]) -> None: ...
    def act(self, observation: Sequence[float]) -> list[float]:
        """The action for an observation: the bits that the simulator and the tunnel get."""
    @property
    def observation_size(self) -> int: ...
    @property
    def action_size(self) -> int: ...
    @property
    def metadata(self) -> dict[str, str]: ...

# scenario.rs

class Scenario:
    @staticmethod
    def parse(origin: str, text: str, base: str, sets: list[str], quick: bool) -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def cells(self) -> list[list[tuple[str, str]]]: ...
    @property
    def hash(self) -> str: ...

def read_scenario(path: Path) -> str: ...
