"""What an option is: data for a flag of the shell, a keyword in Python, a line of help and an error.

Nothing here imports numpy: lists of commands and their help stay quick.
"""

from __future__ import annotations

import difflib
import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from screenpath.data.safe.memory import parse_bytes
from screenpath.data.safe.plugins import plugin_of
from screenpath.data.words.numerals import number_of, same_number
from screenpath.errors import UsageError, brief

# Headings of the help, in order.
GROUPS = (
    "problem", "data", "grid", "screening and solver", "cross-validation", "output", "limits", "cluster",
)  # fmt: skip


RENAMED = {"weights": "sample_weight"}  # scikit-learn's name for a keyword that is an array
LISTS = {"grid": ("c_list", "lambda_list"), "betas": ("beta",), "alphas": ("alpha",)}  # options of lists of values
# Names that scikit-learn, pandas and LIBSVM have for an option; the first of several that a command has is meant.
ELSEWHERE = {
    "cv": "folds", "v": "folds", "n_jobs": "jobs threads", "scoring": "score", "C": "c step c_list", "c": "step c_list",
    "Cs": "c_list", "g": "gamma", "fit_intercept": "intercept", "sample_weight": "weights", "groups": "group_column",
    "e": "tol", "max_iter": "max_epochs", "random_state": "seed", "y": "target", "label": "target", "labels": "target",
    "impute": "missing", "na_values": "na", "sep": "delimiter", "index_col": "id", "usecols": "columns",
    "proba": "calibrate decision", "probability": "calibrate decision", "decision_function": "decision",
    **dict.fromkeys(("overwrite", "replace", "clobber"), "force"), "continue": "resume", "verbose": "progress",
    **dict.fromkeys(("output", "output_dir", "out_dir", "save"), "out"), "timeout": "time_limit", "weight": "weights",
    **dict.fromkeys(("scaling", "normalize", "standardize", "standardise"), "scale"), "target_column": "target",
    **dict.fromkeys(("n_folds", "k", "loo"), "folds"), **dict.fromkeys(("test_data", "test_file"), "test"),
    "cost": "c step c_list", "lambda": "lambda_list beta", "tolerance": "tol", "eps": "tol", "epochs": "max_epochs",
    "kernel_type": "kernel", "n_threads": "threads",
}  # fmt: skip
PART = re.compile("([0-9]{1,9})/([0-9]{1,9})")


