"""Write the certificate of a run step by step, for ``screenpath verify`` (format: ``verify/file.py``)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from screenpath.data.safe.atomic import Appender, check_kept
from screenpath.data.words.tables import finite
from screenpath.numbers.states import codes, count
from screenpath.problem.box import BoxModel
from screenpath.problem.l1svm import L1Certificate
from screenpath.problem.sparse_grid import SparseGrid
from screenpath.problem.sparse_types import SparseVector
from screenpath.regions.geometry import Ball, KernelPoint
from screenpath.regions.lever import LeverBall
from screenpath.rows.gram import GramRows
from screenpath.screen.box import pair_ball
from screenpath.solve.removal import OPEN
from screenpath.verify import file as form
from screenpath.walk.step import CERTIFIED, SKIPPED

# A claim must hold for a ball larger by this share of its radius and of its extent, so that rounding in the checker
# cannot undo it.
RELATIVE, ABSOLUTE = 1e-9, 1e-10
WIDER = 4.0  # times as far from a value as proven are its bounds in a file, for the checker's own rounding
HIDDEN = 1e-150  # what underflow may hide of a value, over the norm of its row
LAST = 2.0**-48  # part of its box that a dual variable is beside its end by rounding alone


class Frames:
    """The frames of steps: solutions, and of a box model which rows they prove to be at a bound.

    ``lone`` steps make no claims about each other's rows. ``places`` are the rows of a model that has some of all, in
    its order; they are written in that of the data. All frames have the fields ``named``.
    """

    def __init__(self, model, lone: bool = False, places: np.ndarray | None = None, named: dict | None = None):
        self.model, self.claims, self.lone = model, isinstance(model, BoxModel), lone
        self.order, self.named = slice(None) if places is None else np.argsort(places), named or {}
        # The step before, and what has been claimed about its rows; None where it made no claims.
        self.before: Any = None
        self.decided: np.ndarray | None = None

    def of(self, step, certificate, added: dict | None = None) -> bytes:
        """Return the frame of a step, and one about the step before if it proves more of it; ``added`` are arrays."""
        fields = {"step": step.step, "status": step.status, **step.parameters, **self.named}
        if step.status != CERTIFIED:
            self.before = self.decided = None
            return form.frame(form.STEP, fields, {})
        # A worker process sends its certificate without these numbers; the step has them.
        error = max(step.primal - step.gap - step.dual, 0.0)
        fields |= {"primal": float(step.primal), "primal_error": float(error), "gap": float(step.gap)}
        return self._claimed(fields, certificate, added or {}) if self.claims else self._solved(fields, certificate)

    def _solved(self, fields: dict, certificate) -> bytes:
        """Return the frame of a step that makes no claims about rows."""
        w = certificate.w
        w = w if isinstance(w, SparseVector) else SparseVector.of(w)
        if isinstance(self.model, SparseGrid) and self.model.base.intercept:  # the last of its coefficients
            w = w.extended(certificate.intercept)
        arrays = {"index": w.index, "values": w.values}
        if isinstance(certificate, L1Certificate):
            fields["b"] = float(certificate.bias)
        else:
            theta = certificate.theta * self.model.base.unit  # in terms of the given weights, not those of the model
            states = states_of(theta, self.model.base.low, self.model.base.high)
            arrays |= {"states": form.pack(states), "between": theta[states == form.BETWEEN]}
        return form.frame(form.STEP, fields, arrays)

    def _claimed(self, fields: dict, certificate, added: dict) -> bytes:
        """Return the frames of a step, and of what its solution proves about the rows of the step before.

        With a free intercept, the last entry of ``w`` or behind a kernel ``b``, no claims are made about rows.
        """
        model, before, intercept = self.model, self.before, certificate.intercept
        states = states_of(certificate.theta, model.lo, model.hi)
        claims = np.full(states.size, form.NOTHING, dtype=np.uint8)
        if intercept is None:
            claims[proven(model, certificate, certificate.C, states)] = form.OWN
        if before is not None:
            claims[(claims == form.NOTHING) & proven(model, before, certificate.C, states)] = form.BEFORE
        order, arrays = self.order, {}
        for name, codes_of in (("states", states), ("claims", claims)):
            arrays[name] = form.pack(codes_of[order])
        arrays["between"] = certificate.theta[order][states[order] == form.BETWEEN]
        if not isinstance(certificate.point, KernelPoint):  # else its point follows from theta
            w = certificate.point.vector
            arrays["w"] = w if intercept is None else np.append(w, intercept)
        elif intercept is not None:
            fields["b"] = float(intercept)
        frames = form.frame(form.STEP, fields, arrays | added)
        if before is not None:
            there = proven(model, certificate, before.C, states_of(before.theta, model.lo, model.hi))
            more = (self.decided == form.NOTHING) & there
            packed = form.pack(np.where(more, np.uint8(form.AFTER), np.uint8(form.NOTHING))[order])
            frames += form.frame(form.NEXT, {"step": fields["step"] - 1, **self.named}, {"claims": packed})
        if intercept is None and not self.lone:
            self.before, self.decided = certificate, claims
        return frames


class CertificateFile:
    """``certificate.bin`` of a path in progress.

    ``header`` is the problem: fields and arrays of the first frame. In a resumed run, ``state`` is the return value of
    :meth:`state` at the checkpoint, and ``reference`` the certificate of the step before the next one, or one for each
    of the models that are walked in step: each pair of labels.
    """

    def __init__(self, folder, model, header: dict, state: dict | None = None, reference=None):
        self.models, pairs = model.parts, [reference]
        self.frames = {"": Frames(model)}
        if self.models:
            known = enumerate(zip(self.models, model.places, strict=True))
            self.frames = {f"_{k}": Frames(one, places=at, named={"pair": k}) for k, (one, at) in known}
            pairs = reference or [None] * len(self.models)
        self.count, keep, sha256 = 0, 0, None
        if state is not None:
            keep, self.count, sha256 = place_of(state)
            for (name, one), pair in zip(self.frames.items(), pairs, strict=True):
                decided = decided_of(state, one.model, name) if one.claims else np.zeros(0, np.uint8)
                if decided.size:
                    one.before, one.decided = pair, decided
        self.out = Appender(folder / form.NAME, keep, sha256=sha256)
        if not keep:
            self.out.append(form.MAGIC + problem_frame(header))

    def state(self) -> dict:
        """Force the file to the disk and return the arrays needed to continue it."""
        self.out.sync()
        digest = np.frombuffer(bytes.fromhex(self.out.sha256), np.uint8)
        state = {"proof_bytes": np.int64(self.out.size), "proof_steps": np.int64(self.count), "proof_sha256": digest}
        for name, one in self.frames.items():
            if one.claims:
                state[f"proof_decided{name}"] = np.zeros(0, np.uint8) if one.decided is None else one.decided
        return state

    def add(self, step, certificate) -> None:
        self.count += 1
        if not self.models:
            self.out.append(self.frames[""].of(step, certificate))
            return
        for one, pair in zip(self.frames.values(), certificate, strict=True):
            numbers = {"primal": pair.primal, "gap": pair.gap, "dual": pair.primal - pair.primal_error - pair.gap}
            known = {"step": step.step, "status": step.status, "parameters": step.parameters}
            self.out.append(one.of(SimpleNamespace(**known, **numbers), pair))

    def finish(self, skipped) -> tuple[str, dict]:
        """Append the steps that were not reached and the end; return the final name and its entry in run.json."""
        for row in skipped:
            for one in self.frames.values():
                self.out.append(form.frame(form.STEP, {**row, "status": SKIPPED, **one.named}, {}))
            self.count += 1
        self.out.append(form.frame(form.END, {"steps": self.count}, {}))
        self.out.complete()
        entry, self.out = {"bytes": self.out.size, "sha256": self.out.sha256}, None
        return form.NAME, entry

    def close(self) -> None:
        """Close an unfinished file under its partial name."""
        if self.out is not None:
            self.out.abandon()


def proven(model, pair, C: float, states: np.ndarray) -> np.ndarray:
    """Tell for each row whether the solution's ball proves it at ``C`` to be where the states have it.

    Nobody claims that of a smoothed loss, whose rows reach the ends of their boxes beyond the kinks.
    """
    if model.bend is not None:
        return np.zeros(states.size, dtype=bool)
    ball = pair_ball(pair, C)
    larger = Ball(ball.center, (1.0 + RELATIVE) * ball.radius + ABSOLUTE * ball.extent)
    free = pair.intercept is not None
    status = model.screen(LeverBall(larger, C, pair.theta, pair.residue) if free else larger).status
    return ((status < 0) & (states == form.LOW)) | ((status > 0) & (states == form.HIGH))


def states_of(theta: np.ndarray, lo, hi) -> np.ndarray:
    """Return the place of each dual variable in its box."""
    states = np.full(theta.size, form.BETWEEN, dtype=np.uint8)
    states[theta == hi], states[theta == lo] = form.HIGH, form.LOW
    return states


def place_of(state: dict) -> tuple[int, int, str]:
    """Return the bytes and steps of the file of a checkpoint, and the SHA-256 of these bytes."""
    digest = codes(state, "proof_sha256", (32,), 255)
    return count(state, "proof_bytes"), count(state, "proof_steps"), digest.tobytes().hex()


def decided_of(state: dict, model, name: str = "") -> np.ndarray:
    """Return the claims about the rows of a checkpoint's last step; empty if it made none."""
    return codes(state, f"proof_decided{name}", (0, model.size), form.AFTER)


