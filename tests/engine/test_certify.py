"""``certify``: gaps of models made elsewhere against exact fractions, and what follows from them."""

from fractions import Fraction as F

import numpy as np
import pytest

import screenpath
from screenpath import certify
from screenpath.errors import DataError
from screenpath.regions.geometry import KernelPoint
from tests.certificates.compare import by_verify, exact
from tests.certificates.mutants import Frames

MODELS = 200
KINDS = {  # model, its options, LIBLINEAR's name of the problem
    "svm": ("svm", {}, ""),
    "svm-bias": ("svm", {"bias": 1.0}, ""),
    "svm-bias-3": ("svm", {"bias": 3.0}, ""),
    "svm-free": ("svm", {"intercept": "free"}, ""),
    "lad": ("lad", {}, ""),
    "lad-free": ("lad", {"intercept": "free"}, ""),
    "quantile": ("quantile", {"tau": 0.25, "bias": 1.0}, ""),
    "svr-free": ("svr", {"epsilon": 0.25, "intercept": "free"}, ""),
    "l2": ("sparse-svm", {"bias": 1.0}, "L2R_L2LOSS_SVC"),
    "l1": ("sparse-svm", {"bias": 1.0}, "L1R_L2LOSS_SVC"),
}


def problem(rng, kind):
    """Return a small data set, far from the origin now and then, and weights that somebody may have found."""
    n, d = int(rng.integers(6, 14)), int(rng.integers(1, 4))
    X = np.round(rng.normal(size=(n, d)) + (rng.random() < 0.4) * (3e4 if "free" in kind else 30.0), 3)
    X[X == 0.0] = 0.5
    if KINDS[kind][0] in ("svm", "sparse-svm"):
        y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    else:
        y = np.round(X @ rng.normal(size=d) + rng.normal(size=n), 3)
    w = rng.normal(size=d) * 10.0 ** rng.integers(-3, 2)
    b = 0.0 if kind in ("svm", "lad") else float(rng.normal())
    return X, y, w, b, float(10.0 ** rng.uniform(-2, 1))


def objective(kind, X, y, w, b, C):
    """Return the objective of weights in fractions."""
    model, options, _ = KINDS[kind]
    rows = [sum((F(x) * F(v) for x, v in zip(row, w, strict=True)), F(b)) for row in X.tolist()]
    bias, C = F(options.get("bias", 1.0)), F(C)
    every = [F(v) for v in w] + ([F(b) / bias] if "bias" in options else [])
    penalty = sum(v * v for v in every) / 2 if kind != "l1" else sum(map(abs, every))
    apart = [F(a) - f for a, f in zip(y.tolist(), rows, strict=True)]
    hinges = [max(F(0), 1 - F(a) * f) for a, f in zip(y.tolist(), rows, strict=True)]
    losses = {
        "svm": lambda: sum(hinges), "sparse-svm": lambda: sum(t * t for t in hinges),
        "lad": lambda: sum(map(abs, apart)), "quantile": lambda: sum(max((F(1, 4) - 1) * t, t / 4) for t in apart),
        "svr": lambda: sum(max(F(0), abs(t) - F(1, 4)) for t in apart),
    }  # fmt: skip
    return penalty + C * losses[model]()


def optimum(kind, data, n, C, folder):
    """Return exact bounds of the optimum, by a path's own certificate."""
    model, options, name = KINDS[kind]
    if model == "sparse-svm":
        share = 1.0 / (2.0 * C * n)
        at = {"alpha": [0.0 if kind == "l1" else share], "beta": [share if kind == "l1" else 2.0**-900]}
        options, scale = {**options, **at, "loss": "squared-hinge"}, 2 * F(C) * n
    else:
        options, scale = {**options, "c": C}, F(1)
    if "bias" not in options:
        options.setdefault("intercept", "none")
    run = screenpath.run(model, data, **options, tol=1e-11, certificate=True, out=folder, quiet=True)
    _, _, steps, faults = exact.certified((run.run.path / "certificate.bin").read_bytes(), data)
    assert not faults and run.certified
    (step,) = steps.values()
    gap = min(exact.ends(step.gap(theta))[1] for theta in step.completed())
    off = F(1, 10**15) * step.P  # 1 / (2 C n) is rounded
    return scale * (step.P - gap - off), scale * (step.P + off)


