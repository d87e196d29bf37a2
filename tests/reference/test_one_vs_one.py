"""One-vs-one beside scikit-learn's SVC, whose pairs, votes and ties are LIBSVM's; and what the checker says of it."""

import json
import shutil
from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.svm import SVC

import screenpath
from screenpath.catalogue.scores import votes
from screenpath.errors import DataError
from screenpath.rows.pairs import SharedRows
from screenpath.store.open import open_run
from tests.certificates.make_invalid import seal
from tests.certificates.mutants import Frames
from tests.cli.conftest import libsvm_text

GAMMA, CS = 0.5, [0.1, 2.0]
KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": GAMMA}, "poly": {"kernel": "poly", "gamma": GAMMA, "coef0": 1.0}, "linear": {},
}  # fmt: skip


def noise():
    """Return five labels that the features say nothing of: many rows have as many votes for one as for another."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(120, 2)), np.arange(120) % 5 + 1.0


def load(name):
    if name == "noise":
        return noise()
    X, y = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name](return_X_y=True)
    X, y = (X[:600], y[:600]) if name == "digits" else (X, y)
    return (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9), y.astype(float)


def fitted(X, y, folder, **options):
    how = {"one_vs_one": True, "c_list": CS, "intercept": "free", "tol": 1e-9, "max_epochs": 10**6, "quiet": True}
    screenpath.run("svm", (X, y), out=str(folder), **(how | options))
    return screenpath.load_run(folder, (X, y))


def rivals(X, y, kernel, C):
    return SVC(C=C, kernel=kernel, gamma=GAMMA, coef0=1.0, tol=1e-9, decision_function_shape="ovo").fit(X, y)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["iris", "wine", "digits", "noise"])
def test_decisions_and_labels_are_those_of_svc(name, kernel, tmp_path):
    X, y = load(name)
    order = np.argsort(y, kind="stable")  # labels of scikit-learn are sorted, LIBSVM's as they appear
    X, y = X[order], y[order]
    path = fitted(X, y, tmp_path / "r", **KERNELS[kernel])
    new = np.concatenate([X, X + 0.1 * np.random.default_rng(0).normal(size=X.shape)])
    for C in CS:
        rival = rivals(X, y, kernel, C)
        forms, wanted = path.decision_function(new, C=C), rival.decision_function(new)
        size = max(1.0, np.abs(wanted).max())
        assert np.abs(forms - wanted).max() < 2e-4 * size
        sure = np.abs(wanted).min(axis=1) > 2e-4 * size
        assert sure.mean() > 0.9
        np.testing.assert_array_equal(path.predict(new, C=C)[sure], rival.predict(new)[sure])
        if name == "noise":
            found = np.sort(votes(forms), axis=1)
            assert np.count_nonzero(found[:, -1] == found[:, -2]) > 2  # ties that were decided alike


def by_hand(forms, k: int) -> int:
    """Return the number of the class as LIBSVM's svm_predict_values does."""
    counts, p = [0] * k, 0
    for i in range(k):
        for j in range(i + 1, k):
            counts[i if forms[p] > 0 else j] += 1
            p += 1
    best = 0
    for i in range(1, k):
        if counts[i] > counts[best]:
            best = i
    return best