def check_resumed(folder, model, state: dict) -> None:
    """Check, without changing it, that the file of a checkpoint is unchanged; parameters as of the class."""
    size, _, sha256 = place_of(state)
    if isinstance(model, BoxModel):
        decided_of(state, model)
    check_kept(folder / form.NAME, size, sha256)


def fold_frame(split, data) -> bytes:
    """Return the frame that begins the steps of a fold: its held-out rows, and what its training part has taught."""
    preparation = data.preparation
    named = {"scale": preparation.scale, "shift": preparation.shift, "fill": preparation.fill, "weights": data.weights}
    arrays = {name: np.asarray(array) for name, array in named.items() if array is not None}
    return form.frame(form.FOLD, {"repeat": split.repeat, "fold": split.fold}, {"held_out": split.held_out, **arrays})


def folds_bytes(header: dict, folds: list) -> bytes:
    """Return ``folds.bin``: the problem without what each fold has of its own, and the frames of all folds."""
    shared = {name: v for name, v in header.items() if name == "columns" or not isinstance(v, np.ndarray)}
    frames = [form.MAGIC, problem_frame(shared), *(frame for fold in folds for frame in fold.proofs)]
    return b"".join([*frames, form.frame(form.END, {"folds": len(folds)}, {})])


def merged_folds(folders: list) -> bytes:
    """Return ``folds.bin`` of all folds of several runs, in order."""
    parts = [list(form.frames(folder / form.FOLDS, times=form.LEVERS)) for folder in folders]
    inner = [frame for part in parts for frame in part[1:-1]]
    count = sum(kind == form.FOLD for kind, *_ in inner)
    frames = [parts[0][0], *inner, (form.END, {"folds": count}, {})]
    return form.MAGIC + b"".join(form.frame(*frame) for frame in frames)


