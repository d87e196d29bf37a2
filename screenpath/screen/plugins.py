"""Rules of the user's own in the place of built-in ones: what they return is checked, what they raise is explained."""

from __future__ import annotations

from typing import Any

import numpy as np

from screenpath.data.safe.plugins import Plugin, PluginError, plugin_of
from screenpath.errors import UsageError
from screenpath.kernels.walk.compiled_types import GIVEN
from screenpath.regions.geometry import Ball, Dome, Lens
from screenpath.regions.lever import LeverBall, LeverPencil
from screenpath.screen.base import PathScreening, StaticRule


def plugged_rule(value, composed=None, pathwise=None, chunk: int | None = None):
    """Return the screening that a plug-in makes (``data.safe.plugins.plugin_of``); None where the value is none.

    ``composed(static, dynamic, name)`` and, for a rule with a far end, ``pathwise`` make the model's screening of a
    static rule; they are None where the model has no regions, or no far end. A chunk is refused.
    """
    plugin = plugin_of(value)
    if plugin is None:
        return None
    if chunk is not None:
        raise UsageError(f"the rule '{plugin}' cannot serve several grid points at once", "leave out `chunk`")
    if composed is None or hasattr(plugin.found(), "before"):
        return PluginScreening(plugin)
    static = PluginRule(plugin)
    if static.needs_far_end and pathwise is None:
        raise UsageError(f"the rule '{plugin}' needs a far end, which this model lacks", "use a rule without one")
    make: Any = pathwise if static.needs_far_end else composed
    return make(static, plugin.dynamic, str(plugin))


class _Pickled:
    """What is sent to another process is the name of the plug-in, which is made anew there."""

    def __init__(self, plugin: Plugin):
        self.plugin = plugin

    def __reduce__(self):
        return type(self), (self.plugin,)


class PluginRule(_Pickled, StaticRule):
    """A static rule of the user's own."""

    compiled = GIVEN  # whatever it inherits: its own method is asked

    def __init__(self, plugin: Plugin):
        super().__init__(plugin)
        self.own = plugin.made(("region",))
        self.name, self.needs_far_end = str(plugin), bool(getattr(self.own, "needs_far_end", False))

    def region(self, model, reference, C: float, *far):
        """Return the region of the plug-in, if it is one that the model can ask."""
        with self.plugin.guarded():
            region = self.own.region(model, reference, C, *far)
        like = getattr(reference, "point", None)
        levers = (LeverBall, LeverPencil) if hasattr(model, "signless") else ()
        kinds = (Ball, Dome, Lens, *levers)
        if not isinstance(region, kinds):
            what = f"{self.plugin}: region() returned {type(region).__name__}, not a region of this model"
            raise PluginError(what, f"return a {', '.join(kind.__name__ for kind in kinds)}")
        vector, point = (reference.theta, None) if like is None else (like.vector, type(like))
        for one in getattr(region, "points", ()):  # the points of levers are made here, not by the user
            self._check("vector", one.vector, vector.shape)
            if one.products is not None or like is None:
                self._check("products", one.products, (model.size,))
            if point is not None and not isinstance(one, point):
                told = f"{self.plugin}: a {type(one).__name__} is no point of this model"
                raise PluginError(told, f"make it of the reference's, a {point.__name__}, by scaled()")
        return region

    def _check(self, what: str, values, shape: tuple) -> None:
        found = getattr(values, "shape", None), getattr(values, "dtype", None)
        if found != (shape, np.float64):
            told = f"{self.plugin}: the {what} of a point of its region have shape and type {found}"
            raise PluginError(told, f"they must be float64 of shape {shape}")


def _passed_on(name: str, checked: bool = False):
    """Return a method that asks the plug-in where it has one of that name, else the contract's own."""

    def method(self, *arguments):
        own = getattr(self.own, name, None)
        if own is None:
            return getattr(PathScreening, name)(self, *arguments)
        with self.plugin.guarded():
            found = own(*arguments)
            shape = np.shape(found.status) if checked else ()  # of what is no decision there is none
        if checked:
            nothing = arguments[0].nothing_screened()
            if type(found) is not type(nothing) or shape != nothing.status.shape:
                told = f"{self.plugin}: {name}() returned {type(found).__name__}, not decisions of this model"
                raise PluginError(told, f"return a {type(nothing).__name__}, as model.nothing_screened() does")
        return found

    method.__name__, method.__doc__ = name, f"See :meth:`screenpath.screen.base.PathScreening.{name}`."
    return method


class PluginScreening(_Pickled, PathScreening):
    """A whole screening of the user's own."""

    def __init__(self, plugin: Plugin):
        super().__init__(plugin)
        dynamic = plugin.dynamic or bool(getattr(plugin.found(), "dynamic", False))
        self.own = plugin.made(("before", "again") if dynamic else ("before",))
        self.name, self.dynamic, self.loose = str(plugin), dynamic, float(getattr(self.own, "loose", 0.0))

    @property
    def needs_far_end(self) -> bool:
        """Tell whether the plug-in begins with a solution at the far end."""
        return bool(getattr(self.own, "needs_far_end", False))

    begin, state, restore, proven = (_passed_on(name) for name in ("begin", "state", "restore", "proven"))
    before, again, corrected = (_passed_on(name, checked=True) for name in ("before", "again", "corrected"))
