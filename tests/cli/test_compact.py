"""Compact kernel models: the bound on the change of decisions is attacked, and judged in exact numbers."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath.errors import UsageError
from screenpath.export.compact import distance, reduced
from screenpath.rows.kernel_functions import KernelBlocks, KernelFunction
from tests.cli.conftest import libsvm_text
from tests.cli.test_export_models import kernel_forms, libsvm_forms
from tests.schemas import faults

RNG = np.random.default_rng(4)
X = RNG.normal(size=(250, 2))
Y = np.where(X[:, 0] * X[:, 1] + 0.4 * RNG.normal(size=250) > 0.0, 1.0, -1.0)
KERNELS = {
    "rbf": ("--gamma", 0.5), "rbf with bias": ("--gamma", 0.5, "--bias", 2.0), "laplacian": ("--gamma", 0.2),
    "poly": ("--gamma", 0.5, "--coef0", 1, "--degree", 3), "linear": ("--bias", 1.0),
}  # fmt: skip
CHANGE = 0.05


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data").write_text(libsvm_text(X, Y))


def forms_of(model: dict, Z: np.ndarray, without: int | None = None) -> np.ndarray:
    support = np.zeros((len(model["support"]), Z.shape[1]))
    for row, one in zip(support, model["support"], strict=True):
        row[np.array(one["columns"]) - 1] = one["values"]
    coefficients = np.array(model["coefficients"])
    if without is not None:
        coefficients[without] = 0.0
    return kernel_forms(model["kernel"], support, coefficients, model["intercept"], Z)


@pytest.mark.parametrize("name", KERNELS)
def test_no_decision_changes_by_more_than_the_bound(call, name):
    kernel = name.split()[0]
    assert call("svm", "data", "--kernel", kernel, *KERNELS[name], "--c", 1, "--quiet", "-o", "run").code == 0
    said = call("export", "run", "--step", 0, "-o", "all.json").err + call(
        "export", "run", "--step", 0, "--compress", CHANGE, "-o", "few.json").err
    every, few = (json.loads(Path(f"{one}.json").read_text()) for one in ("all", "few"))
    assert faults("export", few) == [] and "compressed" not in every["kernel"]
    told = few["kernel"]["compressed"]
    part = 1.0 if kernel == "laplacian" else 0.4  # which is not smooth: of its vectors few are nearly sums of others
    assert len(few["support"]) < part * len(every["support"]) and told["before"] == len(every["support"])
    assert 0.0 < told["change"] <= CHANGE and f"changes by more than {told['change']:.3g}" in said
    assert told["at_training"] == (kernel in ("poly", "linear"))
    points = X if told["at_training"] else np.vstack([X, RNG.normal(size=(5000, 2)), RNG.uniform(-4, 4, (5000, 2))])
    before, after = forms_of(every, points), forms_of(few, points)
    assert np.abs(before - after).max() <= told["change"] * (1.0 + 1e-9)
    assert np.abs(before - forms_of(few, points, 0)).max() > told["change"]  # without a vector the claim is wrong
    if kernel != "laplacian":
        assert call("export", "run", "--step", 0, "--compress", CHANGE, "--to", "libsvm", "-o", "m").code == 0
        np.testing.assert_allclose(libsvm_forms(Path("m").read_text(), points)[0], after, rtol=1e-9, atol=1e-9)
        screenpath.export_run("run", "npz", "m.npz", step=0, compress=CHANGE)
        np.testing.assert_array_equal(np.load("m.npz")["coefficients"], few["coefficients"])


def test_a_change_that_needs_all_vectors_keeps_the_model(call):
    assert call("svm", "data", "--kernel", "laplacian", "--gamma", 5.0, "--c", 1, "--quiet", "-o", "run").code == 0
    done = call("export", "run", "--step", 0, "--compress", "1e-9", "-o", "few.json")
    assert call("export", "run", "--step", 0, "--quiet", "-o", "all.json").code == 0
    every, few = (json.loads(Path(f"{one}.json").read_text()) for one in ("all", "few"))
    assert few["support"] == every["support"] and few["coefficients"] == every["coefficients"]
    assert few["kernel"]["compressed"]["change"] == 0.0 and "no decision anywhere changes by more than 0\n" in done.err


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_an_upper_bound_in_rational_numbers(seed):
    """Of the linear kernel, whose norm is rational; from far apart down to nothing but rounding."""
    rng = np.random.default_rng(seed)
    V, a = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-3, 3, size=(40, 1)), rng.normal(size=40) * 1e3
    blocks = KernelBlocks(V, KernelFunction("linear"))
    chosen, b, change = reduced(blocks, a, 1e-3)
    assert chosen.size <= 4 and change <= 1e-3
    for c in (b, b * (1.0 + 1e-14), b + 1e-3):
        pairs = [*zip(a, V, strict=True), *zip(-c, V[chosen], strict=True)]
        apart = [sum((Fraction(s) * Fraction(row[j]) for s, row in pairs), Fraction()) for j in range(3)]
        square, bound = sum(one * one for one in apart), distance(blocks, a, chosen, c)
        assert square <= Fraction(bound) ** 2
        assert bound <= float(square) ** 0.5 * 1.001 + 1e-13 * float(np.abs(a) @ np.linalg.norm(V, axis=1))


def test_what_has_nothing_to_compress_is_refused(call):
    assert call("svm", "data", "--c", 1, "--quiet", "-o", "line").code == 0
    done = call("export", "line", "--step", 0, "--compress", 0.1, "-o", "m.json")
    assert done.code == 2 and "nothing to compress" in done.err and not Path("m.json").exists()
    assert call("svm", "data", "--kernel", "rbf", "--c", 1, "--quiet", "-o", "run").code == 0
    for wrong in ("0", "-1", "nan", "inf"):
        done = call("export", "run", "--step", 0, "--compress", wrong, "-o", "m.json")
        assert done.code == 2 and "no change of decisions" in done.err
    with pytest.raises(UsageError, match="nothing to compress"):
        screenpath.export_run("line", "json", "m.json", step=0, compress=0.1)
