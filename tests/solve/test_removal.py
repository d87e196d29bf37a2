"""Solutions without one sample, and what is proven of them, against refits by a cone solver."""

from __future__ import annotations

from dataclasses import replace

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

import screenpath
from screenpath.catalogue.kernel_models import behind_kernel
from screenpath.catalogue.losses import LOSSES
from screenpath.catalogue.specs import LINEAR_SVM
from screenpath.rows.memory import MemoryRows
from screenpath.screen import parse_kernel_rule, parse_rule
from screenpath.solve import removal
from screenpath.solve.newton import Newton
from screenpath.solve.polish import polished
from screenpath.solve.smo import make_kernel_solver
from screenpath.walk.loop import PathOptions, walk
from tests import free_problems
from tests.free_problems import SHAPES, VALUES
from tests.kernel_problems import kernel_svm_model
from tests.width import wide

NEAR = 1e-6  # relative accuracy of a refit's form, where its intercept is the only best one
LEFT = 5e-4  # width of a bound of long rows


def drawn(name, shape, seed, free, weighted, n=30, d=4):
    """Return the arrays of a small problem and its loss."""
    return free_problems.drawn(name, shape, seed, n, d, weighted, 1e3 if free else 0.0, 4)


def model_of(name, shape, X, y, weights, free):
    rows = MemoryRows(sp.csr_array(X) if shape == "sparse" else X)
    return LOSSES[name].model(rows, y, weights, "free" if free else None, **VALUES.get(name, {}))


def solved(model, C):
    """Return the polished certificate of a step."""
    (_, pair), *_ = walk(model, [C], parse_rule("dvi+gap"), Newton(), PathOptions(tol=1e-8))
    return polished(model, pair)


def signless(model):
    """Return rows, kinks and ends of the boxes without signs."""
    s, times = model.signs, model.size // model.rows.n
    X = model.rows.X if not model.rows.sparse else sp.csr_array(
        (model.rows.data, model.rows.indices, model.rows.indptr), shape=(model.rows.n, model.rows.d)
    ).toarray()  # fmt: skip
    low, high = np.where(s > 0, model.lo, -model.hi), np.where(s > 0, model.hi, -model.lo)
    return np.tile(X, (times, 1)), s * (model.c + model.tail), low, high


def refit(X, k, low, high, free):
    """Return ``w`` and both ends of the best intercepts of ``1/2 ||w||^2 + sum max(low t, high t)``, t = k - Xw - b."""
    n, d = X.shape
    mean = X.mean(axis=0) if free else np.zeros(d)
    X = X - mean
    scale = max(float(np.abs(X).max()), 1.0)
    one = np.full((n, 1), scale if free else 0.0)
    P = sp.diags_array(np.r_[np.ones(d), 0.0, np.zeros(n)]).tocsc()
    q = np.r_[np.zeros(d + 1), np.ones(n)]
    rows = [sp.hstack([sp.csr_array(-end[:, None] * np.hstack([X, one])), -sp.eye_array(n)]) for end in (low, high)]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, 400
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    A, b = sp.vstack(rows).tocsc(), np.r_[-low * k, -high * k]
    found = clarabel.DefaultSolver(P, q, A, b, [clarabel.NonnegativeConeT(2 * n)], settings).solve()
    z = np.array(found.z)
    rough = np.clip(low * z[:n] + high * z[n:], low, high)
    tried = [_on_kinks(X, k, low, high, rough, share, free) for share in (1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)]
    gap, w, *ends = min(tried, key=lambda one: one[0])
    best = w, *(b - float(mean @ w) for b in ends)
    return best if gap < 1e-11 * (1.0 + float(np.abs(k) @ (high - low))) else None


