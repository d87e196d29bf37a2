"""The screening rules of each model in a line each: what their declarations say."""

from __future__ import annotations

import inspect

from screenpath.catalogue.specs import spec_of
from screenpath.screen import KERNEL, STATIC
from screenpath.screen.l1svm import VariationalInequality
from screenpath.screen.pathwise import GUESSED
from screenpath.screen.sparse import RULES

NONE = "No screening: every grid point is solved with all rows and features."
GAP = "Ball of the current pair, by its duality gap, again and again while solving (dynamic)."
FREE = {False: " The intercept follows by levers.", True: " The intercept lies in an interval."}
SAID = {
    (True, True): "Samples and features in alternation, by balls of primal and dual (Hong 2019).",
    (True, False): "Samples alone, by the same balls.",
    (False, True): "Features alone, by the same balls.",
}


def _line(rule) -> str:
    return (inspect.getdoc(rule) or "").split("\n")[0].replace("``", "")


def rules_of(model: str, kernel: bool = False, free: bool = False) -> dict[str, str]:
    """Return the rules of a model, with a line about each.

    Every static rule also combines with ``+gap``: alone before each solve, with the gap inside it.

    Parameters
    ----------
    model : {"svm", "lad", "quantile", "svr", "l1svm", "sparse-svm"}
    kernel : bool, default False
        For ``svm``: with a kernel.
    free : bool, default False
        With a free intercept.

    Returns
    -------
    dict of str to str

    Raises
    ------
    UsageError
        For an unknown model.
    """
    spec_of(model)
    found = {"none": NONE, "gap": GAP}
    if model == "l1svm":
        return {**found, VariationalInequality.name: _line(VariationalInequality)}
    if model == "sparse-svm":
        return {**found, **{name: SAID[what] for name, what in RULES.items()}}
    for name, rule in STATIC.items():
        if not kernel or name in KERNEL:
            more = FREE[rule.needs_far_end] if free else ""
            found[name] = _line(rule) + more if rule.name == name else f"Another name of {rule.name}."
    return found if kernel else {**found, **{name: _line(rule) for name, rule in GUESSED.items()}}