def model_file(path, w, b, kind):
    """Write weights as JSON, or where the problem has a name as LIBLINEAR does."""
    name = KINDS[kind][2]
    if not name:
        path.write_text(f'{{"weights": {w.tolist()!r}, "intercept": {b!r}}}')
    else:
        lines = "\n".join(repr(v) for v in [*w.tolist(), b])
        path.write_text(f"solver_type {name}\nnr_class 2\nlabel 1 -1\nnr_feature {w.size}\nbias 1\nw\n{lines}\n")
    return path


@pytest.fixture(scope="module", params=list(KINDS))
def judged(request, tmp_path_factory):
    """Return models of a kind with all that is proven about them, and exact bounds of optimum and objective."""
    kind, folder = request.param, tmp_path_factory.mktemp("certify")
    rng, found = np.random.default_rng(list(KINDS).index(kind)), []
    model, options, _ = KINDS[kind]
    for k in range(MODELS // len(KINDS)):
        X, y, w, b, C = problem(rng, kind)
        rows = (" ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1)) for row in X.tolist())
        lines = [f"{label!r} {row}\n" for label, row in zip(y.tolist(), rows, strict=True)]
        (data := folder / f"data{k}").write_text("".join(lines))
        low, high = optimum(kind, data, len(y), C, folder / f"run{k}")
        if k % 2:  # a few digits of the optimum, as solvers stop
            path = screenpath.load_run(folder / f"run{k}")
            w, b = np.round(path.coef(), 3 + k % 4), float(np.round(path.intercept(), 3 + k % 4))
        file = model_file(folder / f"model{k}", w, b, kind)
        told = {} if KINDS[kind][2] else options
        out = folder / f"proof{k}"
        try:
            one = certify(file, data, model=model, c=C, out=str(out), **told)
        except DataError as error:  # a gap as large as the objective has no certificate
            assert "as large as the objective" in error.message
            one, out = certify(file, data, model=model, c=C, **told), None
        found.append((one, objective(kind, X, y, w, b, C), low, high, out, (X, y, w, b, C, data)))
    return kind, found


def test_the_gap_is_the_exact_one_and_never_below(judged):
    """The exact gap lies between two fractions, by the objective of theirs and bounds of the optimum."""
    assert len(judged[1]) * len(KINDS) == MODELS
    for one, value, low, high, _, _ in judged[1]:
        least, most = value - high, value - low
        assert F(one.gap) >= least and F(one.value) >= value and F(one.lowest) <= high
        assert F(one.gap) <= most * (1 + F(1, 10**6)) + F(1, 10**9) * value
        assert F(one.rel_gap) * value >= least and one.accurate
        assert F(one.rel_gap) <= F(one.gap) / value * (1 + F(1, 10**6))


def test_another_problem_is_noticed(judged):
    """Negative control: with a C that is 1 % less, gaps are below the exact ones, and the test above would fail."""
    kind, found = judged
    model, options, name = KINDS[kind]
    below = 0
    for k, (_, value, _, high, _, (*_, C, data)) in enumerate(found):
        file = data.with_name(f"model{k}")
        one = certify(file, data, model=model, c=0.99 * C, **({} if name else options))
        below += F(one.gap) < value - high or F(one.value) < value
    assert below > len(found) // 2


def test_both_checkers_accept_the_certificate(judged):
    """The primal point of the certificate is theirs, to the rounding of an intercept's unit."""
    kind, found = judged
    with_folder = [row for row in found if row[4] is not None]
    assert len(with_folder) > len(found) // 3
    for one, value, _, _, out, (X, _, w, b, C, data) in with_folder:
        assert one.folder == str(out)
        assert screenpath.verify_certificate(out, data).holds
        _, _, steps, faults = exact.certified((out / "certificate.bin").read_bytes(), data)
        assert not faults and exact.main([str(out), str(data)]) == 0
        scale = 2 * F(C) * len(X) if KINDS[kind][2] else F(1)
        assert abs(scale * steps[0].P - value) <= F(1, 10**12) * value
        stored = screenpath.load_run(out)
        assert stored.coef().tolist() == w.tolist() and stored.intercept() == pytest.approx(b, abs=1e-9)


def test_a_changed_weight_is_refused_by_both_checkers(judged):
    """Negative control of the certificates: their claims are about these weights."""
    _, _, _, _, out, (*_, data) = next(row for row in judged[1] if row[4] is not None and row[0].rel_gap < 0.5)
    parts = Frames((out / "certificate.bin").read_bytes())
    arrays = parts.steps[0][2]
    name = "w" if "w" in arrays else "values"
    arrays[name] = 2.0 * arrays[name] + 1.0
    (changed := out.with_name("changed")).write_bytes(parts.packed())
    assert exact.certified(parts.packed(), data)[3] and by_verify(changed, data)[0]


def test_distances_and_labels_hold_for_the_optimum(judged):
    kind, found = judged
    if "free" in kind:  # some sets are far from the origin: their columns are centred, and b is moved
        files = [(data.with_name(f"run{k}") / "run.json").read_text() for k, (*_, (*_, data)) in enumerate(found)]
        assert 0 < sum('"shift": null' not in text for text in files) < len(files)
    for k, (one, *_, (X, y, w, b, _, data)) in enumerate(found):
        if kind == "l1":
            assert np.isnan(one.farthest) and one.same == one.other == one.open == 0
            continue
        path = screenpath.load_run(data.with_name(f"run{k}"))
        v, c = path.coef(), path.intercept()
        bias = KINDS[kind][1].get("bias")
        apart = np.append(w - v, (b - c) / bias if bias else 0.0)
        assert one.nearest * (1 - 1e-9) - 1e-4 <= np.linalg.norm(apart) <= one.farthest * (1 + 1e-9) + 1e-4
        theirs, best = X @ w + b, X @ v + c
        if KINDS[kind][0] in ("svm", "sparse-svm"):
            sure = np.abs(best) > 1e-3
            assert one.same + one.other + one.open == len(y)
            assert one.same <= np.sum((theirs > 0) == (best > 0)) + np.sum(~sure)
            assert one.other <= np.sum((theirs > 0) != (best > 0)) + np.sum(~sure)
            assert one.open <= np.sum(np.abs(best) < 0.5)
        elif kind == "lad" or kind == "quantile":
            assert np.max(np.abs(theirs - best)) <= one.change + 1e-3


@pytest.mark.parametrize("weight", [1.0, 30.0, 1e6])
def test_a_squared_hinge_far_above_zero_is_not_taken_for_a_smoothed_one(weight, tmp_path):
    """The model knows it as a smoothed hinge that no point below the value at 0 leaves."""
    X, y, w = np.array([[1.0], [2.0], [-1.0]]), np.array([1.0, -1.0, -1.0]), np.array([weight])
    one = certify(model_file(tmp_path / "model", w, 0.0, "l2"), X, y, c=1.0)
    value = objective("l2", X, y, w, 0.0, 1.0)
    assert value <= F(one.value) <= value * (1 + F(1, 10**9))
    assert F(one.gap) >= value - objective("l2", X, y, [0.0], 0.0, 1.0)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-8])
