"""Ropewalk: choose, study and deploy multipath congestion control. docs/how-to/use-python.md shows it in ten lines."""

from __future__ import annotations

from . import _plugin as _plugin  # first: it decides which extension module is `_native`
from ._explore import Explorer, explore
from ._native import Policy, __version__
from .algorithm import check_controller, check_scheduler, register_controller, register_scheduler
from .calibration import Fit, fit
from .errors import (
    ActionError,
    ConfigError,
    PolicyError,
    ResultsError,
    RopewalkError,
    RunError,
    RunInterrupted,
    ScenarioError,
)
from .results import Estimate, Results, colours, open
from .scenario import Scenario, scenarios
from .tables import Table
from .trace import Trace, read_capture

__all__ = [
    "ActionError",
    "ConfigError",
    "Estimate",
    "Explorer",
    "Fit",
    "Policy",
    "PolicyError",
    "Results",
    "ResultsError",
    "RopewalkError",
    "RunError",
    "RunInterrupted",
    "Scenario",
    "ScenarioError",
    "Table",
    "Trace",
    "__version__",
    "check_controller",
    "check_scheduler",
    "colours",
    "explore",
    "fit",
    "open",
    "read_capture",
    "register_controller",
    "register_scheduler",
    "scenarios",
]