@dataclass(frozen=True)
class Option:
    name: str  # as in Python; the shell writes ``--name`` with dashes
    default: Any = None  # None if the shell must know that nothing was given: ``usual`` then has its value
    # number, positive, share (between 0 and 1), whole (or one of ``choices``), choice, choices (joined by commas),
    # constraint (a choice and its least value), flag, switch (a flag that can be turned off), numbers, size, path,
    # part, text, texts (may be given often), names (texts joined by commas), label, plugin (a name, or your class)
    kind: str = "text"
    help: str = ""  # text in the shell
    least: int | None = None  # of a whole number
    most: int | None = None
    ends: tuple[bool, ...] = (False, False)  # of a share: whether 0 and 1 themselves are valid
    choices: tuple[str, ...] = ()
    never: tuple[str, ...] = ()  # a choice that others have: its name, why there is none here, and a hint
    metavar: str | None = None  # placeholder of the value in the help
    short: str | None = None  # short flag
    stated: bool = False  # whether the help shows the default (a default of None is part of the text)
    changes: bool = False  # whether it changes the numbers, so that ``resume`` compares it
    group: str = "problem"  # its heading in the help, one of ``GROUPS``
    everyday: bool = False  # whether ``--help`` shows it, by the first sentence of ``help``; else ``--help-all`` alone
    valid: Callable | None = None  # of a number: ``valid(value)``
    demand: str = ""  # what it must be
    hint: str | None = None  # what to write instead
    usual: Any = None  # the value if nothing is given and ``default`` is None
    # where it is a keyword, besides `run` and `cross_validate`, which have all: "paths", the functions of arrays
    # (``api.paths``); "models", these and the estimators (``screenpath.sklearn``)
    python: str = ""
    type: str = ""  # of the keyword in a signature, if ``kind`` does not determine it
    about: str = ""  # the keyword's documentation, if ``help`` is about flags

    @property
    def said(self) -> str:
        """Return the help, with the usual value if the default is None."""
        usual = f"{self.usual:g}" if isinstance(self.usual, float) else self.usual
        return self.help if usual is None else f"{self.help}  [default: {usual}]"

    @property
    def keyword(self) -> Option:
        """Return the option for functions of arrays and estimators: its default is a value, never None."""
        default = self.usual if self.default is None else None if self.default == () else self.default
        return replace(self, name=RENAMED.get(self.name, self.name), default=default, usual=None)

    def refuse(self, value) -> None:
        """Raise a UsageError with the reason if other programs have such a choice and this one cannot."""
        if self.never and isinstance(value, str) and value == self.never[0]:
            _, why, hint = self.never
            raise UsageError(why, hint)

    def checked(self, value):
        """Return a value as the library needs it, None as the default; a :class:`UsageError` says what it must be."""
        if value is None and (self.default is None or self.kind == "texts"):
            return self.default
        self.refuse(value)
        try:
            found = CHECKS[self.kind](self, value)
        except (TypeError, ValueError, AttributeError, OverflowError):
            found = None
        if found is None:
            raise UsageError(f"`{self.name}` {self._must()}, not {brief(value)}", self.hint)
        return found

    def _must(self) -> str:
        if self.demand:
            return self.demand
        if self.kind == "whole":
            least = f" of at least {self.least}" if self.least is not None else ""
            most = f" and at most {self.most}" if self.most is not None else ""
            return " or ".join([f"must be a whole number{least}{most}", *self.choices])
        if self.kind == "choice":
            return f"must be one of {', '.join(self.choices)}"
        if self.kind == "choices":
            return f"must be one or several of {', '.join(self.choices)}, joined by commas"
        return {
            "constraint": f"must be one of {', '.join(self.choices)} with its least value, such as recall=0.9",
            "number": "must be a finite number", "positive": "must be a positive number",
            "share": "must lie between 0 and 1", "flag": "is True or False", "switch": "is True, False or None",
            "numbers": "must be a list of numbers", "size": "must be an amount of memory",
            "path": "must be the name of a file or folder",
            "texts": "must be a text, or a list of texts", "part": "must be I/K with I from 1 to K, such as 2/5",
        }.get(self.kind, "must be a text")  # fmt: skip


def _whole(option: Option, value):
    if value in option.choices:  # a word in place of a number
        return value
    number = int(value) if option.choices and isinstance(value, str) else operator.index(value)
    right = not isinstance(value, bool) and (option.least is None or number >= option.least)
    return number if right and (option.most is None or number <= option.most) else None


def _number(option: Option, value):
    number = float(value)
    right = math.isfinite(number) and (option.kind != "positive" or number > 0.0)
    return number if right and (option.valid is None or option.valid(number)) else None


def _share(option: Option, value):
    number = float(value)
    inside = 0.0 < number < 1.0 or (number == 0.0 and option.ends[0]) or (number == 1.0 and option.ends[1])
    return number if inside else None


def _choice(option: Option, value):
    name = getattr(value, "name", None) or getattr(value, "__name__", value)  # types of numpy
    if callable(value) and "Callable" in option.type:
        return value
    return name if name in option.choices else None


def _choices(option: Option, value):
    names = [name.strip() for name in (value.split(",") if isinstance(value, str) else value)]
    return ",".join(names) if names and len(set(names).intersection(option.choices)) == len(names) else None


def _constraint(option: Option, value):
    name, _, least = value.partition("=")
    good = name.strip() in option.choices and 0.0 < number_of(least) <= 1.0
    return f"{name.strip()}={number_of(least):g}" if good else None


def part_numbers(text: str) -> tuple[int, int] | None:
    """Return I and K of a part I/K; None if it is none."""
    found = PART.fullmatch(text)
    number, parts = (int(found[1]), int(found[2])) if found else (0, 0)
    return (number, parts) if 1 <= number <= parts else None


def _text(option: Option, value):
    return None if value is None else str(value)  # 'none' has another meaning