def merged_steps(rows: list) -> bytes:
    """Return the certificate of stored steps, each a folder and its number there, in order.

    What a step claims by a neighbour stays where this is its neighbour here, too.
    """
    known: dict[tuple, tuple] = {}
    for folder in dict.fromkeys(folder for folder, _ in rows):
        for kind, fields, arrays in form.frames(folder / form.NAME):
            known[folder, fields.get("step"), kind] = fields, arrays
    frames = [(form.HEADER, *known[rows[0][0], None, form.HEADER])]
    for k, (folder, number) in enumerate(rows):
        fields, arrays = known[folder, number, form.STEP]
        followed = k > 0 and rows[k - 1] == (folder, number - 1)
        if "claims" in arrays and not followed:
            codes = form.unpack(arrays["claims"], 0, 4 * arrays["claims"].size)
            arrays = {**arrays, "claims": form.pack(np.where(codes == form.BEFORE, np.uint8(form.NOTHING), codes))}
        frames.append((form.STEP, {**fields, "step": k}, arrays))
        if followed and (folder, number - 1, form.NEXT) in known:
            fields, arrays = known[folder, number - 1, form.NEXT]
            frames.append((form.NEXT, {**fields, "step": k - 1}, arrays))
    frames.append((form.END, {"steps": len(rows)}, {}))
    return form.MAGIC + b"".join(form.frame(*frame) for frame in frames)


