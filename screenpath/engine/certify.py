"""How far is a model made elsewhere from the optimum? Its gap, by a dual point that is found here.

The primal point is theirs, evaluated on the full data with rounding counted. The dual point is that of their residuals;
where it proves too little, that of the problem solved here. The objective is strongly convex in the penalised weights:
the optimum lies in a ball around the solution, by whose gap the radius is known, and over this ball the linear form of
a row lies in an interval.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum, inf, isfinite, nan, sqrt
from typing import Any

import numpy as np

from screenpath.catalogue.elastic import SPARSE_SVM
from screenpath.catalogue.option import RENAMED, completed
from screenpath.catalogue.options import WAYS
from screenpath.catalogue.scores import pairs_of
from screenpath.catalogue.specs import SPECS
from screenpath.data.safe.memory import MemoryLimit
from screenpath.engine.options import certify_options
from screenpath.engine.path import Path
from screenpath.engine.saved import SavedSession, Silent
from screenpath.errors import DataError, UsageError
from screenpath.inputs.foreign import L1, SQUARED, Foreign, names_of, of_estimator, places_of, problems_of, read_foreign
from screenpath.inputs.load import load_training
from screenpath.numbers import accurate
from screenpath.numbers import sparse as sp
from screenpath.numbers.rounding import OUTWARD, UNIT, gamma
from screenpath.walk.step import at_point, verdict

ROUGH = 1e-6  # default of tol behind a kernel, where solves take longer
EXACT = 2.0**-52  # tolerance of a certificate without a gap
ROUNDED = 2.0**-40  # part of the dual variables that rounding may have moved
WIDER = 1e-9  # part by which balls and intervals are made larger, for the rounding of their own numbers


@dataclass(frozen=True)
class CertifiedModel:
    """What is proven about a model made elsewhere, in numbers of its own objective, rounding counted."""

    name: str
    objective: str  # what the model was to minimise
    value: float  # upper bound of its objective
    lowest: float  # lower bound of the optimum
    gap: float  # upper bound of how far its objective is from the optimum
    rel_gap: float  # that of the gap over the objective
    nearest: float = nan  # bounds of the distance of its weights from the optimal ones; nan without a ridge
    farthest: float = nan
    norm: float = nan  # of the optimal weights
    same: int = 0  # rows whose label is proven to be that by the optimum,
    other: int = 0  # another,
    open: int = 0  # or neither
    change: float = nan  # of a regression: bound of the difference of any row's value from that by the optimum
    accurate: bool = True  # whether the dual point is as good as was asked for
    folder: str | None = None  # run folder with the certificate
    pairs: tuple[CertifiedModel, ...] = ()  # of pairs of labels; bounds above are of their sums, rel_gap is the worst

    def record(self) -> dict:
        """Return the attributes as numbers and texts that JSON has; None for what is not known."""
        found = {name: None if value != value else value for name, value in vars(self).items()}
        found["pairs"] = [one.record() for one in self.pairs]
        return {"schema_version": 1, **{name: value for name, value in found.items() if name != "pairs" or value}}

    @property
    def labels(self) -> str:
        """Return what is known of labels, or of the values of a regression, in words."""
        rows = self.same + self.other + self.open
        if not rows:
            return f"values within {self.change:.3g} of the optimum's" if isfinite(self.change) else "not bounded"
        return f"{self.same:,} of {rows:,} as by the optimum, {self.other:,} other, {self.open:,} open"

    def __str__(self) -> str:
        far = f"{self.nearest:.4g} to {self.farthest:.4g} from the optimum's, whose norm is {self.norm:.4g}"
        part = f"the sum of {len(self.pairs)} pairs; the worst pair has " if self.pairs else ""
        part += f"{self.rel_gap:.3g} of {'its' if self.pairs else 'the'} value"
        lines = {
            "model": self.name,
            "objective": self.objective,
            "value": f"at most {self.value:.10g}; the optimum is at least {self.lowest:.10g}",
            "gap": f"{self.gap:.4g}, {part}" + (1 - self.accurate) * "; tol was not reached",
            "weights": far if isfinite(self.farthest) else "not bounded: the objective has no ridge",
            "labels": self.labels,
            **{f"pair {k}": f"{one.gap:.4g}, {one.rel_gap:.3g} of the value: {one.name}"
               for k, one in enumerate(sorted(self.pairs, key=lambda one: -one.rel_gap), 1)},
            **({} if self.folder is None else {"certificate": self.folder}),
        }
        return "\n".join(f"{name:<12} {text}" for name, text in lines.items())


class ForeignProblem:
    """A problem: data, model, and the solution found here.

    ``given`` has the options of the model's path and ``data``; ``C`` in place of its grid, None where ``alpha`` and
    ``beta`` are given. ``penalty``, l2 or l1, is that of a squared hinge whose losses are multiplied by ``C``.
    """

    def __init__(self, name: str, given: dict, penalty: str | None = None):
        data, C = given.pop("data"), given.pop("C")
        self.options = {**SPECS[name].completed(given), "data": data}
        self.spec = SPECS[name].resolved(SPECS[name], self.options)
        # Ways to tell several labels apart that are not in use are not advised either: they are no options here.
        asked = {key: value for key, value in self.options.items() if key not in WAYS or value}
        self.data = load_training(self.spec, asked)
        self.index: np.ndarray | None = None  # the rows of a pair of labels among those of the data
        if "classes" in (self.data.labels or {}) and not self.options.get("one_vs_one"):
            raise UsageError("the data have more than two labels", "choose one against the rest: `positive=LABEL`")
        self.sparse, self.C, self.penalty, self.factor = name == SPARSE_SVM.name, C, penalty, 1.0
        values = [C] if not self.sparse else [*(self.options["alpha"] or ()), *(self.options["beta"] or ())]
        if self.sparse and penalty is not None and C is not None:
            n = float(self.data.shape[0] if self.data.weights is None else np.sum(self.data.weights))
            self.factor = 2.0 * C * n
            values = [0.0, 1.0 / self.factor] if penalty == L1 else [1.0 / self.factor, 0.0]
        if None in values or len(values) != 1 + self.sparse:
            by_C = not self.sparse or penalty is not None and not values
            missing = "`c=VALUE`" if by_C else "`alpha` and `beta`, one value each"
            raise UsageError("the model does not tell all of its problem", f"add {missing}")
        self.parameter: Any = tuple(values) if self.sparse else C
        self.options |= {"alpha": values[:1], "beta": values[1:]} if self.sparse else {"c": C}
        self.path = Path.of(self.spec, self.options, self.data, [self.parameter])
        self.model: Any = self.path.model
        self.row, self.first = (self.model.row(values[1]) if self.sparse else self.model), values[0]
        self.free, self.tol = self.options.get("intercept") == "free", self.options["tol"]

    @cached_property
    def best(self):
        """Return the certificate of the solution found here."""
        return next(iter(self.path.walk()))[1]

    @cached_property
    def pairs_of_labels(self) -> list[ForeignProblem]:
        found, classes = [], (self.data.labels or {})["classes"]
        spec = SPECS["svm"].resolved(SPECS["svm"], {**self.options, "one_vs_one": False})
        for model, index, (one, other) in zip(self.model.parts, self.model.places, pairs_of(classes), strict=True):
            pair = copy.copy(self)
            pair.spec, pair.model, pair.row, pair.index = spec, model, model, index
            shape, labels = (index.size, *self.data.shape[1:]), {"+1": one, "-1": other}
            pair.data = replace(self.data, rows=model.rows, labels=labels, shape=shape)
            pair.path = replace(self.path, model=model, shared=None, screening=copy.deepcopy(self.path.screening))
            found.append(pair)
        return found

    # -- their point ---------------------------------------------------------------------------------------------

    def point(self, given: Foreign) -> tuple[np.ndarray, float, float]:
        """Return weights as the model has them, the free intercept, and how far the forms of rows are moved by this."""
        p = self.data.preparation
        weights, b, _ = given.row(self.data.labels)
        w = given.spread(weights, self.data.shape[1], self.data.names)
        if p.columns is not None:
            if np.count_nonzero(w) > np.count_nonzero(w[p.columns]):
                raise DataError(f"{given.name} has weights of features that are 0 in all rows", "set them to 0")
            w = w[p.columns]
        if self.free:
            return w, *((b, 0.0) if p.shift is None else accurate.inner(p.shift, w, b))
        if p.bias:
            return np.append(w, b / p.bias), 0.0, 0.0 if p.bias == 1.0 else 4.0 * UNIT * abs(b)
        if b != 0.0:
            raise UsageError(f"{given.name} has an intercept", "tell its kind: `intercept=free`, or `bias=B`")
        return w, 0.0, 0.0

    def duals(self, given: Foreign) -> tuple[np.ndarray, float]:
        """Return the dual point of a kernel model, and its intercept."""
        assert given.duals is not None
        (places, coefficients), (_, b, sign) = given.duals, given.row(self.data.labels)
        if sp.issparse(places):
            signs = np.ones(coefficients.size) if self.data.labels is None else np.sign(sign * coefficients)
            places = self.places(given.name, places, signs)
        elif self.index is not None:
            among = np.full(int(max(self.index.max(), places.max(initial=0))) + 1, -1)
            among[self.index] = np.arange(self.index.size)
            places = among[places]
            if np.any(places < 0):
                raise DataError(f"{given.name} has support vectors of other labels", "pass the data it was fitted to")
        if self.model.mirrored:
            places = places + self.model.rows.n * (coefficients < 0.0)
        theta = np.zeros(self.model.size)
        theta[places] = sign * coefficients * self.model.signs[places] / self.first
        inside = np.clip(theta, self.model.lo, self.model.hi)
        if np.any(np.abs(inside - theta) > 8.0 * UNIT * self.model.hi):
            most = float(np.max(np.abs(coefficients)))
            what = f"{given.name} has dual variables that are not from 0 to C: the largest is {most!r}"
            raise DataError(what, "check `c`, weights and data")
        return inside, b

    def far_from_constant(self, given: Foreign, b: float) -> float:
        """Return how far the intercept of a kernel model is from that of the constant in its kernel."""
        assert given.duals is not None
        coefficients, constant = given.duals[1], self.data.rows.blocks.function.constant
        far = abs(b - constant * given.row(self.data.labels)[2] * fsum(coefficients))
        if far > gamma(coefficients.size + 16) * constant * float(np.abs(coefficients).sum()):
            kind = "`intercept=free`" if constant else "`intercept=free`, or `bias=B`"
            raise UsageError(f"{given.name} has another intercept than this problem", f"tell its kind: {kind}")
        return 2.0 * far + 8.0 * UNIT * abs(b)

    def places(self, name: str, vectors, wanted: np.ndarray) -> np.ndarray:
        """Return which rows of the data support vectors are; ``wanted`` are the signs of their labels."""
        own, p = sp.csr_array(self.data.rows.blocks.rows), self.data.preparation
        numbers = own.indices if p.columns is None else p.columns[own.indices]
        rows = sp.csr_array((own.data, numbers, own.indptr), shape=(own.shape[0], self.data.shape[1]))
        rows = rows if self.index is None else sp.csr_array(rows[self.index])
        return places_of(name, vectors, rows, self.data.rows.signs, wanted)

    def pairs(self, given: Foreign) -> tuple[list, float]:
        """Return certificates of their primal point, one for each dual point tried; how far its forms are moved."""
        if given.duals is not None:
            theta, b = self.duals(given)
            if self.free:
                return [self.model.certify(self.first, None, theta, intercept=b)], 0.0
            return [self.model.certify(self.first, None, theta)], self.far_from_constant(given, b)
        w, b, moved = self.point(given)
        more = {"intercept": b} if self.free else {}
        near = None if self.sparse else self.model.corner(self.model.margins(w))[0]
        found = [self.row.certify(self.first, w, near, **more)]
        if not found[0].rel_gap <= self.tol:
            reference = None if self.sparse else self.best
            found.append(self.row.certify(self.first, w, self.best.theta, reference, **more))
        return found, moved

    def ends(self, certificate) -> tuple[float, float]:
        """Return bounds of the objective of a pair's primal point.

        That of a squared hinge is known as one of a smoothed hinge, which is less where it is above the value at 0.
        """
        row, w = self.row, getattr(certificate, "w", np.empty(0))
        if not (self.sparse and row.squared and certificate.highest > row.null_loss):
            return certificate.primal - certificate.primal_error, certificate.highest
        forms, depth = row.labels * certificate.scores, gamma(w.size + row.n + 16)
        error = depth * (np.sqrt(row.views.row_sqnorms) * float(np.linalg.norm(w)) + np.abs(forms) + 1.0)
        penalty = 0.5 * certificate.alpha * float(w @ w) + row.beta * float(np.abs(w).sum())
        losses = (row.given @ np.square(np.maximum(1.0 - forms + e, 0.0)) for e in (-error, error))
        low, high = (0.5 * float(loss) / float(row.given.sum()) + penalty for loss in losses)
        return low * (1.0 - 4.0 * depth), high * (1.0 + 4.0 * depth)

    # -- what follows --------------------------------------------------------------------------------------------

    def judged(self, given: Foreign) -> tuple[CertifiedModel, Any]:
        """Return what is proven about a model, and the certificate of its primal point with the smallest gap."""
        found, moved = self.pairs(given)
        theirs = min(found, key=lambda one: one.gap)
        near = theirs.rel_gap <= self.tol
        least, most = self.ends(theirs)
        lowest = theirs.dual if near else max(theirs.dual, self.best.dual)
        gap = max(min(most - lowest, theirs.gap if most == theirs.highest else inf), 0.0)
        lost = 16.0 * UNIT * most if moved or self.factor != 1.0 else 0.0
        if moved:
            slopes = max(1.0, sqrt(2.0 * most)) if self.sparse else self.first * float(self.model.hi.sum())
            lost += moved * (2.0 * slopes + moved)
        said = {"value": most + lost, "lowest": lowest - lost, "gap": (gap + 2.0 * lost) * OUTWARD}
        relative = said["gap"] / (least - lost) * OUTWARD if least > lost else inf if gap else 0.0
        numbers = {name: self.factor * one for name, one in said.items()}
        return CertifiedModel(
            given.name, self.objective(), **numbers, rel_gap=relative, **self.distances(theirs),
            accurate=bool(near or self.best.rel_gap <= self.tol),
        ), theirs  # fmt: skip

    def judged_pairs(self, given: Foreign) -> CertifiedModel:
        """Return what is proven about a model of pairs of labels: of each, and of their sums."""
        names = names_of((self.data.labels or {}).get("classes") or (self.data.labels or {}).values())
        if set(names) != set(given.labels):
            raise given.of_other_labels(names)
        theirs, found = {frozenset(one.labels): one for one in given.pairs}, []
        for pair in self.pairs_of_labels:
            self.model.begin(pair.model, 0.0)  # a gap of theirs may be as small as that
            found.append(pair.judged(theirs[frozenset(names_of((pair.data.labels or {}).values()))])[0])
            self.model.forget(pair.model)
        value, gap = (fsum(getattr(one, name) for one in found) * OUTWARD for name in ("value", "gap"))
        lowest = fsum(one.lowest for one in found)
        far = {name: sqrt(fsum(getattr(one, name) ** 2 for one in found)) for name in ("nearest", "farthest", "norm")}
        rows = {name: sum(getattr(one, name) for one in found) for name in ("same", "other", "open")}
        return CertifiedModel(
            given.name, self.objective(), value, lowest - 8.0 * UNIT * abs(lowest), gap, max(o.rel_gap for o in found),
            far["nearest"] / (1.0 + WIDER), far["farthest"] * (1.0 + WIDER), far["norm"], **rows,
            accurate=all(one.accurate for one in found), pairs=tuple(found),
        )  # fmt: skip

    def objective(self) -> str:
        """Return what the model was to minimise, as its maker writes it."""
        options, said = self.options, self.spec.objective
        values = dict(zip(("alpha", "beta"), self.parameter, strict=True)) if self.sparse else {"C": self.first}
        if self.penalty is not None and self.C is not None:
            said, values = SQUARED[self.penalty], {"C": self.C}
        values |= {name: options[name] for name in ("tau", "epsilon", "gamma", "degree", "coef0") if options.get(name)}
        penalised = f"intercept penalised, a feature of value {options['bias']:g}"
        kinds = {"free": "intercept not penalised", "penalised": penalised}
        words = [f"{name} = {float(value):.6g}" for name, value in values.items()]
        return f"{said}; {', '.join([*words, kinds.get(options.get('intercept') or '', 'no intercept')])}"

    def forms(self, certificate) -> tuple[np.ndarray, np.ndarray]:
        """Return the linear forms of the rows without the free intercept of a box model, and the norms of the rows."""
        if self.sparse:
            return certificate.scores, np.sqrt(self.row.views.row_sqnorms)
        n = self.data.shape[0]
        return (self.model.signs * certificate.point.products)[:n], self.model.norms[:n]

    def distances(self, theirs) -> dict:
        """Return what the ball around the solution tells about weights and labels, as fields of the result."""
        best, ridge, off = self.best, self.first if self.sparse else 1.0, 0.0
        if ridge == 0.0:  # no ball
            return {}
        a, b = (one.w if self.sparse else one.point.vector for one in (theirs, best))
        least = most = float((a - b) @ (a - b))
        own = float(b @ b)
        if self.spec.rows is not None:  # vectors are dual coefficients
            p, q = theirs.point, best.point
            off, own = p.error + q.error, q.sqnorm
            least, most = p.apart(q)
        distance, norm, radius = sqrt(most), sqrt(own), sqrt(2.0 * best.gap / ridge) * (1.0 + WIDER)
        lost = radius + WIDER * (distance + norm)
        found = {"nearest": max(sqrt(max(least, 0.0)) - lost, 0.0), "farthest": distance + lost, "norm": norm}
        if self.sparse and self.free:  # over a ball its best intercept is not bounded here
            return found
        (f, norms), (g, _) = self.forms(best), self.forms(theirs)
        off = WIDER * (np.abs(f) + np.abs(g) + norms * (norm + distance)) + norms * off
        low, high = f - norms * radius - off, f + norms * radius + off
        if self.free:
            best_of, kinks, times = self.model.signless.best, self.model.signless.kinks, self.model.size // f.size
            ends = best_of(kinks - np.tile(high, times))[0], best_of(kinks - np.tile(low, times))[1]
            low, high, g = low + ends[0], high + ends[1], g + theirs.intercept
        if self.data.labels is None:
            return {**found, "change": float(np.max(np.maximum(high - g, g - low) + off))}
        up, down = (g > off).astype(int), (g < -off).astype(int)
        same, other = (int(a @ (low > 0.0) + b @ (high < 0.0)) for a, b in ((up, down), (down, up)))
        return {**found, "same": same, "other": other, "open": f.size - same - other}

    def write(self, certificate, out: str, force: bool, command: Sequence[str]) -> None:
        """Write a run folder of one step whose primal point is theirs; its tolerance is the gap that it has."""
        if self.spec.rows is not None and self.free and isfinite(certificate.primal) and certificate.gap == inf:
            # divided by C, dual variables of a file sum to 0 but for rounding: one is moved by that much
            theta = self.model.summing_to_zero(certificate)
            if np.abs(theta - certificate.theta).sum() <= ROUNDED * np.abs(theta).sum():
                certificate = self.model.certify(self.first, None, theta, intercept=certificate.intercept)
        least = certificate.primal - certificate.primal_error
        tol = max(certificate.gap / least * (1.0 + WIDER), EXACT) if least > 0.0 else inf
        if not tol < 1.0 or self.ends(certificate)[1] != certificate.highest:
            raise DataError("the gap is as large as the objective", "leave out `out`: there is nothing to certify")
        if self.options["data"] == "-":
            raise UsageError("`out` reads the data again, and standard input is gone", "name a file")
        seconds, nothing = dict.fromkeys(("screen", "solve", "certify"), 0.0), self.row.nothing_screened()
        judged, work = verdict(certificate, tol, settled=True), {"solver": "given", "epochs": 0, "rounds": 1}
        step = at_point(self.row, self.first, 0, certificate, nothing, tol, judged, work, 0.0, seconds, {})
        options = {**self.options, "tol": tol, "certificate": True, "out": out, "force": force, "quiet": True}
        saved = [step], self.data.names, self.spec, options, Silent()
        SavedSession(*saved, command=command, certificates=[certificate], form=self.data.form).run()


def certify(
    estimator: Any, X: Any, y: Any = None, *, model: str | None = None, command: Sequence[str] = ("certify",),
    known: dict | None = None, **options: Any,
) -> CertifiedModel:  # fmt: skip
    """Prove how far a model made elsewhere is from the optimum of its own problem, as ``screenpath certify`` does.

    Parameters
    ----------
    estimator : object, path-like or tuple (weights, intercept)
        A fitted estimator (LinearSVC, SVC and others are told by their parameters; any with ``coef_`` where ``model``
        names the problem), or the name of a model file.
    X, y : array_like of shape (n, d) and (n,), or path-like and None
        The data that it was fitted to.
    model : {"svm", "lad", "quantile", "svr", "sparse-svm"}, optional
        By default as the estimator tells.
    command : sequence of str, optional
        For run.json.
    known : dict, optional
        Shared by calls on the same data with the same sample weights: what one has solved serves the others.
    **options
        Those of the command, in place of what the estimator tells: ``c``, ``intercept``, ``bias``, ``sample_weight``
        and others. ``tol`` is the relative gap of the dual point that is looked for, by default 1e-10, behind a kernel
        1e-6; ``out`` a run folder for the certificate.

    Examples
    --------
    >>> import screenpath
    >>> X, y = [[2.0, 1.0], [1.5, 2.0], [-1.0, -2.0], [-2.0, -0.5]], [1, 1, -1, -1]
    >>> screenpath.certify(([0.3, 0.3], 0.0), X, y, model="svm", c=1.0).rel_gap < 0.1
    True
    """
    named = isinstance(estimator, (str, os.PathLike))
    given = read_foreign(os.fspath(estimator)) if named else of_estimator(estimator)
    name, penalty = problems_of(given, model)
    data = os.fspath(X) if y is None and isinstance(X, (str, os.PathLike)) else (X, y)
    all_given = completed(certify_options(name), options, "certify")
    told = {**given.told, "tol": all_given["tol"] if "kernel" not in given.told else ROUGH}
    for key in ("intercept", "bias") if {"intercept", "bias"} & options.keys() else ():
        told.pop(key, None)
    asked = told | {key: all_given[key] for key in options}
    if {"alpha", "beta"} & options.keys():
        if "c" in options:
            raise UsageError("`c` tells the penalty, `alpha` and `beta` too", "leave out one of the two")
        asked.pop("c", None)
    if penalty is not None and options.get("loss") not in (None, "squared-hinge"):
        raise UsageError(f"{given.name} is of the kind {given.kind}, with a squared hinge", "leave out `loss`")
    out, force, C = (asked.pop(key, None) for key in ("out", "force", "c"))
    asked = {next((old for old, new in RENAMED.items() if new == key), key): value for key, value in asked.items()}
    if not (asked.get("bias") or asked.get("intercept")):
        asked["intercept"] = "none"
    if out is not None and not isinstance(data, str):
        hint = "pass the name of a file in place of X and y: write_libsvm(FILE, X, y) writes one"
        raise UsageError("`out` is a proof that is checked against a file, the data are arrays", hint)
    if given.pairs and (asked.get("positive") is not None or out is not None):
        what, name_of = f"{given.name} has a problem for each pair of labels", "out" if out is not None else "positive"
        raise UsageError(f"{what}, `{name_of}` is for one problem", f"leave out `{name_of}`")
    asked |= {"one_vs_one": True} if given.pairs else {}
    asked |= {"data": data, "C": C} | ({} if penalty is None else {"loss": "squared-hinge"})
    kept, place = {} if known is None else known, (name, penalty, repr(sorted(asked.items(), key=str)))
    with MemoryLimit(asked.get("max_memory")).in_force(), ExitStack() as ending:
        problem = kept[place] = kept.get(place) or ForeignProblem(name, asked, penalty)
        if known is None:
            ending.callback(problem.data.close)
        if given.pairs:
            return problem.judged_pairs(given)
        found, certificate = problem.judged(given)
        if out is not None:
            problem.write(certificate, out, bool(force), list(command))
    return replace(found, folder=out)
