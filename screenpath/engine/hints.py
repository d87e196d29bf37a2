"""The best step on the test data, and hints after a run: one line each, with an option to try."""

from __future__ import annotations

import numpy as np

from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.option import usual
from screenpath.catalogue.options import PAIR_GRID
from screenpath.catalogue.scores import at_boundary, baseline_words, best_and_one_se, higher_is_better
from screenpath.data.files.prepare import peaks
from screenpath.kernels.problem.box import ZERO
from screenpath.numbers import sparse as sp
from screenpath.rows.memory import MemoryRows
from screenpath.store.record import read_steps

HARDLY = 0.2  # mean screening rate below which scaling may help
APART = 10.0  # features differ in size if the ratio of their largest magnitudes is at least this ...
APART_SPARSE = 1000.0  # ... in sparse data, where rare words are smaller without being in another unit
FEW = 5  # steps that a path needs for a hint about screening or the ends of its grid
OFF = 0.5  # |mean|^2 over mean square of rows, or targets, from which an intercept may help
SPAN = 1e6  # ratio of the largest magnitudes of two columns, or rows, from which rounding is likely the limit
PAIR = ("alpha", "beta")  # parameters of two penalties
CELLS = 1 << 17  # most values of which a copy is made


def tested(session) -> list[dict]:
    """Return step, parameters and test score of every step of a finished session, resumed ones included."""
    if not session.resumable:
        return session.scored
    file = session.sink.path / f"steps.{session.sink.format}"
    names = ("step", *session.model.parameters(session.grid[0]), session.spec.score_columns[0])
    record = {"columns": list(session.columns), "parameters": list(names[1:-1])}
    rows = read_steps(file, file.stat().st_size, record)
    return [{name: row[name] for name in names} for row in rows if row[names[-1]] is not None]


def best_tested(session) -> dict | None:
    """Return the step with the best test score, ties go to the more regularised; None without test data."""
    rows = tested(session) if session.test is not None else []
    column = session.spec.score_columns[0]
    rows = [row for row in rows if np.isfinite(row[column])]
    if not rows:
        return None
    scores = np.array([row[column] for row in rows])
    return rows[best_and_one_se(scores, np.zeros(scores.size), higher_is_better(column))[0]]


def where(row: dict, names) -> str:
    return f"step {row['step']} ({', '.join(f'{name} = {row[name]:.6g}' for name in names)})"


def best_lines(session) -> list[tuple[str, str]]:
    """Return the lines of the closing table about the test data: the best step, or that chosen by cross-validation.

    The score of the latter is not optimistic: the choice did not use the test data.
    """
    what, row = "best on test data", None
    if not session.cross_validated:
        row = best_tested(session)
    elif session.test is not None and session.choice is not None:
        what, best = "best, on test data", session.choice.best
        row = next((one for one in tested(session) if one["step"] == best), None)
    if row is None:
        return []
    *names, column = list(row)[1:]
    score = column.removeprefix("test_").replace("_", "-")
    constant = baseline_words(score, session.test.baselines[score])
    found = f"{score.replace('-', ' ')} {row[column]:.6g} at {where(row, names)}"
    return [(what, found), ("baseline on test data", constant)]


def hints(session) -> list[str]:
    found = _far_apart, _end_of_grid, _unscaled, _no_intercept, _nothing_found
    return [hint for find in found for hint in find(session)]


def _far_apart(session):
    """Hint at columns, or rows, so different in size that rounding may be why a step is not certified."""
    tally, data = session.tally, session.data
    blocks = getattr(data.rows, "blocks", None)
    X = _rows(session) if blocks is None else blocks.X
    if tally.steps == tally.certified or X is None:
        return
    p, names = data.preparation, data.names
    sized = [("column", peaks(X, None), "maxabs" if sp.issparse(X) else "standard")]
    if (X.nnz if sp.issparse(X) else X.size) <= CELLS:  # those of rows take a copy
        sized.append(("row", peaks(sp.csr_array(X.T) if sp.issparse(X) else X.T, None), "l2"))
    for what, sizes, scale in sized:
        there = np.flatnonzero(sizes)
        if not there.size or p.kind == scale:
            continue
        low, high = (int(there[pick(sizes[there])]) for pick in (np.argmin, np.argmax))
        if sizes[high] > SPAN * sizes[low]:
            ends = [k if what == "row" or p.columns is None else int(p.columns[k]) for k in (low, high)]
            told = [repr(names[k]) if names and what == "column" else k + 1 for k in ends]
            decades = np.log10(sizes[high] / sizes[low])
            yield (
                f"{what}s differ in size by {decades:.0f} decades, more than rounding allows (largest values: "
                f"{sizes[low]:.1g} in {what} {told[0]}, {sizes[high]:.1g} in {what} {told[1]}): "
                f"`scale={scale}` makes them alike"
            )


def _end_of_grid(session):
    """Hint at a wider grid, where the best step is at an end; a cross-validation has that in its summary."""
    whole = not session.cross_validated and session.options["part"] is None
    row = best_tested(session) if whole and len(session.grid) >= FEW else None
    if row is None:
        return
    *names, column = list(row)[1:]
    rows = tested(session)
    points = [{name: one[name] for name in names} for one in rows]
    ends = [at_boundary(points, k) for k, one in enumerate(rows) if one[column] == row[column]]
    if None in ends:  # as good inside of the grid
        return
    at = ends[0]
    more = wider(session.options, points, points.index({name: row[name] for name in names}), at)
    yield f"the best step on the test data has {at}: {more} may hold a better one"


