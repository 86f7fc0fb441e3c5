"""Ropewalk: choose, study and deploy multipath congestion control. docs/python.md shows it in ten lines."""

from __future__ import annotations

from ._native import Policy, __version__
from .errors import PolicyError, RopewalkError, ScenarioError
from .scenario import Scenario

__all__ = ["Policy", "PolicyError", "RopewalkError", "Scenario", "ScenarioError", "__version__"]
