"""certify: LIBSVM's models of several labels, as LIBSVM writes them, made from a fitted SVC; what is wrong in them."""

import json
from itertools import combinations

import numpy as np
import pytest

import screenpath
from screenpath.errors import DataError
from tests.cli.conftest import libsvm_text
from tests.schemas import faults

svm = pytest.importorskip("sklearn.svm", reason="needs scikit-learn (extra: sklearn)")

GAMMA, C = 0.7, 2.0
KERNELS = {"linear": "kernel_type linear", "rbf": f"kernel_type rbf\ngamma {GAMMA}",
           "poly": f"kernel_type polynomial\ndegree 2\ngamma {GAMMA}\ncoef0 1"}  # fmt: skip


def clouds():
    """Return rows of four labels that overlap, some of them repeated, and labels in no order."""
    rng = np.random.default_rng(8)
    y = np.arange(80) % 4
    rows = rng.normal(size=(80, 3)) + np.array([[0, 0, 0], [1.5, 0, 1], [0, 1.5, 1], [1, 1, 0]])[y]
    rows[:, 1] = np.where(rng.random(80) < 0.2, 0.0, rows[:, 1])
    rows[70:] = rows[:10]
    return np.round(rows, 6), np.array([3, 1, 4, 2])[y]


def written(model, rows, kernel: str, order=None) -> str:
    """Return the model file; labels in ``order`` of their numbers, as LIBSVM has them where they appear first."""
    k = model.classes_.size
    order = range(k) if order is None else order
    own = np.repeat(np.arange(k), model.n_support_)
    rho = dict(zip(combinations(range(k), 2), model.intercept_, strict=True))
    one_of = lambda a, b: -rho[a, b] if a < b else rho[b, a]  # noqa: E731
    lines = ["svm_type c_svc", KERNELS[kernel], f"nr_class {k}", f"total_sv {own.size}"]
    lines.append("rho " + " ".join(f"{one_of(a, b):.17g}" for a, b in combinations(order, 2)))
    lines.append("label " + " ".join(str(model.classes_[a]) for a in order))
    lines += ["nr_sv " + " ".join(str(model.n_support_[a]) for a in order), "SV"]
    for a in order:
        for at in np.flatnonzero(own == a):
            # The coefficient against label b; sv_coef has a positive one where the own label is the first of the pair.
            against = {b: abs(model.dual_coef_[b - (b > a), at]) for b in range(k) if b != a}
            place = list(order).index(a)
            cells = [against[b] if place < list(order).index(b) else -against[b] for b in order if b != a]
            entries = " ".join(f"{j}:{v:.8g}" for j, v in enumerate(rows[model.support_[at]], 1) if v)
            lines.append(" ".join(f"{cell:.17g}" for cell in cells) + f" {entries} ")
    return "\n".join(lines) + "\n"


def objective(model, rows, y, kernel: str) -> dict:
    """Return each pair's objective at the solution of SVC, by its decisions and its coefficients."""
    own, k = np.repeat(np.arange(model.classes_.size), model.n_support_), model.classes_.size
    dots, vectors = rows @ rows.T, rows[model.support_]
    squares = np.add.outer((rows**2).sum(1), (rows**2).sum(1)) - 2.0 * dots
    gram = {"linear": dots, "rbf": np.exp(-GAMMA * squares), "poly": (GAMMA * dots + 1.0) ** 2}[kernel]
    assert vectors.shape[0] == own.size
    forms, found = model.decision_function(rows), {}
    for p, (a, b) in enumerate(combinations(range(k), 2)):
        coefficients = np.zeros(len(rows))
        coefficients[model.support_[own == a]] = model.dual_coef_[b - 1, own == a]
        coefficients[model.support_[own == b]] = model.dual_coef_[a, own == b]
        there = np.isin(y, model.classes_[[a, b]])
        signs = np.where(y == model.classes_[a], 1.0, -1.0)[there]
        loss = np.maximum(0.0, 1.0 - signs * forms[there, p]).sum()
        found[frozenset(map(str, model.classes_[[a, b]]))] = 0.5 * coefficients @ gram @ coefficients + C * loss
    return found