def test_a_kernel_model_against_exact_fractions(kernel, tol, tmp_path):
    """Its certificate has its own dual variables; the gap that is reported has better ones, and is never below."""
    svm = pytest.importorskip("sklearn.svm", reason="needs scikit-learn (extra: sklearn)")
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(25, 2)), 2)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=25) > 0.0, 1.0, -1.0)
    rows = (" ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1)) for row in X.tolist())
    data = tmp_path / "data"
    data.write_text("".join(f"{label:g} {row}\n" for label, row in zip(y, rows, strict=True)))

    def judged(tol, name):
        model = svm.SVC(kernel=kernel, C=2.0, tol=tol, coef0=0.5).fit(X, y)
        one = certify(model, data, out=str(tmp_path / name))
        content = (tmp_path / name / "certificate.bin").read_bytes()
        _, _, steps, faults = exact.certified(content, data)
        assert not faults and screenpath.verify_certificate(tmp_path / name, data).holds
        gap = min(exact.ends(steps[0].gap(theta))[1] for theta in steps[0].completed())
        return one, exact.ends(steps[0].P), gap

    one, (least, most), own = judged(tol, "proof")
    _, (_, high), near = judged(1e-9, "accurate")
    rest = F(1, 10**12) * most  # dual variables are moved by the rounding of their sum
    assert F(one.gap) >= least - high - rest and F(one.value) >= least - rest and F(one.lowest) <= high
    assert F(one.gap) <= min(own, most - (high - near) + F(2, 10**6) * most) + rest


def test_weights_of_rows_are_repetition_where_they_are_an_array():
    """Rows without weight change no objective; negative control: weights that are left out do."""
    rng = np.random.default_rng(5)
    X, y, weights = rng.normal(size=(12, 2)), np.repeat([1.0, -1.0], 6), np.arange(12) % 3
    about = {"model": "svm", "c": 0.5, "intercept": "free"}
    one = certify(([0.2, -0.1], 0.3), X, y, sample_weight=weights, **about)
    many = certify(([0.2, -0.1], 0.3), np.repeat(X, weights, axis=0), np.repeat(y, weights), **about)
    assert one.gap == pytest.approx(many.gap, rel=1e-9)
    assert certify(([0.2, -0.1], 0.3), X, y, **about).gap != pytest.approx(many.gap, rel=1e-2)


@pytest.mark.parametrize("shrunk", [1.0, 0.875])
def test_weights_behind_a_kernel_are_no_farther_from_the_optimum_than_they_are(shrunk, monkeypatch):
    """The optimum has two rows at the ends of their boxes, and the third in balance with them: its distance is known.

    Negative control: the upper bound of the squared distance is no lower one.
    """
    svm = pytest.importorskip("sklearn.svm", reason="needs scikit-learn (extra: sklearn)")
    X, y, weights, C, rate = np.array([[0.0], [1.0], [-1.0]]), [-1.0, 1.0, 1.0], [0.7, 0.3, 0.1], 16.0, 2.0**-5
    model = svm.SVC(C=C, gamma=rate, tol=1e-9).fit(X, y, sample_weight=weights)
    best = np.array([-0.4, 0.3, 0.1]) * C
    np.testing.assert_allclose(model.dual_coef_[0][np.argsort(model.support_)], best, rtol=1e-12)
    model.dual_coef_ = model._dual_coef_ = shrunk * model.dual_coef_
    away = (1.0 - shrunk) * np.sqrt(best @ np.exp(-rate * (X - X.T) ** 2) @ best)
    one = certify(model, X, y, sample_weight=weights)
    assert one.nearest <= away * (1.0 + 1e-12) + 1e-14 and away <= one.farthest <= away + 1e-5
    assert one.nearest >= away - 1e-5
    if shrunk == 1.0:
        own = KernelPoint.apart
        monkeypatch.setattr(KernelPoint, "apart", lambda *points: (own(*points)[1],) * 2)
        assert certify(model, X, y, sample_weight=weights).nearest > 1e-8