def _on_kinks(X, k, low, high, alpha, share, free):
    """Return the gap and the solution whose rows farther than a share of their box from its ends are on their kinks."""
    width = high - low
    inside = (alpha > low + share * width) & (alpha < high - share * width)
    alpha = np.where(inside, alpha, np.where(alpha - low < high - alpha, low, high))
    index, border = np.flatnonzero(inside), int(free)
    if index.size:
        ones = np.ones((index.size, border))
        system = np.block([[X[index] @ X[index].T, ones], [ones.T, np.zeros((border, border))]])
        for _ in range(3):
            right = np.r_[k[index] - X[index] @ (X.T @ alpha), [-alpha.sum()] * border]
            alpha[index] += np.linalg.lstsq(system, right, rcond=1e-12)[0][: index.size]
    w, ends = X.T @ alpha, (0.0, 0.0)
    off = max((low - alpha).max(), (alpha - high).max(), abs(alpha.sum()) if free else 0.0)
    if free:
        beta = k - X @ w
        order = np.argsort(beta)
        slopes, unsure = -high.sum() + np.cumsum(width[order]), 1e-9 * width.sum()  # just above each kink
        present, beta = width[order] > 0.0, beta[order]
        ends = float(beta[present & (slopes >= -unsure)][0]), float(beta[present & (slopes > unsure)][0])
    t = k - X @ w - 0.5 * sum(ends)
    gap = float((np.maximum(low * t, high * t) - alpha * t).sum())
    return (gap if off < 1e-9 * width.max() else np.inf), w, *ends


def without(arrays, model, i):
    keep = np.arange(model.size) % model.rows.n != i
    return [one[keep] for one in arrays]


def checked(model, C, found, of):
    """Return the claims that a refit contradicts, and how far the weights are from those of the refits."""
    X, k, low, high = signless(model)
    arrays = (X, k, C * low, C * high)
    contradicted, off, missed = [], 0.0, 0
    for r, i in enumerate(found.samples.tolist()):
        reference = refit(*without(arrays, model, i), of.free)
        if reference is None:
            missed += 1
            continue
        w, b_low, b_high = reference
        form = float(X[i] @ w)
        size = NEAR * (1.0 + np.abs(X[i]) @ np.abs(w) + abs(b_low))
        if not (found.low[r] - size <= form + b_low and form + b_high <= found.high[r] + size):
            contradicted.append((i, found.low[r], form + b_low, form + b_high, found.high[r]))
        moved = w - of.certificate.point.vector - X[: model.rows.n].T @ found.changes[[r]].toarray().ravel()
        off = max(off, float(np.linalg.norm(moved)) / (1.0 + float(np.linalg.norm(w))))
    assert missed <= found.samples.size // 10
    return contradicted, off


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
def test_no_refit_contradicts_a_claim(name, shape, free, weighted):
    for seed in range(wide(2, 12)):
        X, y, weights = drawn(name, shape, seed, free, weighted)
        model = model_of(name, shape, X, y, weights, free)
        for C in 10.0 ** np.random.default_rng(seed).uniform(-2.0, 1.0, size=2):
            pair = solved(model, C)
            of = removal.Solution(model, pair)
            found = removal.leave_out(of, np.arange(model.rows.n))
            assert (found.how != removal.OPEN).all(), (seed, C, np.flatnonzero(found.how == removal.OPEN))
            contradicted, off = checked(model, C, found, of)
            assert contradicted == [] and off < 1e-6, (seed, C, off)
            assert found.gap.max() <= 1e-9 * pair.primal + 1e-12


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", ["plain", "sparse"])
def test_where_several_intercepts_are_best_both_ends_are_theirs(name, shape):
    """The value is in the middle of both ends: if one was too far out, it would be that of a worse model."""
    several = 0
    for seed in range(wide(4, 12)):
        X, y, weights = drawn(name, shape, seed, True, seed % 2 == 1)
        model = model_of(name, shape, X, y, weights, True)
        rows, k, low, high = signless(model)
        for C in (0.01, 0.03):
            found = removal.leave_out(removal.Solution(model, solved(model, C)), np.arange(30))
            for i in range(30):
                reference = refit(*without((rows, k, C * low, C * high), model, i), True)
                if reference is None or reference[2] - reference[1] < 1e-3:
                    continue
                w, *b = reference
                ends, size = X[i] @ w + np.array(b), NEAR * (1.0 + np.abs(X[i]) @ np.abs(w) + abs(b[0]))
                assert [found.low[i], found.high[i]] == pytest.approx(ends, abs=size), (seed, C, i)
                assert found.values[i] == pytest.approx(ends.mean(), abs=size) or found.how[i] == removal.NOTHING
                several += 1
    assert several > 4


