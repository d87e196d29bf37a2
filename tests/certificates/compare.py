"""Both checkers side by side: ``screenpath verify``, in doubles, and ``examples/certificate/check.py``, exact.

Where they differ, one of these is the reason, or one of them is wrong:

- the claim is true, and so close to false that doubles cannot prove it: if it claims a little less, they do;
- a number is so large or small that doubles do not hold its products;
- numbers are irrational, and the tolerance is so small that the ends between which they lie are too far apart;
- a free intercept asks for sums that are 0, and those of the step are far from it (no run writes such a step).
"""

from __future__ import annotations

import importlib.util
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

from screenpath.errors import ScreenpathError
from screenpath.verify import check as judge
from screenpath.verify.file import read_certificate
from tests.conftest import ROOT

FILE = ROOT / "examples" / "certificate" / "check.py"
MORE = 1e-9  # by how much a claim is widened, relative to the primal value
LARGE, SMALL, TIGHT = 1e20, 1e-100, 1e-50
FAR = Fraction(1, 1 << 40)  # part of the sum of all dual variables that rounding does not leave of it


def irrational(problem) -> bool:
    """Tell whether a problem has numbers that lie between two fractions."""
    return problem.header["scaling"] == "l2" or (problem.kernel or {}).get("kernel") == "rbf"


def _loaded():
    spec = importlib.util.spec_from_file_location("certificate_check", FILE)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


exact = _loaded()


def by_verify(path: Path, data: Path):
    """Return the faults by step, those that claim nothing, and why the whole is refused."""
    try:
        header, steps = read_certificate(path)
        found = judge(header, steps, data)
    except ScreenpathError as error:
        return {}, [], str(error)
    faults: dict = {}
    for k, fault in found.faults:
        faults.setdefault(k, []).append(fault)
    return faults, found.unclaimed, str(faults.pop(None, ""))


def by_fractions(content: bytes, data: Path):
    """Return the same of the second checker, and its steps."""
    try:
        _, entries, steps, faults = exact.certified(content, data)
    except Exception as error:
        return {}, [], f"{type(error).__name__}: {error}", {}
    return dict(faults), [entry["step"] for entry in entries if entry["status"] != "certified"], "", steps


def difference(content: bytes, data: Path, scratch: Path) -> str:
    """Return in which way the verdicts differ that must not be; nothing if none does."""
    scratch.write_bytes(content)
    one, claimless, whole = by_verify(scratch, data)
    two, nothing, refused, steps = by_fractions(content, data)
    verdict = "refused" if whole else f"{one or 'holds'}"
    other = "refused" if refused else f"{two or 'holds'}"
    if whole or refused:
        accepted = not (whole or one) or not (refused or two)
        return f"verify: {whole or verdict}; check: {refused or other}" if accepted else ""
    if any(irrational(step.problem) and step.problem.tol < TIGHT for step in steps.values()):
        return ""
    if claimless != nothing or set(two) - set(one):
        return f"verify: {verdict}; check: {other}"
    left = [k for k in set(one) - set(two) if not _far(steps[k])]
    if left:
        header, entries = read_certificate(scratch)
        if _extreme([header, entries]):
            return ""
        left = sorted(set(_widened(header, entries, data)) & set(left))
    return f"verify: { ({k: one[k] for k in left}) }; check: {other}" if left else ""


def _far(step) -> bool:
    """Tell whether the sum that a free intercept wants to be 0 is further from it than rounding leaves it."""
    if not step.problem.free:
        return False
    parts = [d.sides[0] * d.v * x for d, x in zip(step.problem.duals, step.theta, strict=True)]
    return not abs(sum(parts)) <= FAR * sum(map(abs, parts))


def _extreme(value) -> bool:
    """Tell whether nested dicts, lists and arrays hold a number that is very large, or very small and not 0."""
    if isinstance(value, np.ndarray):
        return any(map(_extreme, value.tolist()))
    if isinstance(value, dict | list):
        return any(map(_extreme, value.values() if isinstance(value, dict) else value))
    return type(value) in (int, float) and value != 0 and not SMALL < abs(value) < LARGE


def _widened(header: dict, entries: list, data: Path) -> list:
    """Return the steps that do not hold by ``verify`` even if they claim a little less."""
    header = {**header, "tol": header["tol"] * (1.0 + MORE) + 3.0 * MORE}
    entries = [
        {**entry, "gap": entry["gap"] * (1.0 + MORE) + MORE * abs(entry["primal"])} if "gap" in entry else entry
        for entry in entries
    ]
    return [k for k, _ in judge(header, entries, data).faults]


def truth(data: Path):
    """Return a function of a certificate's bytes: primal value and gap of every step."""

    def found(content: bytes):
        steps = by_fractions(content, data)[3]
        values = {}
        for k, step in steps.items():
            gaps = [] if step.fault else [exact.ends(step.gap(theta))[1] for theta in step.completed()]
            values[k] = (exact.ends(step.P)[1], min(gaps)) if gaps else None
        return values or None

    return found
