"""Smoothed losses behind a kernel against a cone solver, the linear model of that loss, fractions and the checker."""

import json
import shutil
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

import screenpath
from screenpath.catalogue.losses import LOSSES
from screenpath.errors import UsageError
from screenpath.problem import smooth
from screenpath.rows.gram import GramRows
from screenpath.rows.kernel_functions import KernelFunction
from screenpath.verify import products
from screenpath.verify.file import pack
from tests.certificates.make_invalid import seal
from tests.certificates.mutants import Frames
from tests.cli.conftest import call  # noqa: F401 (fixture)

GRID = [0.02, 0.7, 20.0, 900.0]
PATHS = {
    "svm": screenpath.kernel_svm_path, "lad": screenpath.kernel_lad_path,
    "quantile": screenpath.kernel_quantile_path, "svr": screenpath.kernel_svr_path,
}  # fmt: skip


def losses_of(model, target, form, width, own):
    """Return the losses as a cone solver takes them: Huber's as its own, others as the least of kink and square."""
    if model == "lad":
        return cp.huber(target - form, width) / (2.0 * width)
    if model == "svr":
        t = cp.hstack([target - form - own["epsilon"], form - target - own["epsilon"]])
    else:
        t = 1.0 - cp.multiply(target, form) if model == "svm" else target - form
    u = cp.Variable(t.shape)
    lo, hi = (own["tau"] - 1.0, own["tau"]) if model == "quantile" else (0.0, 1.0)
    found = cp.maximum(lo * (t - u), hi * (t - u)) + cp.square(u) / (2.0 * width)
    return found[: target.size] + found[target.size :] if model == "svr" else found


def problem(seed: int):
    rng = np.random.default_rng(seed)
    n, model = int(rng.integers(14, 36)), list(PATHS)[seed % 4]
    X = rng.normal(size=(n, int(rng.integers(1, 4))))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_t(3, n) + rng.uniform(-1.0, 1.0)
    if model == "svm":
        y = np.where(y > np.median(y), 1.0, -1.0)
    if seed % 3 == 0:
        X[n // 2 :], y[n // 2 :] = X[: n - n // 2], y[: n - n // 2].round()  # rows again, and ties
        y[:2] = (-1.0, 1.0) if model == "svm" else y[:2]
    own: dict = {"quantile": {"tau": float(rng.uniform(0.1, 0.9))}, "svr": {"epsilon": 0.2}}.get(model, {})
    weights = rng.choice([0.0, 0.3, 1.0, 2.5], n) if seed // 4 % 2 else None
    if weights is not None:
        weights[:2] = 1.0
    options = {"smoothing": float(rng.choice([0.01, 0.3, 2.0])), "intercept": str(rng.choice(["none", "free"])), **own}
    return model, X, y, weights, options


@pytest.mark.parametrize("seed", range(24))
def test_objective_and_forms_are_those_of_a_cone_solver(seed):
    model, X, y, weights, options = problem(seed)
    kernel, K = [("rbf", rbf_kernel), ("laplacian", laplacian_kernel)][seed // 8 % 2]
    found = PATHS[model](X, y, kernel=kernel, gamma=0.6, grid=GRID, tol=1e-9, sample_weight=weights, **options)
    assert found.certified and all(step.cells["rejection_ratio"] == 0.0 for step in found.steps)
    values, vectors = np.linalg.eigh(K(X, gamma=0.6))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    for C, step in zip(GRID, found.steps, strict=True):
        w, b = cp.Variable(y.size), cp.Variable() if options["intercept"] == "free" else 0.0
        losses = losses_of(model, y, root @ w + b, options["smoothing"], options)
        total = C * cp.sum(cp.multiply(np.ones(y.size) if weights is None else weights, losses))
        best = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + total))
        best.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        assert step.dual <= best.value * (1.0 + 1e-7) and step.primal >= best.value * (1.0 - 1e-7)
        assert step.primal == pytest.approx(best.value, rel=1e-7)


def test_huber_behind_a_linear_kernel_is_the_linear_huber():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + rng.standard_t(2, 60)
    behind = screenpath.kernel_lad_path(X, y, kernel="linear", grid=[0.5], smoothing=0.4, tol=1e-11)
    linear = screenpath.huber_path(X, y, smoothing=0.4, alphas=[1.0 / (0.5 * 60)], betas=[0.0], tol=1e-11)
    assert behind.certified and linear.certified
    expected = X @ linear.steps[0].coefficients.dense()[:-1] + linear.steps[0].coefficients.dense()[-1]
    np.testing.assert_allclose(behind.decision_function(X, 0), expected, atol=1e-5)
    assert behind.steps[0].primal == pytest.approx(linear.steps[0].primal * 0.5 * 60, rel=1e-9)


def test_a_narrow_smoothing_tends_to_the_exact_loss():
    _, X, y, _, _ = problem(1)
    exact = screenpath.kernel_lad_path(X, y, gamma=0.6, grid=GRID, tol=1e-9)
    near = screenpath.kernel_lad_path(X, y, gamma=0.6, grid=GRID, tol=1e-9, smoothing=1e-7)
    for one, other in zip(exact.steps, near.steps, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=1e-6)