def _label(option: Option, value):
    if isinstance(value, bool):
        return str(value)
    try:
        number = number_of(value) if isinstance(value, str) else float(value)
    except ValueError:
        return str(value)
    exact = same_number(value.strip(), repr(number)) if isinstance(value, str) else value == number
    return number if math.isfinite(number) and exact else str(value)  # float64 may confuse it with another label


def _texts(option: Option, value):
    if isinstance(value, Mapping):  # weights of labels
        whole = [isinstance(label, int) and label != float(label) for label in value]  # beyond float64
        names = [
            label if isinstance(label, str) else str(label) if beyond else repr(float(label))
            for label, beyond in zip(value, whole, strict=True)
        ]
        return tuple(f"{name}={float(weight)!r}" for name, weight in zip(names, value.values(), strict=True))
    found = (value,) if isinstance(value, str) else tuple(value)
    return found if all(isinstance(one, str) for one in found) else None


CHECKS: dict[str, Callable] = {
    "whole": _whole, "number": _number, "positive": _number, "share": _share, "choice": _choice, "choices": _choices,
    "constraint": _constraint, "text": _text, "texts": _texts, "label": _label,
    **dict.fromkeys(("flag", "switch"), lambda _, value: bool(value) if value in (True, False) else None),
    "numbers": lambda _, value: [float(one) for one in (value.split(",") if isinstance(value, str) else value)],
    "size": lambda _, value: parse_bytes(value) if isinstance(value, str) else operator.index(value),
    "path": lambda one, value: (
        value if one.type and hasattr(value, "__len__") and not isinstance(value, str | bytes)
        else os.fsdecode(value) or None
    ),
    "part": lambda _, value: (found := part_numbers(value)) and f"{found[0]}/{found[1]}",
    "names": lambda one, value: _text(
        one, ",".join(map(str, value)) if isinstance(value, Iterable) and not isinstance(value, str) else value
    ),
    "plugin": lambda one, value: plugin_of(value) or _text(one, value),
}  # fmt: skip


def number(name: str, default: float, valid: Callable, demand: str, help: str, hint: str | None = None) -> Option:
    """Return a parameter of a loss: ``demand`` says what ``valid(value)`` requires."""
    return Option(
        name, default, "number", help, valid=valid, demand=demand, hint=hint, stated=True, changes=True, everyday=True,
        python="models",
    )  # fmt: skip


def completed(options: Iterable[Option], given: Mapping, what: str) -> dict:
    """Return the checked value of every option by name: the given one, or the default.

    A TypeError names unknown options, a :class:`UsageError` invalid values.
    """
    known = {one.name: one for one in options}
    for name in given:
        if name not in known:
            near = elsewhere(name, known) or difflib.get_close_matches(name, known, 1)
            raise TypeError(f"{what} has no option '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    given = _with_lists(known, given)
    return {name: one.checked(given[name]) if name in given else one.default for name, one in known.items()}


def elsewhere(name: str, known) -> list[str]:
    """Return the option of those known that other programs call ``name``, as a list of one; empty if none is."""
    return [one for one in ELSEWHERE.get(name, "").split() if one in known][:1]


def lists_of(known) -> dict[str, str]:
    """Return, of options that make a grid, the one that lists its values instead."""
    return {name: one for name, lists in LISTS.items() for one in lists if name in known and one in known}


def _with_lists(known: Mapping, given: Mapping) -> Mapping:
    """Return options in which a list of values for a grid has the name that lists have."""
    for name, listed in lists_of(known).items():
        value = given.get(name)
        if isinstance(value, Iterable) and not isinstance(value, str):
            if given.get(listed) is not None:
                raise UsageError(f"`{name}` and `{listed}` both list the values", f"leave out `{listed}`")
            given = {**{other: one for other, one in given.items() if other != name}, listed: value}
    return given


def usual(options: Iterable[Option], *names: str) -> tuple:
    """Return the values that these options have if they are not given."""
    values = {one.name: one.usual for one in options}
    return tuple(values[name] for name in names)


def grouped(group: str, *options: Option, **more) -> tuple[Option, ...]:
    """Return options under one heading, with what else they have in common."""
    return tuple(replace(one, group=group, **more) for one in options)
