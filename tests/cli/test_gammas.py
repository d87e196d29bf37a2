"""cv with several values of gamma: the pair that is best, what is dropped and why, and the run that remains."""

import json
import signal

import numpy as np
import pytest

from screenpath.cv import run as folds
from screenpath.cv import tune
from screenpath.cv.saved import FoldPath
from screenpath.cv.session import CvSession
from tests.cli.conftest import clouds, libsvm_text, read_csv, without_times
from tests.cli.test_cv import GRID, record
from tests.schemas import faults


def test_a_list_of_gammas_is_the_cross_validation_of_each(call, data, tmp_path):
    """Every pair has the mean of a run with that gamma alone; the run is that of the best, with any number of jobs."""
    kernel = (*GRID, "--kernel", "rbf", "--folds", 4, "--tol", 1e-4)
    gammas = ("0.001", "0.05", "40", "200")
    for jobs in (1, 3):
        options = ("--gammas", ",".join(gammas), "--jobs", jobs, "--out", f"run{jobs}")
        assert call("cv", "svm", data, *kernel, *options).code == 0
    assert (tmp_path / "run1/gammas.csv").read_bytes() == (tmp_path / "run3/gammas.csv").read_bytes()
    rows, said = read_csv(tmp_path / "run1/gammas.csv"), record(tmp_path / "run1")
    means, alone = {}, {}
    for gamma in gammas:
        assert call("cv", "svm", data, *kernel, "--gamma", gamma, "--out", gamma).code == 0
        alone[gamma] = [float(row["mean"]) for row in read_csv(tmp_path / gamma / "cv.csv")]
        mine = [row for row in rows if float(row["gamma"]) == float(gamma)]
        if {row["n_folds"] for row in mine} == {"4"}:
            means[gamma] = [float(row["mean"]) for row in mine]
            assert means[gamma] == pytest.approx(alone[gamma], abs=1e-12)
    dropped = [one for one in said["tuned"]["gammas"] if one["dropped"]]
    assert dropped and len(means) + len(dropped) == 4
    best = max(map(max, alone.values()))
    for one in dropped:  # it was right to drop them, and the folds that were walked prove it
        gamma = next(name for name in gammas if float(name) == one["gamma"])
        folds = [row for row in read_csv(tmp_path / gamma / "folds.csv") if int(row["fold"]) < one["folds"]]
        steps = [[float(row["score"]) for row in folds if row["step"] == str(step)] for step in range(3)]
        assert one["folds"] < 4 and all((sum(scores) + 4 - one["folds"]) / 4 < best for scores in steps)
    chosen = next(name for name in gammas if float(name) == said["tuned"]["gamma"])
    assert said["best"]["mean"] == pytest.approx(best) and max(alone[chosen]) == best
    scored = [[(row["score"], row["status"]) for row in read_csv(tmp_path / name / "folds.csv")] for name in (
        "run1", chosen)]  # their gaps differ by rounding, as values are shared by all gammas
    assert scored[0] == scored[1]
    for name in ("cv.csv", "steps.csv"):
        assert without_times(tmp_path / "run1" / name) == without_times(tmp_path / chosen / name)
    assert (tmp_path / "run1/coefficients.csv").read_bytes() == (tmp_path / chosen / "coefficients.csv").read_bytes()
    assert call("predict", "run1", data, "--decision").out == call("predict", chosen, data, "--decision").out
    assert call("show", "run1", "--duals", "-").out == call("show", chosen, "--duals", "-").out
    assert faults("cv", said) == []
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    assert call("plot", "run1", "--kind", "gammas", "-o", "g.svg").code == 0
    assert ("4 values of gamma (grey: dropped)" in (tmp_path / "g.svg").read_text()) is bool(dropped)


def test_several_epsilons_are_the_cross_validation_of_each(call, tmp_path):
    """With one gamma or several, every epsilon has the mean of a run of its own; the run left is that of the best."""
    X, _ = clouds(n=80)
    (tmp_path / "real").write_text(libsvm_text(X, np.sin(X[:, 0]) + X[:, 1] ** 2))
    words = ("cv", "svr", "real", *GRID, "--kernel", "rbf", "--folds", 3, "--tol", 1e-6, "-q")
    assert call(*words, "--epsilons", "0.5,0.02", "--gammas", "0.05,0.6", "-o", "run").code == 0
    rows, said = read_csv(tmp_path / "run/gammas.csv"), record(tmp_path / "run")["tuned"]
    least = {}
    for gamma in ("0.05", "0.6"):
        for epsilon in ("0.5", "0.02"):
            assert call(*words, "--gamma", gamma, "--epsilon", epsilon, "-o", "one", "--force").code == 0
            alone = [float(row["mean"]) for row in read_csv(tmp_path / "one/cv.csv")]
            mine = [row for row in rows if (row["gamma"], row["epsilon"]) == (gamma, epsilon)]
            assert len(mine) == len(alone)
            if mine[0]["n_folds"] == "3":
                assert [float(row["mean"]) for row in mine] == pytest.approx(alone, rel=1e-6)
            least[float(gamma), float(epsilon)] = min(alone)
    assert min(least, key=least.get) == (said["gamma"], said["epsilon"]) and said["pairs"] == len(rows)
    assert json.loads((tmp_path / "run/run.json").read_text())["options"]["epsilon"] == said["epsilon"]
    for more in ((), ("--resume",)):
        found = call(*words[:-1], "--epsilons", "0.5,0.02", "--gamma", "0.6", "-o", "two", *more)
        assert found.code == 0
    assert "nothing to do" in found.out + found.err
    assert call("plot", "run", "--kind", "gammas", "-o", "g.svg").code == 0
    assert f", epsilon = {said['epsilon']:.3g}, 2 values of gamma" in (tmp_path / "g.svg").read_text()
    assert call("predict", "run", "real", "--training", "real", "-o", "p.csv").code == 0