def exact_share(t, theta, lo, hi, bend) -> Fraction:
    """Return the largest ``(a - theta) t - bend/2 (a - theta)^2`` over the box, in fractions."""
    step = min(max(t / bend, lo - theta), hi - theta)
    return max(step * (t - bend * step / 2), Fraction(0))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e9])
def test_shares_are_bounded_wherever_the_forms_are(scale):
    rng = np.random.default_rng(5)
    n = 120
    lo, hi = -rng.uniform(0.0, 2.0, n), rng.uniform(0.0, 2.0, n)
    theta = np.where(rng.random(n) < 0.3, lo, np.where(rng.random(n) < 0.3, hi, lo + rng.random(n) * (hi - lo)))
    bend, errors = scale * rng.uniform(1e-3, 1.0, n), scale * 10.0 ** rng.uniform(-18.0, -1.0, n)
    c = scale * rng.normal(size=n)
    forms = np.where(rng.random(n) < 0.5, c - bend * theta, scale * rng.normal(size=n))  # half at their best
    xi, ell, plain, slack, bent, unsure = smooth.sums(c, c - forms, lo, hi, theta, errors, bend)
    rows = [[Fraction(float(v)) for v in row] for row in zip(c, forms, lo, hi, theta, errors, bend, strict=True)]

    def total(part):
        return sum(exact_share(k - (f + part * e) - w * a, a, low, high, w) for k, f, low, high, a, e, w in rows)

    for part in (-1, 0, 1):
        assert total(Fraction(part)) <= Fraction(slack)
    assert total(Fraction(0)) >= Fraction(plain) * Fraction(1 - 1e-9) - Fraction(1e-20)
    # A control: without the errors of the forms the bound does not hold.
    narrow = smooth.sums(c, c - forms, lo, hi, theta, 0.0 * errors, bend)[3]
    assert max(total(Fraction(part)) for part in (-1, 1)) > Fraction(narrow)
    dual = sum(k * a - w * a * a / 2 for k, _, _, _, a, _, w in rows)
    assert float(abs(Fraction(ell) - dual)) <= 1e-13 * scale * n * 4 and bent >= 0.0
    loss = sum(exact_share(k - f, Fraction(0), low, high, w) for k, f, low, high, _, _, w in rows)
    assert xi == pytest.approx(float(loss), rel=1e-12)
    for part in (-1, 1):
        moved = sum(exact_share(k - f - part * e, Fraction(0), low, high, w) for k, f, low, high, _, e, w in rows)
        assert abs(moved - loss) <= Fraction(unsure)


def test_the_smoothing_of_a_row_is_divided_by_its_weight():
    assert smooth.bends(2.0, np.array([1.0, 4.0, 0.0])).tolist() == [2.0, 0.5, 2.0]


def test_a_row_alone_is_bounded_closely():
    """Near a form at which its share is 0 rounding is all there is; the bounds are no larger than they must be."""
    rng, missed = np.random.default_rng(6), 0
    for _ in range(400):
        hi, bend, theta = 10.0 ** rng.uniform(-2.0, 2.0, 3)
        lo, theta = -hi * float(rng.choice([0.0, 0.2, 1.0])), float(rng.choice([min(theta, hi), hi, -0.2 * hi]))
        lo = min(lo, theta)
        c = 10.0 ** rng.uniform(-3.0, 3.0) * float(rng.choice([-1.0, 1.0]))
        form = float(rng.choice([c - bend * theta * (1.0 + 2.0**-52 * rng.integers(-2, 3)), rng.normal() * c]))
        error = float(rng.choice([0.0, 1e-3 * abs(c)]))
        row = [Fraction(float(v)) for v in (c, form, lo, hi, theta, error, bend)]
        given = [np.array([float(v)]) for v in (c, c - form, lo, hi, theta, error, bend)]
        _, _, plain, slack, _, unsure = smooth.sums(*given)
        k, f, low, high, a, e, w = row
        ends = [exact_share(k - f - part * e - w * a, a, low, high, w) for part in (-1, 1)]
        assert max(ends) <= Fraction(float(slack))
        assert float(slack) <= (1.0 + 1e-9) * float(max(ends)) + 1e-13 * hi * (abs(c) + abs(form) + bend * hi)
        moves = [abs(exact_share(k - f - part * e, Fraction(0), low, high, w)
                     - exact_share(k - f, Fraction(0), low, high, w)) for part in (-1, 1)]  # fmt: skip
        assert max(moves) <= Fraction(float(unsure))
        if lo == -hi:
            assert float(unsure) <= 2.0 * float(max(moves)) + 1e-13 * hi * (abs(c) + abs(form) + bend * hi)
        missed += exact_share(k - f - w * a, a, low, high, w) > Fraction(plain)
    assert missed  # a control: some shares are larger than they are computed


