"""The inequality of one step of a certificate with its numbers, for people."""

from __future__ import annotations

import math

import numpy as np

from screenpath.errors import UsageError
from screenpath.verify import Verification
from screenpath.verify.certificate import Pair
from screenpath.verify.file import PARAMETERS
from screenpath.verify.model import REGRESSIONS

WIDTH = 54  # of the texts beside numbers


def explained(found: Verification, step: int) -> list[str]:
    """Return lines with the terms of a step's primal and dual value and of its gap, the tolerance, and the verdict.

    The gap is proven: an upper bound, all rounding counted. What is said of the dual value follows from it.
    """
    pair = found.pairs.get(step)
    if pair is None:
        if step not in found.unclaimed:
            raise UsageError(f"there is no step {step}", f"the path has the steps 0 to {found.steps - 1}")
        return [f"step {step}: the run does not call it certified, it claims nothing"]
    if not isinstance(pair, Pair):
        what = "`explain` prints one inequality, and one-vs-one has one for each pair of labels"
        raise UsageError(what, "leave it out")
    return list(_lines(pair, found.tol, [reason for number, reason in found.faults if number == step]))


def _lines(pair: Pair, tol: float, faults: list[str]):
    entry, model, (value, off), gap = pair.entry, pair.model, pair.primal, pair.gap
    most, losses, dual = tol * (value - off), pair.ratio * sum(pair.losses), value - gap
    over = " / s_k" if model.box and "weights" in model.header else ""  # whose theta_k is times the weight
    linear = f"(c_k theta_k - {0.5 * model.curve:g} theta_k^2{over})" if model.curve else "c_k theta_k"
    own, times = ("lambda ||w||_1", "") if model.own else ("alpha/2 ||w||^2 + beta ||w||_1", "1/s ")
    own, times = ("1/2 ||w||^2", "C ") if model.box else (own, times)
    where = ", ".join(f"{name} = {entry[name]!r}" for name in PARAMETERS if name in entry)
    yield f"step {entry['step']} of {model.name}: {where}"
    yield f"{'where':<10}{_rows(model)}"
    yield f"{'':<10}{_losses(model)}"
    yield _line("primal", f"P = {own} + {times}sum_k loss_k", value, f"off by at most {off:.2g}")
    yield _line("", own, pair.penalty[0])
    yield _line("", f"{times}sum_k loss_k", losses)
    yield _line("dual", f"D = {times}sum_k {linear} - h(u)", dual, "P - G")
    if pair.alpha:
        conjugate = float(pair.penalty[0])  # behind a kernel w is u
        if not model.kernel:
            beyond = np.maximum(model.outward(pair.u[0] + pair.u[1]) - pair.beta, 0.0)
            conjugate = float(np.sum(beyond**2) / (2.0 * pair.alpha))
        yield _line("", f"{times}sum_k {linear}", dual + conjugate)
        yield _line("", "h(u)", conjugate)
    else:
        yield f"{'':<10}of the dual point times the factor that makes all |u_j| <= beta"
    ends = "at their lower end", "at their upper end", "between"
    for name, (low, high) in zip(ends, pair.counts.values(), strict=True):
        yield f"{'':<10}{f'dual variables {name}':<{WIDTH}}{low if low == high else f'{low} to {high}':>20}"
    yield _line("gap", "G = P - D, at most", gap, f"claimed {entry['gap']:.6g}")
    if not model.own:  # whose dual point is scaled to its best
        yield _line("", "rows: losses above the tangents of theta", pair.term)
        yield _line("", "features: w apart from what theta makes", pair.columns[0])
    if model.free:
        yield _line("", "intercept: to make the sum of a_k theta_k 0", pair.costs[0])
    yield _line("tolerance", f"{tol:g} P, rounding taken off", most)
    yield f"{'verdict':<10}G {'<=' if gap <= most else '> '} tol P: " + ("; ".join(faults) or "the step holds")
    if model.box and not model.free:
        yield f"{'':<10}{pair.claims:,} rows are claimed to be at their end in the optimum"


def _rows(model) -> str:
    """Return what ``t_k`` is."""
    b, a = (" + b", "; a_k is the sign of x_k in it") if model.free else ("", "")
    if model.nodes > 1:
        return "t_k = 1 - x.(w_y - w_c) of each row and each class c but its own, y"
    if model.loss == "svr":
        size = f"{model.header['epsilon']:g}"
        return f"t_k = y - x.w{b and ' - b'} - {size} and t_k = x.w{b} - y - {size} of each row{a}"
    if model.loss in REGRESSIONS:
        return f"t_k = y_k - x_k.w{b and ' - b'}"
    return f"t_k = 1 - y_k (x_k.w{b}), y_k = 1 or -1{a}"


def _losses(model) -> str:
    """Return what ``loss_k`` is."""
    ends = f"of at least {model.lo:g}" if math.isinf(model.hi) else f"from {model.lo:g} to {model.hi:g}"
    square = f" - {0.5 * model.curve:g} theta_k^2" if model.curve else ""
    weights = ", times the weight of the row" if "weights" in model.header else ""
    total = "; s is the sum of the weights" if model.net else ""
    return f"loss_k = the largest theta_k t_k{square} for theta_k {ends}{weights}{total}"


def _line(head: str, text: str, value: float, more: str = "") -> str:
    return f"{head:<10}{text:<{WIDTH}}{value:>20.12g}  {more}".rstrip()
