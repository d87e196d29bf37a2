"""Declared options as keywords in Python: signatures, documentation, and the options that keywords stand for.

Nothing here imports numpy.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral
from typing import Any

from screenpath.catalogue.elastic import LEFT_OUT
from screenpath.catalogue.kernel_models import PARAMETERS
from screenpath.catalogue.option import GROUPS, LISTS, RENAMED, Option, elsewhere, lists_of, usual
from screenpath.catalogue.options import PAIR_GRID
from screenpath.catalogue.spec import Spec
from screenpath.errors import UsageError

TYPES = {
    "whole": "int", "number": "float", "positive": "float", "share": "float", "choice": "str", "flag": "bool",
    "choices": "str", "constraint": "str", "numbers": "Sequence[float]", "size": "int | str", "text": "str",
    "plugin": "str | Any",
}  # fmt: skip
ENDS = {
    "grid": ("cmin", "cmax", "log", "lambda_min_ratio"), "betas": ("beta_min_ratio",), "alphas": ("alpha_min_ratio",),
}  # fmt: skip
NAMED = re.compile(r"(?<!`)`([^`]+)`(?!`)")
SECTION = re.compile(r"\n\n(?=[A-Z][a-z]+\n-+\n)")


def keywords_of(spec: Spec, *takers: str) -> tuple[Option, ...]:
    """Return the options of a model that are keywords of functions ("paths"), or of estimators too ("models")."""
    own = [one.keyword for one in spec.path_options if one.python in takers]
    bias = not spec.free_bias  # models with an intercept of their own accept no other
    return tuple(sorted((one for one in own if one.name != "bias" or bias), key=lambda one: GROUPS.index(one.group)))


def typed(keyword: Option) -> str:
    """Return the type of a keyword in a signature."""
    found = keyword.type or TYPES[keyword.kind]
    return f"{found} | None" if keyword.default is None and found != "Any" else found


def parameters(keywords: Iterable[Option], kind=inspect.Parameter.KEYWORD_ONLY) -> list[inspect.Parameter]:
    """Return keywords as the parameters of a signature."""
    return [inspect.Parameter(one.name, kind, default=one.default, annotation=typed(one)) for one in keywords]


def bound(signature: inspect.Signature, function: str, *arguments, **keywords) -> inspect.BoundArguments:
    """Bind the arguments of a function; a TypeError has its name, and the keyword that an unknown one may mean."""
    try:
        return signature.bind(*arguments, **keywords)
    except TypeError as error:
        known = {name: one for one in signature.parameters for name in (one, *LISTS.get(one, ()))}
        known |= {old: new for old, new in RENAMED.items() if new in known}
        strange = next((name for name in keywords if str(error).endswith(f"unexpected keyword argument '{name}'")), "")
        near = [strange] if strange in known else elsewhere(strange, known) or get_close_matches(strange, known, 1)
        said = f"; did you mean '{known[near[0]]}'?" if near else ""
        raise TypeError(f"{function}(): {error}{said}") from None


def entry(keyword: Option) -> str:
    choices = ", ".join(f'"{name}"' for name in keyword.choices)
    what = f"{{{choices}}}" if choices else keyword.type or TYPES[keyword.kind]
    default = "optional" if keyword.default is None else f"default {keyword.default!r}"
    said = NAMED.sub(r"``\1``", keyword.about or keyword.help)
    lines = textwrap.wrap(said, 110, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join([f"{keyword.name} : {what}, {default}", *lines])


def documented(text: str | None, keywords: Iterable[Option], before: str = "", behind: str = "") -> str:
    """Return a docstring with its parameters: ``before`` them further ones, ``behind`` them sections."""
    summary, *rest = SECTION.split(inspect.cleandoc(text or ""), maxsplit=1)
    entries = "\n".join(filter(None, (before, *map(entry, keywords))))
    return "\n\n".join(filter(None, (summary, f"Parameters\n----------\n{entries}", behind, *rest))) + "\n"


def as_options(spec: Spec, keywords: dict[str, Any], width: int) -> dict[str, Any]:
    """Return keywords as options of a path; a list of values becomes the grid, and void options are left out."""
    from numpy import array, ndim

    from screenpath.data.files.arrays import stored_type
    from screenpath.problem.grid import explicit_grid
    from screenpath.rows.kernel_functions import SCALE, parse_gamma

    o = dict(keywords)
    left_out = LEFT_OUT.get(o.get("penalty", ""))
    for name in (f"{left_out}s", f"{left_out}_min_ratio") if left_out else ():  # a default asks for nothing
        if ndim(o[name]) == 0 and o[name] == usual(PAIR_GRID, name)[0]:
            o.pop(name)
    for name, listed in lists_of({one.name for one in spec.path_options}).items():
        if name not in o:
            continue
        value = o[name]
        if getattr(value, "grows", False) and spec.parameter == "C":
            for other in ENDS[name]:
                o.pop(other, None)
        elif ndim(value) > 0:
            explicit_grid(value, zero=name in ("alphas", "betas"))  # refuses invalid lists of parameters
            o[listed] = array(list(value), dtype=float).ravel().tolist()
            for other in (name, *ENDS[name]):
                o.pop(other, None)
        else:
            o[name] = _counted(name, value)
    if not o.get("log"):
        o.pop("lambda_min_ratio", None)
    if "alpha" not in o:
        o.pop("references", None)
    if o.get("chunk") is None:
        o.pop("chunk_form", None)
    for name in set(PARAMETERS["poly"]).difference(PARAMETERS.get(str(o.get("kernel")), ())):
        o.pop(name, None)
    if not isinstance(gamma := o.get("gamma", SCALE), str) or gamma != SCALE:  # an array has no single truth
        o["gamma"] = repr(parse_gamma(o["gamma"], width))
    if "dtype" in o:
        o["dtype"] = stored_type(o["dtype"]).name
    return o


def _counted(name: str, value) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool):
        what = f"{name}={value!r} is no number of grid points or a list of values"
        raise UsageError(what, f"write {name}=[0.1] for a single value, {name}=100 for 100 values")
    if value < 1:
        raise UsageError(f"a grid needs at least 1 point, not {value}", f"use `{name}=N` with N >= 1")
    return int(value)