def written(folder, model) -> None:
    rng = np.random.default_rng(2)
    X, s = rng.normal(size=(50, 3)), rng.integers(1, 4, 50)
    y = np.sin(X[:, 0]) + 0.2 * rng.standard_t(3, 50)
    y = np.where(y > 0.0, 1.0, -1.0) if model == "svm" else y
    table = np.column_stack([X, y, s])
    np.savetxt(folder / "d.csv", table, delimiter=",", header="a,b,c,y,s", comments="", fmt="%.17g")


@pytest.mark.parametrize("model", PATHS)
@pytest.mark.parametrize(
    "words", [("--intercept", "none"), ("--weight-column", "s"), ("--bias", "1", "--scale", "standard")]
)
def test_the_checker_proves_what_a_run_claims_and_refuses_what_it_does_not(call, tmp_path, model, words):  # noqa: F811
    written(tmp_path, model)
    drop = ("--drop", "s") if "s" not in words else ()
    command = (model, "d.csv", "--target", "y", *words, *drop, "--kernel", "rbf", "--smoothing", "0.3", "--grid", "4")
    ran = call(*command, "--certificate", "-q", "-o", "r")
    assert (ran.code, ran.err) == (0, "")
    found = screenpath.verify_certificate("r")
    assert found.holds and found.proven == 4 and found.claims == 0, found.faults
    honest = (tmp_path / "r" / "certificate.bin").read_bytes()

    def faults(change) -> list:
        frames = Frames(honest)
        change(frames)
        shutil.rmtree("f", ignore_errors=True)
        shutil.copytree("r", "f")
        (tmp_path / "f" / "certificate.bin").write_bytes(frames.packed())
        seal(tmp_path / "f", json.loads((tmp_path / "f" / "run.json").read_text()))
        return [reason for _, reason in screenpath.verify_certificate("f").faults]

    assert faults(lambda frames: None) == []

    def better(frames):
        frames.steps[-1][1]["primal"] *= 1.0 - 1e-4

    def fixed(frames):  # a row beyond its kink may still be between the ends of its box
        arrays = frames.steps[-1][2]
        arrays["claims"] = pack(np.ones(4 * arrays["claims"].size, dtype=np.uint8))

    assert faults(better)
    assert "nothing proves it" in faults(fixed)[0]


def test_a_checker_that_forgets_the_smoothing_is_found_out(call, tmp_path, monkeypatch):  # noqa: F811
    """A control: the two programs know the loss each on its own."""
    written(tmp_path, "lad")
    words = ("--target", "y", "--kernel", "rbf", "--smoothing", "0.3", "--grid", "3")
    assert call("lad", "d.csv", *words, "--certificate", "-q", "-o", "r").code == 0
    right = products.Model.parts
    assert screenpath.verify_certificate("r").holds

    def sharp(self, block):
        return [part._replace(cells=part.cells._replace(curve=0.0)) for part in right(self, block)]

    monkeypatch.setattr(products.Model, "parts", sharp)
    assert not screenpath.verify_certificate("r").holds


def test_what_is_for_kinks_is_refused(call, tmp_path):  # noqa: F811
    written(tmp_path, "lad")
    data, kernel = ("d.csv", "--target", "y"), ("--kernel", "rbf", "--smoothing", "0.3", "--grid", "3", "-q")
    ran = call("lad", *data, *kernel, "--rule", "gap", "-o", "r")
    assert ran.code == 2 and "for losses with kinks" in ran.err
    ran = call("lad", *data, "--smoothing", "0.3")
    assert ran.code == 2 and "the model huber with --penalty l2" in ran.err
    assert call("huber", *data, "--smoothing", "0.3", "--penalty", "l2", "--alphas", "2", "-q", "-o", "h").code == 0
    ran = call("huber", *data, "--kernel", "rbf")
    assert ran.code == 2 and "add --kernel rbf --smoothing WIDTH to lad" in ran.err
    assert call("lad", *data, *kernel, "-o", "r").code == 0
    ran = call("loo", "r", "--step", "0")
    assert ran.code == 2 and "this one is smoothed" in ran.err
    ran = call("cv", "lad", *data, *kernel, "--folds", "loo", "-o", "c")
    assert ran.code == 2 and "this one is smoothed" in ran.err
    written(tmp_path, "svm")
    assert call("svm", *data, *kernel, "-o", "s").code == 0
    ran = call("predict", "s", "d.csv", "--step", "nu=0.1")
    assert ran.code == 2 and "without weights and smoothing" in ran.err


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_a_certificate_is_restored_byte_for_byte(intercept):
    _, X, y, _, _ = problem(1)
    rows = GramRows(X, KernelFunction("rbf", gamma=0.6), np.ones(y.size))
    model = LOSSES["lad"].model(rows, y, None, intercept, smoothing=0.3)
    assert model.closed_until == 0.0  # that of the loss with kinks would be more
    one = model.certify(2.0, None, model.start(2.0).theta)
    other = model.restore(model.state(one))
    assert (one.primal, one.gap, one.intercept) == (other.primal, other.gap, other.intercept)
    with pytest.raises(UsageError, match="weight 0"):
        LOSSES["lad"].model(rows, y, np.full(y.size, 1e-300), intercept, smoothing=1e300)
