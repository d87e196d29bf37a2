"""Declared options as keywords in Python: signatures, and the lines that documentation has for each.

Nothing here imports numpy.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable

from screenpath.catalogue.option import GROUPS, Option
from screenpath.catalogue.spec import Spec

TYPES = {
    "whole": "int", "number": "float", "positive": "float", "share": "float", "choice": "str", "flag": "bool",
    "numbers": "Sequence[float]", "size": "int | str", "text": "str",
}  # fmt: skip
NAMED = re.compile(r"(?<!`)`([^`]+)`(?!`)")
SECTION = re.compile(r"\n\n(?=[A-Z][a-z]+\n-+\n)")


def keywords_of(spec: Spec, *takers: str) -> tuple[Option, ...]:
    """Return the options of a model that are keywords of the functions ("paths") and estimators ("models")."""
    own = [one.keyword for one in spec.path_options if one.python in takers]
    bias = not spec.free_bias  # a model with an intercept of its own has no other
    return tuple(sorted((one for one in own if one.name != "bias" or bias), key=lambda one: GROUPS.index(one.group)))


def typed(keyword: Option) -> str:
    """Return the type of a keyword as a signature has it."""
    found = keyword.type or TYPES[keyword.kind]
    return f"{found} | None" if keyword.default is None and found != "Any" else found


def parameters(keywords: Iterable[Option], kind=inspect.Parameter.KEYWORD_ONLY) -> list[inspect.Parameter]:
    """Return keywords as the parameters of a signature."""
    return [inspect.Parameter(one.name, kind, default=one.default, annotation=typed(one)) for one in keywords]


def entry(keyword: Option) -> str:
    """Return what the section of parameters says about a keyword."""
    choices = ", ".join(f'"{name}"' for name in keyword.choices)
    what = f"{{{choices}}}" if choices else keyword.type or TYPES[keyword.kind]
    default = "optional" if keyword.default is None else f"default {keyword.default!r}"
    said = NAMED.sub(r"``\1``", keyword.about or keyword.help)
    lines = textwrap.wrap(said, 110, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return "\n".join([f"{keyword.name} : {what}, {default}", *lines])


def documented(text: str | None, keywords: Iterable[Option], before: str = "", behind: str = "") -> str:
    """Return a docstring with its parameters, ``before`` them others, and the sections ``behind`` them."""
    summary, *rest = SECTION.split(inspect.cleandoc(text or ""), maxsplit=1)
    entries = "\n".join(filter(None, (before, *map(entry, keywords))))
    return "\n\n".join(filter(None, (summary, f"Parameters\n----------\n{entries}", behind, *rest))) + "\n"