@pytest.mark.parametrize(("options", "why"), [
    (("--epsilons", "0.1"), "add --kernel rbf"), (("--epsilons", "0,1", "--kernel", "rbf"), "different positive"),
    (("--epsilons", "0.1", "--kernel", "rbf", "--folds", "loo"), "is of drawn folds"),
    (("--epsilons", "0.1", "--kernel", "rbf", "--part", "1/2"), "epsilon is chosen by all folds"),
])  # fmt: skip
def test_epsilons_that_cannot_be_tried(call, data, options, why):
    found = call("cv", "svr", data, *options)
    assert found.code == 2 and why in found.err


def test_a_number_of_gammas_lies_around_the_scale(call, data, tmp_path):
    found = call("cv", "svm", data, *GRID, "--kernel", "rbf", "--gammas", 3, "--folds", 3, "--tol", 1e-3, "-o", "run")
    assert found.code == 0 and "gammas" not in found.out
    X, _ = clouds()
    scale = 1.0 / (X.shape[1] * X.var())
    tried = [one["gamma"] for one in record(tmp_path / "run")["tuned"]["gammas"]]
    assert tried == pytest.approx([0.01 * scale, 10**-0.5 * scale, 10.0 * scale], rel=1e-5)
    assert call("svm", data, *GRID, "--kernel", "rbf", "--gamma", "scale", "-o", "one").code == 0
    assert json.loads((tmp_path / "one/run.json").read_text())["kernel"]["gamma"] == pytest.approx(scale, rel=1e-12)


@pytest.mark.parametrize("more", [(), ("--certify-to", 0.02, "--certify-points", 6)])
def test_certified_gammas(call, data, tmp_path, more):
    """With the bounds for every C no pair is better by more than is said, between the grid points neither."""
    options = ("--kernel", "rbf", "--gammas", "0.003,0.05,40", "--folds", 3, "--tol", 1e-8, "--certify")
    assert call("cv", "svm", data, "--grid", 4, "--cmin", 0.01, "--cmax", 1, *options, *more, "--out", "run").code == 0
    said = record(tmp_path / "run")
    tuned = said["tuned"]
    bounds = [one["lower_bound"] for one in tuned["gammas"] if "lower_bound" in one]
    assert tuned["difference"] == pytest.approx(1.0 - said["best"]["mean"] - min(bounds), abs=1e-9)
    assert tuned["difference"] >= said["certified"]["difference"] - 1e-9
    for one in tuned["gammas"]:
        fine = ("--kernel", "rbf", "--gamma", one["gamma"], "--folds", 3, "--grid", 20, "--cmin", 0.01, "--cmax", 1)
        assert call("cv", "svm", data, *fine, "--tol", 1e-8, "--out", "fine", "--force").code == 0
        least = min(1.0 - float(row["mean"]) for row in read_csv(tmp_path / "fine/cv.csv"))
        assert least >= one["lower_bound"] - 1e-9 if not one["dropped"] else least > 1.0 - said["best"]["mean"]