def wider(options: dict, points: list[dict], best: int, at: str) -> str:
    """Return what to type where the best step is at the end ``at`` of the grid (``scores.at_boundary``)."""
    given = options.get("c_list") is not None or options.get("lambda_list") is not None
    C = points[best].get("C")
    ratios = [
        f"`{name}_min_ratio={0.1 * (options.get(f'{name}_min_ratio') or least):g}`"
        for name, least in zip(PAIR, usual(PAIR_GRID, *(f"{name}_min_ratio" for name in PAIR)), strict=True)
        if f"{name} at the lower" in at and options.get(name) is None
    ]
    more = " and ".join(ratios) or "a wider grid"
    if C is not None and not given:
        more = f"`cmax={10.0 * C:g}`" if "upper" in at else f"`cmin={C / 10.0:g}`"
    elif "lambda" in points[best] and "lower" in at and not given:
        ratio = 0.1 * (options["lambda_min_ratio"] or 0.05)
        more = f"`lambda_min_ratio={ratio:g}`" if options["log"] else f"`grid={2 * len(points)}`"
    goes_on = "beta" not in points[best] and not str(options.get("rule")).lower().startswith(("ssnsv", "essnsv"))
    alone = options.get("until_turn") is False and options.get("gammas") is None
    open_end = goes_on and alone and points[best] == points[-1]
    return f"{more}, or `until_turn`," if open_end and options["part"] is None and not given else more


def _rows(session):
    """Return the rows of a linear model in memory, without the constant feature; None for others."""
    rows = getattr(session.data, "rows", None)
    if session.spec.rows is not None or not isinstance(rows, MemoryRows):
        return None
    d = session.data.preparation.n_features
    if not rows.sparse:
        return rows.X[:, :d]
    X = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n, rows.d))
    return X if rows.d == d else X[:, :d]


def _unscaled(session):
    tally, options = session.tally, session.options
    if options["scale"] != "none" or options["rule"] == "none" or session.spec.selects:
        return
    if tally.steps < FEW or tally.rejection_sum >= HARDLY * tally.steps or (X := _rows(session)) is None:
        return
    size = peaks(X, None)
    size = size[size > 0.0]
    kind, apart = ("maxabs", APART_SPARSE) if sp.issparse(X) else ("standard", APART)
    if not size.size or size.max() < apart * size.min():
        return
    screened, factor = 100.0 * tally.rejection_sum / tally.steps, float(f"{size.max() / size.min():.1g}")
    yield (
        f"hardly anything was screened ({screened:.1f} %), and features differ in size by a factor of {factor:,.0f}: "
        f"`scale={kind}` makes them alike, so that rules screen far more"
    )


def _no_intercept(session):
    preparation = session.data.preparation
    if preparation.bias or session.spec.free_bias:
        return
    if (centre := _centre_of_targets(session)) is not None:
        yield f"there is no intercept, and the targets lie around {centre:.3g}: `intercept=free` may fit them better"
        return
    if preparation.has_intercept or (X := _rows(session)) is None:
        return
    mean, square = _moments(X)
    if square > 0.0 and float(mean @ mean) >= OFF * square:
        classes = (session.data.labels or {}).get("classes")
        free = "intercept" in session.options and not (classes and session.spec.selects)
        how = "`intercept=free` or `bias=1`" if free else "`bias=1`"
        yield f"there is no intercept, and the rows lie far from the origin: {how} may fit them better"


def _centre_of_targets(session) -> float | None:
    """Return the mean of the targets of a regression if it is far from 0 in units of their spread; else None."""
    loss, model = LOSSES.get(session.spec.name), session.model
    if loss is None or loss.signed:
        return None
    model = model if hasattr(model, "hi") else model.at(session.grid[0])  # that of a level
    y, weights = model.c, model.hi - model.lo  # these are proportional to those of the rows
    if model.mirrored:  # the kinks are y - epsilon and -y - epsilon
        (y, mirror), weights = np.split(y, 2), np.split(weights, 2)[0]
        y = 0.5 * y - 0.5 * mirror
    size = float(np.abs(y).max()) or 1.0  # no square overflows
    mean, square = (float(np.average((y / size) ** power, weights=weights)) for power in (1, 2))
    return size * mean if square > 0.0 and mean * mean >= OFF * square else None


def _nothing_found(session):
    """Report that w = 0 with an intercept is optimal up to the end of the grid."""
    latest, model = session.latest, session.model
    if not hasattr(model, "signless") or latest is None or session.tally.certified < len(session.grid):
        return
    alone = latest.C * model.bounds[ZERO]
    if max(session.grid) == latest.C and latest.primal >= alone * (1.0 - session.options["tol"]):
        yield f"up to C = {latest.C:g} an intercept alone is as good as any weights with it: w = 0"


def _moments(X) -> tuple[np.ndarray, float]:
    """Return the mean row, and the mean square of the rows, without a copy of the data."""
    n = X.shape[0]
    if sp.issparse(X):
        return np.asarray(X.sum(axis=0)).ravel() / n, float(np.einsum("i,i->", X.data, X.data, dtype=np.float64)) / n
    return X.mean(axis=0, dtype=np.float64), float(np.einsum("ij,ij->", X, X, dtype=np.float64)) / n
