"""Optimisation through the accountant: schedules that serve best at one level of privacy."""

from .optimize import Optimized, Schedule, optimize

__all__ = ["Optimized", "Schedule", "optimize"]
