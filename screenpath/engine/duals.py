"""The dual variables of one step: the side of every row, and for which rows it is proven of the optimum.

With ``certificate`` the run folder holds them. Otherwise the problem of the step is solved again from the data, to the
tolerance of the run: what the ball of this solution proves holds for the same optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from screenpath.catalogue.elastic import NETS, SPARSE_SVM
from screenpath.catalogue.losses import LOSSES, SVM
from screenpath.data.words.labels import NamedLabel, label_text
from screenpath.data.words.tables import csv_text
from screenpath.engine.path import Path
from screenpath.engine.run_problem import problem_of_run
from screenpath.errors import RunFolderError, UsageError
from screenpath.inputs.run_data import training_data
from screenpath.store.certificates import proven, states_of
from screenpath.store.open import Run
from screenpath.store.record import damaged
from screenpath.verify import file as form
from screenpath.walk.step import CERTIFIED

SIDES = {form.LOW: "R", form.HIGH: "L", form.BETWEEN: "E"}
STORED, AGAIN = "certificate.bin", "solved again"
GIVEN = (*LOSSES, SPARSE_SVM.name, *NETS)  # models with a dual variable for each row


@dataclass(frozen=True, repr=False)
class Duals:
    """The dual variables of a step, for each of the n rows; ``labels`` are those of the data file.

    ``w = sum_i values_i x_i`` over the prepared rows: ``y_i alpha_i`` of a classifier, ``alpha_i`` of a regression. Of
    ``sparse-svm`` the values are ``y_i s_i theta_i / n``, ``s_i`` the row's weight over the mean of all; their sum is
    soft-thresholded by beta and divided by alpha to give ``w``. Those of other elastic nets are without ``y_i``.

    ``sides`` are ``R`` at the lower bound, ``L`` at the upper bound, ``E`` between. ``svr`` has two a row: ``R`` where
    both are 0, within the tube; ``L`` where one is at its upper bound. ``certified``, bool, tells whether the row is
    proven to be on this side in the optimum. ``source`` is ``certificate.bin``, or ``solved again``.
    """

    labels: np.ndarray
    values: np.ndarray
    sides: np.ndarray
    certified: np.ndarray
    source: str

    def __repr__(self) -> str:
        sure = int(self.certified.sum())
        return f"<Duals: {self.values.size} rows, {self.support.size} with a part in w, {sure} sides certified>"

    @property
    def support(self) -> np.ndarray:
        """Return the numbers (from 0) of the rows with a part in ``w``: the support vectors."""
        return np.flatnonzero(self.values)

    def csv(self) -> str:
        """Return the table ``row, label, value, side, certified``, rows numbered from 1."""
        rows, labels = range(1, self.values.size + 1), map(label_text, self.labels.tolist())
        columns = rows, labels, self.values.tolist(), self.sides.tolist(), self.certified.astype(int).tolist()
        return csv_text(("row", "label", "value", "side", "certified"), zip(*columns, strict=True))


def duals_of(run: Run, step: dict, training: str | tuple | None = None) -> Duals:
    """Return the dual variables of a row of the step table; ``training`` are training data that have moved.

    A :class:`UsageError` refuses models without dual variables of rows, and several paths; a :class:`DataError`
    training data that are missing or not those of the run; a :class:`RunFolderError` a damaged certificate, or a step
    that could not be certified again.
    """
    if run.model not in GIVEN:
        what = f"dual variables are available for {', '.join(GIVEN)}, not for {run.model}"
        raise UsageError(what, "its run folder keeps weights of features only; leave out `duals`")
    if run.classes:
        what = "a run with more than two labels has a set of dual variables for each class"
        raise UsageError(what, "use a run with `positive=LABEL`")
    data = training_data(run, training)
    run.known(data.y)  # refuses unknown labels
    loss = LOSSES.get(run.model)
    free = run.record["options"].get("intercept") == "free"  # its certificates claim nothing about rows
    if loss is not None and run.has(form.NAME) and step["status"] == CERTIFIED and not free:
        theta, states, sure = _stored(run, step, loss, data.n)
        source = STORED
    else:
        theta, states, sure = _solved_again(run, step, training)
        source = AGAIN
    signs = 1.0 if run.labels is None else run.targets(data.y)
    if (NETS[run.model].box if run.model in NETS else loss or SVM).mirrored:
        (theta, mirror), (states, other) = np.split(theta, 2), np.split(states, 2)
        theta, (first, second) = theta - mirror, np.split(sure, 2)
        sure = np.where(states == form.HIGH, first, np.where(other == form.HIGH, second, first & second))
        states = np.where((states == form.HIGH) | (other == form.HIGH), form.HIGH, np.maximum(states, other))
    sides = np.array([SIDES[code] for code in range(len(SIDES))])[states]
    part = step["C"] if loss is not None else 1.0 / data.n
    values = signs * part * theta + 0.0  # no -0
    if run.label_names is not None:
        labels = np.array(run.label_names)[data.y.astype(np.int64)]
    else:
        texts = {float(one): one for one in run.sides if isinstance(one, NamedLabel)}
        labels = np.array([texts.get(y, y) for y in data.y.tolist()], dtype=object) if texts else data.y
    return Duals(labels, values, sides, sure & (states != form.BETWEEN), source)


def _stored(run: Run, step: dict, loss, n: int) -> tuple:
    """Return theta, its states (at a bound or between) and which are proven, from the certificate of the run."""
    header, steps = form.read_certificate(run.path / form.NAME)
    size = n * (2 if loss.mirrored else 1)
    values = {one.name: one.checked(run.record["options"].get(one.name, one.default)) for one in loss.options}
    low, high = loss.slopes(SimpleNamespace(**values))
    s = header.get("weights", np.ones(n))
    s = np.concatenate([s, s]) if loss.mirrored else s
    try:
        entry = steps[step["step"]]
        states, claims = (form.unpack(entry[name], 0, size) for name in ("states", "claims"))
        sure = claims != form.NOTHING
        if entry.get("after") is not None:
            sure = sure | (form.unpack(entry["after"], 0, size) != form.NOTHING)
        theta = np.where(states == form.HIGH, high * s, low * s)
        theta[states == form.BETWEEN] = entry["between"]
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise form.damaged(run.path / form.NAME, f"step {step['step']} does not fit the data ({error})") from None
    return theta, states, sure


def _solved_again(run: Run, step: dict, training: str | tuple | None) -> tuple:
    """Return the same as :func:`_stored`, from the problem of the step solved again."""
    with problem_of_run(run, training) as (spec, options, data):
        several = len(run.parameters) > 1
        at: Any = tuple(step[name] for name in run.parameters) if several else step[run.parameters[0]]
        if not np.all(np.greater_equal(at, 0.0)):
            raise damaged(run.path, f"a parameter of {run.describe(step)} is not positive")
        way = Path.of(spec, options, data, [at])
        found, pair = next(iter(way.walk()))
        if found.status != CERTIFIED:
            what = f"{run.describe(step)} could not be certified again: {found.reason}"
            raise RunFolderError(what, "compute the path with `certificate`, which keeps its dual variables")
        if run.model in LOSSES:
            states = states_of(pair.theta, way.model.lo, way.model.hi)
            return pair.theta, states, proven(way.model, pair, at, states)
        base, pair, at = way.model.bound(pair, at)
        decided = way.screening.again(base, pair, at).duals
        states = states_of(pair.theta, base.low, base.high)
        weighed = pair.theta * base.weights * (base.unit / base.mean)
        return weighed, states, ((decided < 0) & (states == form.LOW)) | ((decided > 0) & (states == form.HIGH))
