"""The inequality of one step of a certificate with its numbers, for people."""

from __future__ import annotations

import numpy as np

from screenpath.verify import Verification
from screenpath.verify.certificate import Pair
from screenpath.verify.file import PARAMETERS


def explained(found: Verification, step: int) -> list[str]:
    """Return lines with the terms of a step's primal and dual value and of its gap, the tolerance, and the verdict.

    The gap is proven: an upper bound, all rounding counted. What is said of the dual value follows from it.
    """
    pair = found.pairs.get(step)
    if pair is None:
        known = "the run does not call it certified, it claims nothing" if step in found.unclaimed else "there is none"
        return [f"step {step}: {known}"]
    return list(_lines(pair, found.tol, [reason for number, reason in found.faults if number == step]))


def _lines(pair: Pair, tol: float, faults: list[str]):
    entry, model, (value, off), gap = pair.entry, pair.model, pair.primal, pair.gap
    most, losses, dual = tol * (value - off), pair.ratio * sum(pair.losses), value - gap
    own, times, linear = _formulas(model)
    where = ", ".join(f"{name} = {entry[name]!r}" for name in PARAMETERS if name in entry)
    yield f"step {entry['step']} of {model.name}: {where}"
    yield _line("primal", f"P = {own} + {times}sum_k loss_k", value, f"off by at most {off:.2g}")
    yield _line("", own, pair.penalty[0])
    yield _line("", f"{times}sum_k loss_k", losses)
    yield _line("dual", f"D = {times}sum_k {linear} - h(u)", dual, "P - G")
    if pair.alpha:
        conjugate = _conjugate(pair)
        yield _line("", f"{times}sum_k {linear}", dual + conjugate)
        yield _line("", "h(u)", conjugate)
    else:
        yield f"{'':<10}of the dual point times the factor that makes all |u_j| <= beta"
    ends = "at their lower end", "at their upper end", "between"
    for name, (low, high) in zip(ends, pair.counts.values(), strict=True):
        yield f"{'':<10}{f'dual variables {name}':<48}{low if low == high else f'{low} to {high}':>20}"
    yield _line("gap", "G = P - D, at most", gap, f"claimed {entry['gap']:.6g}")
    if not model.own:  # whose dual point is scaled to its best
        yield _line("", "rows: losses above the tangents of theta", pair.term)
        yield _line("", "features: w apart from what theta makes", pair.columns[0])
    if model.free:
        yield _line("", "intercept: what is left of the sum of theta", pair.costs[0])
    yield _line("tolerance", f"{tol:g} P, rounding taken off", most)
    yield f"{'verdict':<10}G {'<=' if gap <= most else '> '} tol P: " + ("; ".join(faults) or "the step holds")
    yield f"{'':<10}{pair.claims:,} rows are claimed to be at their end in the optimum"


def _formulas(model) -> tuple[str, str, str]:
    """Return the penalty, what the losses are multiplied by, and a dual variable's part of the dual value."""
    linear = "(c_k theta_k - curve/2 theta_k^2)" if model.curve else "c_k theta_k"
    if model.box:
        return "1/2 ||w||^2", "C ", linear
    return ("lambda ||w||_1", "", linear) if model.own else ("alpha/2 ||w||^2 + beta ||w||_1", "1/s ", linear)


def _conjugate(pair: Pair) -> float:
    """Return ``h(u)`` of a penalty with a ridge; behind a kernel w is u."""
    if pair.model.kernel:
        return float(pair.penalty[0])
    u, rest, _ = pair.u
    return float(np.sum(np.maximum(pair.model.outward(u + rest) - pair.beta, 0.0) ** 2) / (2.0 * pair.alpha))


def _line(head: str, text: str, value: float, more: str = "") -> str:
    return f"{head:<10}{text:<48}{value:>20.12g}  {more}".rstrip()