def removals_bytes(header: dict, left) -> bytes:
    """Return the certificate of a :class:`screenpath.engine.leave_out.LeaveOneOut`: one step, and each row left out."""
    of = left.solution
    pair, (theta, states) = of.certificate, moved_to(of, np.arange(of.alpha.size), of.alpha)
    numbers = {"primal": float(pair.primal), "primal_error": float(pair.primal_error), "gap": of.whole_gap}
    arrays = {"states": form.pack(states), "between": theta[states == form.BETWEEN]}
    arrays |= {"claims": np.zeros_like(arrays["states"])}
    w = pair.point.vector if pair.intercept is None else np.append(pair.point.vector, pair.intercept)
    fields = {"step": 0, "status": CERTIFIED, "C": float(pair.C), **numbers}
    frames = [form.MAGIC, problem_frame(header), form.frame(form.STEP, fields, {**arrays, "w": w})]
    with np.errstate(invalid="ignore"):
        low, high = (left.values - WIDER * (left.values - end) for end in (left.low, left.high))
    hidden = HIDDEN * (1.0 + of.model.norms[left.samples])
    low, high = low - hidden, high + hidden
    ends = np.stack([left.values, low, high, (pair.intercept or 0.0) + left.offsets], axis=1).tolist()
    for k, row in enumerate(left.samples.tolist()):
        known, index, values = {"row": row, "open": True}, np.zeros(0, np.int64), np.zeros(0)
        if left.how[k] != OPEN:
            known = {"row": row, **dict(zip(("value", "low", "high", "b"), ends[k], strict=True))}
            index, values = of.others(left.changes[[k]], row)
            values, _ = moved_to(of, index, values)
        frames.append(form.frame(form.LEAVE, known, {"index": index, "theta": values}))
    wrong = np.where(left.targets > 0.0, high < 0.0, low > 0.0)
    errors = {} if left.run.labels is None else {"errors": int(np.count_nonzero(wrong))}
    return b"".join([*frames, form.frame(form.END, {"left_out": len(left.samples), **errors}, {})])


def moved_to(of, index: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return dual variables of a :class:`screenpath.solve.removal.Solution` as a file has them, and their states."""
    model = of.model
    theta, lo, hi = model.signs[index] * alpha / of.certificate.C, model.lo[index], model.hi[index]
    for end in (lo, hi):
        theta = np.where(np.abs(theta - end) <= LAST * (hi - lo), end, theta)
    return theta, states_of(theta, lo, hi)


def problem_frame(header: dict) -> bytes:
    arrays = {name: value for name, value in header.items() if isinstance(value, np.ndarray)}
    return form.frame(form.HEADER, {name: value for name, value in header.items() if name not in arrays}, arrays)


def header_of(model: str, options: dict, data) -> dict:
    """Return the problem of a run for the file's first frame."""
    preparation = data.preparation
    header = {
        "model": model,
        "tol": options["tol"],
        "labels": finite(data.labels),
        "scaling": preparation.kind,
        "bias": preparation.bias,
        "data": {
            "sha256": data.sha256, "n_samples": data.shape[0], "n_features": data.shape[1],
            "zero_based": bool(options["zero_based"]), **({} if data.form is None else {"table": data.form.record()}),
            **({} if data.label_names is None else {"label_names": list(data.label_names)}),
        },
        **{name: options[name] for name in ("tau", "epsilon", "smoothing") if options.get(name) is not None},
    }  # fmt: skip
    if options.get("intercept") == "free":
        header["intercept"] = "free"
    if options.get("one_vs_one") and "classes" in (data.labels or {}):
        header["one_vs_one"] = True
    if options.get("loss", "hinge") != "hinge":
        header["loss"] = options["loss"]
    if isinstance(data.rows, GramRows):
        header["kernel"] = data.rows.blocks.function.describe()
    named = {"scale": preparation.scale, "shift": preparation.shift, "weights": data.weights}
    named |= {"columns": preparation.columns, "fill": preparation.fill}
    if options.get("nonnegative"):
        named["signs"] = np.ones(data.shape[1] if preparation.columns is None else preparation.columns.size)
    elif data.signs is not None:
        named["signs"] = data.signs.astype(np.float64)
    if data.groups is not None:
        header["l1_share"] = options["l1_share"]
        named |= {"groups": data.groups[:, 0].copy(), "group_weights": data.groups[:, 1].copy()}
    return header | {name: np.asarray(array) for name, array in named.items() if array is not None}