@pytest.mark.parametrize("seed", [0, 4])
def test_wide_bounds_move_no_value_where_a_single_intercept_is_best(seed):
    """Of large features rounding leaves wide bounds: their middle is no prediction of the model that was found."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(12, 3)), 3) * [1.0, 1e4, 1e5] + [0.0, 0.0, 1e5]
    y = np.round(rng.normal(size=12), 3) + 100.0
    model = model_of("lad", "plain", X, y, None, True)
    of = removal.Solution(model, solved(model, 0.01))
    found = removal.leave_out(of, np.arange(12))
    for i in range(12):
        changes = found.changes[[i]].toarray().ravel()
        w, alpha = of.certificate.point.vector + X.T @ changes, of.alpha + changes
        inside = (np.abs(alpha) < 0.01 * (1.0 - 1e-9)) & (np.arange(12) != i)
        off = y[inside] - X[inside] @ w - of.certificate.intercept - found.offsets[i]
        assert inside.any() and np.abs(off).max() < 1e-6, i
        form = X[i] @ w + of.certificate.intercept + found.offsets[i]
        assert found.values[i] == pytest.approx(form, abs=1e-6) and found.low[i] <= form <= found.high[i]


def test_a_way_that_rounding_leads_astray_is_left_open():
    rng = np.random.default_rng(22)
    X = np.round(rng.normal(size=(12, 3)), 3) * [1.0, 1e4, 1e5] + [0.0, 0.0, 1e5]
    y = np.round(rng.normal(size=12), 3) + 100.0
    model = model_of("lad", "plain", X, y, None, True)
    found = removal.leave_out(removal.Solution(model, solved(model, 0.01)), np.arange(12))
    assert (found.how == removal.OPEN).any() and np.nanmax(np.abs(found.values)) < 110.0


@pytest.mark.parametrize(
    ("name", "shape", "seed", "C"),
    [
        ("svm", "sparse", 11, 0.31465423929879627),  # more rows on their kinks than there are dimensions
        ("svr", "sparse", 2, 0.06093073300084785),  # the other dual variable of a row without part in w limits b
        ("quantile", "plain", 6, 0.41161676434612393),  # rounding leaves a dual variable next to its end
    ],
)
def test_degenerate_problems(name, shape, seed, C):
    X, y, weights = drawn(name, shape, seed, True, False)
    model = model_of(name, shape, X, y, weights, True)
    of = removal.Solution(model, solved(model, C))
    found = removal.leave_out(of, np.arange(30))
    assert (found.how != removal.OPEN).all()
    contradicted, off = checked(model, C, found, of)
    assert contradicted == [] and off < 1e-6


@pytest.mark.parametrize("seed", [164, 353])
def test_rows_that_meet_in_one_point_are_followed_apart(seed):
    """Without `Near.apart` the first is left open on one kind of processor, the second on another: by last digits."""
    rng = np.random.default_rng(seed)
    X = (rng.random((120, 7)) < 0.4).astype(float)
    X[60:] = X[:60]
    y = np.where(X @ rng.normal(size=7) + 0.3 * rng.normal(size=120) > 0, 1.0, -1.0)
    y[60:] = np.where(rng.random(60) < 0.9, y[:60], -y[60:])
    model = model_of("svm", "plain", X, y, None, True)
    of = removal.Solution(model, solved(model, 1.0))
    found = removal.leave_out(of, np.arange(120))
    assert (found.how != removal.OPEN).all() and found.gap.max() < 1e-8
    contradicted, off = checked(model, 1.0, found, of)
    assert contradicted == [] and off < 1e-6


@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
def test_refits_contradict_claims_of_rows_that_were_not_read(free, monkeypatch):
    """A control: where rows are taken to be a hundred times farther from their kinks than they are."""
    ordered = removal.Solution.ordered.func
    monkeypatch.setattr(removal.Solution, "ordered", property(lambda of: (ordered(of)[0], 100.0 * ordered(of)[1])))
    X, y, _ = drawn("svm", "plain", 1, free, False)
    model = model_of("svm", "plain", X, y, None, free)
    of = removal.Solution(model, solved(model, 1.0))
    contradicted, off = checked(model, 1.0, removal.leave_out(of, np.arange(30)), of)
    assert len(contradicted) > 3 and off > 0.01


@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
def test_bounds_decide_no_label_otherwise(free):
    X, y, _ = drawn("svm", "plain", 3, free, False, n=120)
    of = removal.Solution(model := model_of("svm", "plain", X, y, None, free), solved(model, 0.3))
    found, bounded = (removal.leave_out(of, np.arange(120), only) for only in (False, True))
    assert np.count_nonzero(bounded.how == removal.BOUND) > 10
    np.testing.assert_array_equal(found.low > 0.0, bounded.low > 0.0)
    np.testing.assert_array_equal(found.high < 0.0, bounded.high < 0.0)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
def test_a_polished_pair_has_the_gap_that_rounding_allows(name, free):
    X, y, _ = drawn(name, "plain", 5, free, False, n=200, d=8)
    model = model_of(name, "plain", X, y, None, free)
    (_, rough), *_ = walk(model, [1.0], parse_rule("dvi+gap"), Newton(), PathOptions(tol=1e-5))
    fine = polished(model, rough)
    assert rough.rel_gap > 1e-9 > 1e-12 > fine.rel_gap


def test_a_band_grows_until_it_has_the_rows_that_move(monkeypatch):
    X, y, _ = drawn("svm", "sparse", 2, False, False, n=150)
    of = removal.Solution(model := model_of("svm", "sparse", X, y, None, False), solved(model, 1.0))
    wide_band = removal.leave_out(of, np.arange(150))
    monkeypatch.setattr(removal, "NEAR", 1)
    monkeypatch.setattr(removal, "GROWTH", 2)
    found = removal.leave_out(of, np.arange(150))
    np.testing.assert_allclose(found.values, wide_band.values, rtol=0, atol=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_without_the_only_row_of_a_class_every_intercept_beyond_the_kinks_is_best(sign):
    """Whether such a row can be followed to its end hangs on the last digits of the solution; it need not be."""
    X, rng = drawn("svm", "plain", 0, True, False)[0], np.random.default_rng(0)
    X[7] += 2.0  # out of the others' hull: w is not 0
    y = np.where(np.arange(30) == 7, sign, -sign)
    for _ in range(16):
        model = model_of("svm", "plain", X * (1.0 + 1e-13 * rng.normal(size=X.shape)), y, None, True)
        of = removal.Solution(model, solved(model, 1.0))
        found = removal.leave_out(of, np.arange(30))
        assert np.isfinite(np.delete([found.low, found.high], 7, axis=1)).all()
        assert (found.low, found.high)[int(sign > 0.0)][7] == pytest.approx(-sign, abs=1e-4)
        assert (found.low, found.high)[int(sign < 0.0)][7] == -sign * np.inf
        w = of.certificate.point.vector + (found.changes[[7]] @ X)[0]
        assert np.abs(w).max() < 1e-9 and found.how[7] == removal.LOCAL
        assert found.distance[7] == pytest.approx(np.linalg.norm(of.certificate.point.vector))


@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
def test_members_are_no_more_than_dimensions_allow(free):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) + 1e-4 * rng.normal(size=(40, 3))
    of = removal.Solution(model := model_of("lad", "plain", X, X.sum(axis=1), None, free), solved(model, 1.0))
    assert removal.Near(of, 40).face(np.arange(40)).members.size <= 3 + 2 * free


# -- behind a kernel ---------------------------------------------------------------------------------------------------

KERNELS = {
    "rbf": lambda G, a, b: np.exp(-0.3 * (a[:, None] + b - 2.0 * G)), "poly": lambda G, a, b: (0.3 * G + 1.0) ** 3,
    "linear": lambda G, a, b: G,
}  # fmt: skip


def behind(kernel, seed, free, weighted, n=40):
    """Return a solution behind a kernel, and its problem as rows of numbers: kinks and ends of the boxes, at C = 1."""
    X, y, weights = drawn("svm", "tied" if seed % 2 else "plain", seed, free, weighted, n=n, d=3)
    X = X / X.std(axis=0)
    options = {"kernel": kernel, "gamma": 0.3, "degree": 3, "coef0": 1.0, "bias": 0.0, "dtype": "float64",
               "threads": 1}  # fmt: skip
    rows = behind_kernel(LINEAR_SVM).rows(X, y, options, None, 0.0)
    model = kernel_svm_model(rows, weights, "free" if free else None)
    square = np.einsum("ij,ij->i", X, X)
    values, vectors = np.linalg.eigh(KERNELS[kernel](X @ X.T, square, square))
    return model, vectors * np.sqrt(np.maximum(values, 0.0)), y, np.ones(n) if weights is None else weights


def behind_claims(model, R, y, s, C, free):
    """Return what was found, and how many claims refits contradict and how many were compared."""
    (_, pair), *_ = walk(model, [C], parse_kernel_rule("gap"), make_kernel_solver("auto"), PathOptions(tol=1e-8))
    found = removal.leave_out(removal.Solution(model, polished(model, pair)), np.arange(y.size))
    low, high = np.where(y > 0.0, 0.0, -C * s), np.where(y > 0.0, C * s, 0.0)
    wrong = compared = 0
    for i in np.flatnonzero(found.how == removal.LOCAL):
        keep = np.arange(y.size) != i
        reference = refit(R[keep], y[keep], low[keep], high[keep], free)
        if reference is None:
            continue
        w, b_low, b_high = reference
        form, size, compared = float(R[i] @ w), NEAR * (1.0 + np.abs(R[i]) @ np.abs(w)), compared + 1
        wrong += not (found.low[i] - size <= form + b_low and form + b_high <= found.high[i] + size)
    return found, wrong, compared


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
def test_no_refit_contradicts_a_claim_behind_a_kernel(kernel, free, weighted):
    for seed in range(wide(1, 8)):
        made = behind(kernel, seed, free, weighted)
        for C in (0.1, 3.0):
            found, wrong, compared = behind_claims(*made, C, free)
            assert wrong == 0 and compared > 5 and (found.how != removal.OPEN).all(), (seed, C)
            unsure = ~((found.low > 0.0) | (found.high < 0.0)) & (np.abs(found.values) > NEAR)
            assert free or not unsure.any(), (seed, C)  # several intercepts may be best


def test_what_vectors_behind_a_kernel_miss_is_counted(monkeypatch):
    own = removal.Spanned.__init__

    def rough(self, *given):
        own(self, *given)
        X = self.X * (1.0 + 0.02 * np.random.default_rng(0).normal(size=self.X.shape))
        self.X, self.error = X, self._off(self.blocks.block(self.index, self.index), X, self.sizes)

    made = behind("rbf", 0, False, False)
    monkeypatch.setattr(removal.Spanned, "__init__", rough)
    found, wrong, compared = behind_claims(*made, 3.0, False)
    assert wrong == 0 and compared > 10
    monkeypatch.setattr(removal.Spanned, "_off", lambda *given: 1e-16)
    assert behind_claims(*made, 3.0, False)[1] > 0


def test_a_row_of_zeros_behind_a_kernel_is_never_moved_and_no_warning(tmp_path):
    rng = np.random.default_rng(0)
    X, y = np.round(rng.normal(size=(20, 2)), 1), np.where(np.arange(20) % 2, 1.0, -1.0)
    X[3:6] = 0.0
    run = screenpath.kernel_svm_path(X, y, kernel="linear", intercept="none", grid=[1.0])
    run.save(tmp_path / "run")
    found = screenpath.load_run(tmp_path / "run", (X, y)).loo(0)
    assert all(np.abs(one[3:6]).max() < 1e-9 for one in (found.values, found.low, found.high))


def long_rows(name, seed, free):
    """Return a model of features that differ in scale by three orders of magnitude, and its solution."""
    rng = np.random.default_rng(seed)
    scale = np.array([0.5, 5.0, 50.0, 1000.0])
    X = rng.normal(size=(40, 4)) * scale + (seed % 2) * scale
    forms = (X / scale) @ rng.normal(size=4)
    y = np.round(forms - np.median(forms) + 0.5 * rng.normal(size=40), 6)
    model = model_of(name, "plain", X, np.where(y > 0.0, 1.0, -1.0) if name == "svm" else y, None, free)
    return model, removal.Solution(model, solved(model, 0.03))


@pytest.mark.parametrize("free", [False, True], ids=["no intercept", "free"])
@pytest.mark.parametrize("name", LOSSES)
def test_long_rows_leave_narrow_bounds_that_no_refit_contradicts(name, free):
    """What dual variables are rounded by moves the forms of such rows: ``w`` is moved back onto the kinks."""
    contradicted, wide, rows = [], 0, 0
    for seed in range(4):
        model, of = long_rows(name, seed, free)
        found = removal.leave_out(of, np.arange(40))
        contradicted += checked(model, 0.03, found, of)[0]
        shifted = replace(found, low=found.high + 0.1, high=found.high + 0.2)  # the control
        assert len(checked(model, 0.03, shifted, of)[0]) > 30
        wide, rows = wide + np.count_nonzero(~(found.high - found.low < LEFT)), rows + 40
    assert contradicted == [] and 20 * wide < rows