def test_a_proof_by_some_folds_takes_the_others_as_perfect():
    """A gamma is dropped only if it would not do even if the other folds were perfect."""

    def paths(*scores):
        return [FoldPath(None, [{"score": one, "status": "certified"} for one in fold]) for fold in scores]

    assert not tune.tried({"gamma": 1.0}, paths([0.6, 0.5]), 4, True, False, 0.1).dropped  # the bound is 0.1 itself
    assert tune.tried({"gamma": 1.0}, paths([0.59, 0.5]), 4, True, False, 0.1).dropped
    assert not tune.tried({"gamma": 1.0}, paths([0.59, 0.5], [1.0, 0.999]), 4, True, False, 0.1025).dropped
    assert tune.tried({"gamma": 1.0}, paths([3.0], [2.0]), 4, False, False, 1.0).dropped  # losses: 5/4 at least
    assert not tune.tried({"gamma": 1.0}, paths([3.0], [0.9]), 4, False, False, 1.0).dropped
    assert not tune.tried({"gamma": 1.0}, paths([0.0]), 1, True, False, 0.1).dropped  # all folds: nothing to save


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--gammas", "3"), "for a kernel with a gamma"),
        (("--kernel", "linear", "--gammas", "3"), "add --kernel rbf"),
        (("--kernel", "precomputed", "--gammas", "3"), "leave out --gammas"),
        (("--kernel", "rbf", "--gammas", "3", "--gamma", "1"), "use one of the two"),
        (("--kernel", "rbf", "--gammas", "3", "--part", "1/2"), "gamma is chosen by all folds"),
        (("--kernel", "rbf", "--gammas", "1,1"), "different positive numbers"),
        (("--kernel", "rbf", "--gammas", "1,x"), "not 'x'"), (("--kernel", "rbf", "--gammas", "0"), "not '0'"),
        (("--libsvm-grid", "--gammas", "3"), "use one of the two"),
        (("--libsvm-grid", "--cmin", "3"), "use one of the two"),
    ],
)  # fmt: skip
def test_gammas_that_there_are_not(call, data, tmp_path, options, words):
    found = call("cv", "svm", data, *options, "-o", "run")
    assert found.code == 2 and words in found.err and not (tmp_path / "run").exists()


def test_the_grid_of_libsvm(call, data, tmp_path, monkeypatch):
    monkeypatch.setattr(tune, "nearest_first", lambda gammas, scale: seen.append(gammas) or gammas[4:6])
    seen = []
    assert call("cv", "svm", data, "--libsvm-grid", "--folds", 2, "--tol", 1e-2, "--out", "run").code in (0, 3)
    assert seen == [[2.0**k for k in range(-15, 4, 2)]]
    assert [float(row["C"]) for row in read_csv(tmp_path / "run/cv.csv")] == [2.0**k for k in range(-5, 16, 2)]


def test_gammas_resume(call, data, tmp_path, monkeypatch):
    """A run stopped within the second gamma continues to the same bytes."""
    options = (*GRID, "--kernel", "rbf", "--gammas", "0.01,0.05,1", "--folds", 3, "--tol", 1e-4)
    assert call("cv", "svm", data, *options, "--out", "whole").code == 0
    plain, count = folds.fold_path, []

    def stopping(*arguments):
        count.append(1)
        if len(count) == 5:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(folds, "fold_path", stopping)
    assert call("cv", "svm", data, *options, "--out", "cut").code != 0
    monkeypatch.setattr(folds, "fold_path", plain)
    assert call("cv", "svm", data, *options, "--out", "cut", "--resume").code == 0
    for name in ("gammas.csv", "cv.csv", "coefficients.csv"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_gammas_that_the_time_limit_cuts_are_not_chosen_from(call, data, tmp_path):
    found = call(
        "cv", "svm", data, *GRID, "--kernel", "rbf", "--gammas", 3, "--folds", 3, "--time-limit", 1e-9, "-o", "run"
    )
    assert found.code == 3 and "not enough to choose" in found.err and not (tmp_path / "run/gammas.csv").exists()


def test_pictures_of_gammas(call, data, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    options = ("--kernel", "rbf", "--gammas", "0.01,0.05,40", "--folds", 3, "--tol", 1e-3)
    assert call("cv", "svm", data, *GRID, *options, "--out", "run").code == 0
    best = record(tmp_path / "run")
    assert call("plot", "run", "-o", "gammas.svg").code == 0
    named = f"gamma = {best['tuned']['gamma']:.3g}, C = {best['best']['parameters']['C']:.3g}"
    assert named in (tmp_path / "gammas.svg").read_text()
    drawn = call("plot", "run", "--terminal").out
    assert "gammas of run" in drawn and len(drawn.splitlines()) == 6
    (tmp_path / "run/gammas.csv").write_text("gamma\n1\n")
    assert call("plot", "run", "--terminal").code == 1


def test_a_signal_once_gamma_is_chosen_keeps_the_folds(call, data, tmp_path, monkeypatch):
    """The folds under way were those of another gamma than the chosen one: they are not taken for folds of this."""
    words = ("cv", "svm", data, *GRID, "--kernel", "rbf", "--folds", 3, "--gammas", "0.05,0.1", "--quiet", "-o")
    assert call(*words, "whole").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(CvSession, "take_tuned", lambda *_: signal.raise_signal(signal.SIGINT))
        done = call(*words, "run")
    assert done.code == 130 and "folds are kept of the gamma under way" in done.err and "error" not in done.err
    assert call(*words, "run", "--resume").code == 0
    assert (tmp_path / "run/gammas.csv").read_bytes() == (tmp_path / "whole/gammas.csv").read_bytes()