@pytest.mark.parametrize("k", [3, 4, 7, 10])
def test_votes_and_ties_are_those_of_libsvm(k):
    forms = np.random.default_rng(k).integers(-1, 2, size=(300, k * (k - 1) // 2)).astype(float)  # with zeros
    found = votes(forms).argmax(axis=1)
    np.testing.assert_array_equal(found, [by_hand(row, k) for row in forms.tolist()])
    last = k - 1 - votes(forms)[:, ::-1].argmax(axis=1)
    assert np.any(last != found) and np.any(votes(np.where(forms < 0.0, -1.0, 1.0)).argmax(axis=1) != found)


def test_labels_are_numbered_as_they_appear(tmp_path):
    X, y = noise()
    y = np.array([4.0, 2.0, 5.0, 1.0, 3.0])[y.astype(int) - 1]
    path = fitted(X, y, tmp_path / "r", **KERNELS["rbf"])
    assert path.labels == (4.0, 2.0, 5.0, 1.0, 3.0)
    forms, sorted_order = path.decision_function(X, C=2.0), np.unique(y)
    assert path.predict(X, C=2.0).tolist() == [path.labels[by_hand(row, 5)] for row in forms.tolist()]
    pairs = {pair: k for k, pair in enumerate(combinations(path.labels, 2))}
    turned = [
        forms[:, pairs[p]] if p in pairs else -forms[:, pairs[p[::-1]]] for p in combinations(sorted_order, 2)
    ]
    assert np.any(sorted_order[votes(np.array(turned).T).argmax(axis=1)] != path.predict(X, C=2.0))  # else untested


def read_libsvm(text: str):
    """Return labels and decisions(rows) of a model file with several classes, as svm_load_model reads it."""
    head, body = text.split("\nSV\n")
    known = dict(line.split(" ", 1) for line in head.splitlines())
    k, rho = int(known["nr_class"]), list(map(float, known["rho"].split()))
    sizes = list(map(int, known["nr_sv"].split()))
    lines = [line.split() for line in body.splitlines()]
    assert len(lines) == int(known["total_sv"]) == sum(sizes) and len(rho) == k * (k - 1) // 2
    assert (known["svm_type"], known["kernel_type"]) == ("c_svc", "rbf")
    coefficients = np.array([[float(cell) for cell in line[: k - 1]] for line in lines]).T
    vectors = [dict((int(j), float(v)) for j, v in (c.split(":") for c in line[k - 1 :])) for line in lines]
    starts = np.cumsum([0, *sizes])

    def decisions(row):
        values = np.array([
            np.exp(-float(known["gamma"]) * sum((v.get(j, 0.0) - x) ** 2 for j, x in enumerate(row, 1)))
            for v in vectors
        ])  # fmt: skip
        found = []
        for i, j in combinations(range(k), 2):
            a, b = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            total = coefficients[j - 1, a] @ values[a] + coefficients[i, b] @ values[b]
            found.append(total - rho[len(found)])
        return found

    return list(map(float, known["label"].split())), decisions


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_a_libsvm_model_decides_as_the_run(bias, tmp_path):
    X, y = noise()
    intercept = {"intercept": "penalised", "bias": bias} if bias else {}
    path = fitted(X, y[::-1].copy(), tmp_path / "r", **KERNELS["rbf"], **intercept)
    screenpath.export_run(path, "libsvm", tmp_path / "m.model", step=1)
    labels, decisions = read_libsvm((tmp_path / "m.model").read_text())
    assert labels == list(path.labels)
    forms = path.decision_function(X, step=1)
    found = np.array([decisions(row) for row in X])
    np.testing.assert_allclose(found, forms, atol=1e-10 * np.abs(forms).max())
    wrong = path.decision_function(X, step=0)
    assert np.abs(found - wrong).max() > 1e-3


# -- the independent checker ------------------------------------------------------------------------------------------


def claimed(folder, **options):
    """Return the run folder of a path with a certificate."""
    X, y = noise()
    (folder / "data").write_text(libsvm_text(X, y))
    how = {"one_vs_one": True, "c_list": CS, "certificate": True, "quiet": True, "out": str(folder / "r")}
    screenpath.run("svm", str(folder / "data"), **(how | options))
    return folder / "r"


@pytest.mark.parametrize("how", [
    {"intercept": "none"}, {"intercept": "free", "scale": "standard"}, {"intercept": "none", "coefficients": "npz"},
    {**KERNELS["rbf"], "intercept": "free"}, {**KERNELS["poly"], "bias": 1.0, "class_weight": ["1=2"]},
])  # fmt: skip
def test_verify_proves_every_pair_and_refuses_a_forged_one(how, tmp_path):
    folder = claimed(tmp_path, **how)
    found = screenpath.verify_certificate(folder)
    assert found.holds and found.proven == len(CS), found.faults
    assert "coefficients: every value" in found.covered
    honest = (folder / "certificate.bin").read_bytes()

    def forged(change) -> list:
        frames = Frames(honest)
        change(frames)
        shutil.rmtree(tmp_path / "forged", ignore_errors=True)
        shutil.copytree(folder, tmp_path / "forged")
        (tmp_path / "forged" / "certificate.bin").write_bytes(frames.packed())
        seal(tmp_path / "forged", json.loads((tmp_path / "forged" / "run.json").read_text()))
        return screenpath.verify_certificate(tmp_path / "forged").faults

    assert forged(lambda frames: None) == []

    def of_another_pair(frames):  # the last pair's numbers, which are true of its own rows
        steps = [frame for frame in frames.steps if frame[1]["step"] == 1]
        steps[0][1].update({name: steps[-1][1][name] for name in ("primal", "primal_error", "gap")})

    def better(frames):
        frames.steps[-1][1]["primal"] *= 1.0 - 1e-4

    def one_row(frames):
        _, _, arrays = frames.steps[-1]
        arrays["states"][np.flatnonzero(arrays["states"] & 3 < 2)[0]] ^= 1  # from one end of its box to the other

    for change in (of_another_pair, better):
        faults = forged(change)
        assert faults and "labels " in faults[0][1], change
    assert forged(one_row)
    for change in (lambda frames: frames.steps[0][1].update(pair=99), lambda frames: frames.found.pop(1)):
        with pytest.raises(DataError, match="damaged"):
            forged(change)


def test_a_pair_that_reads_the_values_of_another_is_found_out(tmp_path, monkeypatch):
    """A control: where the pairs' turns get mixed up, the checker sees it."""
    right = SharedRows.matrix_of

    def stale(self, pair):
        return right(self, pair) if self._turn[1] is None else self._turn[1]

    folder = claimed(tmp_path, **KERNELS["rbf"], intercept="free")
    assert screenpath.verify_certificate(folder).holds
    monkeypatch.setattr(SharedRows, "matrix_of", stale)
    shutil.rmtree(folder)
    assert not screenpath.verify_certificate(claimed(tmp_path, **KERNELS["rbf"], intercept="free")).holds


def test_pairs_without_a_matrix_are_the_same_path(tmp_path, monkeypatch):
    X, y = noise()
    one = fitted(X, y, tmp_path / "one", **KERNELS["rbf"])
    for name in ("MOST", "HIGH"):
        monkeypatch.setattr(f"screenpath.rows.pairs.{name}", 0 if name == "MOST" else 7)
    other = fitted(X, y, tmp_path / "other", **KERNELS["rbf"])
    np.testing.assert_allclose(one.decision_function(X, C=2.0), other.decision_function(X, C=2.0), atol=1e-4)


def test_folds_are_those_of_one_vs_rest(tmp_path):
    """Pairs number labels as they appear, others sort them; the two can be compared only on the same folds."""
    X, y = noise()
    y[:3] = [5.0, 3.0, 4.0]
    names, how = ("one_vs_one", "one_vs_rest"), {"kernel": "rbf", "c_list": [1.0], "folds": 3, "quiet": True}
    for name in names:
        screenpath.cross_validate("svm", (X, y), out=tmp_path / name, **how, **{name: True})
    runs = [open_run(tmp_path / name) for name in names]
    assert [run.sides for run in runs] == [[5.0, 3.0, 4.0, 1.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0]]
    assert len({run.record["identity"]["folds_sha256"] for run in runs}) == 1
    assert len(screenpath.compare_runs([run.path for run in runs])) == 2