@pytest.fixture
def fitted(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    rows, y = clouds()
    (tmp_path / "data").write_text(libsvm_text(rows, y))
    how = {"C": C, "gamma": GAMMA, "degree": 2, "coef0": 1.0, "decision_function_shape": "ovo"}
    kernel = getattr(request, "param", "rbf")
    return svm.SVC(kernel=kernel, tol=1e-4, **how).fit(rows, y), rows, y, kernel


def pair_of(one: dict) -> frozenset:
    return frozenset(one["name"].partition("(")[2].rstrip(")").split(" and "))


WORDS = ("certify", "svm", "data", "--weights", "m.model", "--c", C, "--format", "json")


@pytest.mark.parametrize("fitted", KERNELS, indirect=True)
@pytest.mark.parametrize("order", [None, [2, 0, 3, 1]])
def test_each_pair_has_the_gap_of_what_svc_has_fitted(fitted, order, call, tmp_path):
    model, rows, y, kernel = fitted
    (tmp_path / "m.model").write_text(written(model, rows, kernel, order))
    found, wanted = json.loads(call(*WORDS).out), objective(model, rows, y, kernel)
    assert {pair_of(one) for one in found["pairs"]} == set(wanted) and len(found["pairs"]) == 6
    best = svm.SVC(**{**model.get_params(), "tol": 1e-10}).fit(rows, y)
    for one in found["pairs"]:
        assert one["value"] == pytest.approx(wanted[pair_of(one)], rel=1e-6 if kernel == "linear" else 1e-9)
        assert 0.0 < one["rel_gap"] < 1e-3
        assert one["lowest"] <= objective(best, rows, y, kernel)[pair_of(one)] * (1.0 + 1e-12)
    assert found["rel_gap"] == max(one["rel_gap"] for one in found["pairs"])
    for name in ("value", "lowest", "gap", "same"):
        assert found[name] == pytest.approx(sum(one[name] for one in found["pairs"]), rel=1e-12)
    assert found["same"] + found["other"] + found["open"] == 3 * y.size  # each row is in three pairs
    assert faults("certify", found) == []
    straight = screenpath.certify(model, rows, y)
    assert straight.value == pytest.approx(found["value"], rel=1e-6)
    said = call(*WORDS[:-2]).out
    assert f"the worst pair has {found['rel_gap']:.3g}" in said and said.count("\npair ") == 6
    assert call(*WORDS, "--within", found["rel_gap"] / 2).code == 3 and call(*WORDS, "--within", 0.01).code == 0


def test_a_c_below_that_of_the_model_is_told_what_it_has(fitted, call, tmp_path):
    model, rows, _, kernel = fitted
    (tmp_path / "m.model").write_text(written(model, rows, kernel))
    done = call(*WORDS, "--c", C * (1.0 - 1e-9))
    assert done.code == 1 and f"not from 0 to C: the largest is {float(C)!r}\n  check --c" in done.err


def test_a_coefficient_that_is_changed_makes_the_gap_of_its_pair_larger(fitted, call, tmp_path):
    model, rows, _, kernel = fitted
    text = written(model, rows, kernel)
    (tmp_path / "m.model").write_text(text)
    before = {pair_of(one): one for one in json.loads(call(*WORDS).out)["pairs"]}
    lines = text.splitlines()
    first = lines.index("SV") + 1  # of label 1: its coefficients are those against 2, 3, 4
    at = next(k for k in range(first, len(lines)) if 0.1 < float(lines[k].split()[1]) < C)
    cells = lines[at].split()
    cells[1] = repr(0.5 * float(cells[1]))
    (tmp_path / "m.model").write_text("\n".join([*lines[:at], " ".join(cells), *lines[at + 1 :], ""]))
    for one in json.loads(call(*WORDS).out)["pairs"]:
        old = before[pair_of(one)]
        if pair_of(one) == {"1", "3"}:
            assert one["gap"] > 10.0 * old["gap"] and one["value"] > old["value"]
        else:
            assert {**one, "name": 0} == {**old, "name": 0}


def test_an_exported_run_of_pairs_is_certified(fitted, call):
    call("svm", "data", "--one-vs-one", "--kernel", "rbf", "--gamma", GAMMA, "--c", C, "--tol", 1e-5, "-o", "run", "-q")
    assert call("export", "run", "--step", 0, "--to", "libsvm", "-o", "m.model").code == 0
    found = json.loads(call(*WORDS).out)
    assert 0.0 < found["rel_gap"] <= 1e-5 * (1.0 + 1e-6) and len(found["pairs"]) == 6


def test_estimators_with_weights_and_texts_as_labels(fitted):
    _, rows, y, _ = fitted
    kept = (y != 1) | (np.arange(y.size) < 40)  # labels of different numbers
    rows, y = rows[kept], y[kept]
    texts = np.array(["", "one", "two", "three", "four"])[y]
    for kernel, weights in (("rbf", "balanced"), ("linear", {"two": 3.0})):
        model = svm.SVC(kernel=kernel, gamma=GAMMA, class_weight=weights, tol=1e-6).fit(rows, texts)
        found = screenpath.certify(model, rows, texts)
        assert found.rel_gap < 1e-4 and len(found.pairs) == 6
        other = svm.SVC(kernel=kernel, gamma=GAMMA, tol=1e-6).fit(rows, texts).set_params(class_weight=weights)
        assert not attempt(other, rows, texts) < 1e-2  # its coefficients are those of another problem


def attempt(model, rows, y) -> float:
    try:
        return screenpath.certify(model, rows, y).rel_gap
    except DataError:  # more than C of a row
        return np.inf


@pytest.mark.parametrize("change, said", [
    (("rho ", "rho x"), "line 6: rho has 'x"), (("rho ", "rho 1 "), "line 6: rho has 7 entries, not 6"),
    (("label 1 ", "label "), "line 7: label has 3 entries, not 4"),
    (("label 1 ", "label 9 "), "the labels 9, 2, 3, 4, the data"),
    (("nr_sv ", "nr_sv 1"), "support vectors, there are"),
    (("nr_class 4", "nr_class 3"), "line 7: label has 4 entries, not 3"),
    (("nr_class 4", "nr_class 900000000"), "entries, not 900000000"),
    (("SV\n", "SV\n0.5 zebra 0.1 1:2\n"), "line 10: 'zebra' is not a coefficient"),
    (("SV\n", "SV\n0.5 nan 0.1 1:2\n"), "line 10: 'nan' is not a coefficient"),
    (("SV\n", "SV\n0.5 0.5\n"), "line 10 has 2 of 3 coefficients"),
    (("SV\n", "SV\n0.5 0.5 0.1 0:2\n"), "line 10: '0:2' is not a feature from 1 and its value"),
    (("SV\n", "SV\n0.5 0.5 0.1 1:2:3\n"), "line 10: '1:2:3' is not"), (("gamma 0.7", "gamma many"), "many"),
])  # fmt: skip
def test_nonsense_is_one_error_with_line_and_token(change, said, fitted, call, tmp_path):
    model, rows, _, kernel = fitted
    (tmp_path / "m.model").write_text(written(model, rows, kernel).replace(*change, 1))
    done = call(*WORDS)
    assert done.code == 1 and said in done.err and "m.model" in done.err and "Traceback" not in done.err, done.err


def test_what_is_for_one_problem_is_refused(fitted, call, tmp_path):
    model, rows, _, kernel = fitted
    (tmp_path / "m.model").write_text(written(model, rows, kernel))
    for name, value in (("--positive", 1), ("-o", "run")):
        done = call(*WORDS, name, value)
        assert done.code == 2 and "is for one problem" in done.err and "leave out" in done.err
    assert not (tmp_path / "run").exists()
    (tmp_path / "two").write_text(libsvm_text(rows[:40], np.arange(40) % 2 + 1))
    done = call("certify", "svm", "two", "--weights", "m.model", "--c", C)
    assert done.code == 1 and "has the labels 1, 2, 3, 4, the data" in done.err
