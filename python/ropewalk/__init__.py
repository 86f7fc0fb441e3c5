"""Ropewalk: choose, study and deploy multipath congestion control. docs/python.md shows it in ten lines."""

from __future__ import annotations

from ._native import __version__
from .errors import RopewalkError, ScenarioError
from .scenario import Scenario

__all__ = ["RopewalkError", "Scenario", "ScenarioError", "__version__"]
