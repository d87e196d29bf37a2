"""Every sparse model with every command and in Python: its losses, intercepts, classes, signs of weights, refusals."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath.errors import DataError, UsageError
from screenpath.verify.file import NAME, read_certificate
from screenpath.verify.objective import objective_of
from tests.cli.conftest import ROOT, clouds, libsvm_text, read_csv, without_times
from tests.sparse_problems import SDCA

FREE, PENALISED, EXACT = {"intercept": "free"}, {"intercept": "penalised"}, {"smoothing": 0.0}
TABLE = ("--repeats", 1, "--format", "csv", "-o", "t.csv")
# Model, data, and options beside the grid.
CASES = {
    **{f"huber {kind}": ("huber", "targets", {"intercept": kind, "smoothing": 0.7})
       for kind in ("none", "free", "penalised")},
    **{f"signs huber {kind}": ("huber", "targets", {"intercept": kind, "nonnegative": True})
       for kind in ("none", "free", "penalised")},
    **{f"signs svm {kind}": ("sparse-svm", "turned", {"intercept": kind, "nonnegative": True})
       for kind in ("none", "free", "penalised")},
    "free": ("sparse-svm", "two", FREE),
    "exact": ("sparse-svm", "two", EXACT | {"intercept": "none"}),
    "exact free": ("sparse-svm", "two", EXACT | FREE),
    "pure exact": ("sparse-svm", "two", EXACT | {"alpha": [0.1, 0.0]}),
    "pure exact free": ("sparse-svm", "two", EXACT | FREE | {"alpha": [0.1, 0.0]}),
    "pure smooth": ("sparse-svm", "two", {"smoothing": 0.3, "bias": 1, "alpha": [0.1, 0.0]}),
    "pure squared free": ("sparse-svm", "two", FREE | {"loss": "squared-hinge", "alpha": [0.1, 0.0]}),
    "classes": ("sparse-svm", "three", PENALISED | {"weights": "weights"}),
    "squared": ("sparse-svm", "two", {"loss": "squared-hinge", "bias": 0.5}),
    "classes squared": ("sparse-svm", "three", {"loss": "squared-hinge", "weights": "weights", "scale": "maxabs"}),
    "classes pure": ("sparse-svm", "three", EXACT | {"alpha": [0.1, 0.0], "weights": "weights"}),
    "classes none": ("sparse-svm", "three", {"smoothing": 0.3}),
    "classes exact": ("sparse-svm", "three", EXACT),
}  # fmt: skip


def targets(n=60, d=5):
    """Return data and targets with outliers and a mean far from 0."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, d)) + 1.0
    return X, np.round(X @ [1.0, -2.0, 0.5, 0.0, 0.0] + rng.standard_t(2, size=n) + 4.0, 3)


def three():
    """Return data of three classes, the first of which has more samples."""
    rng, y = np.random.default_rng(0), np.concatenate([np.arange(48) % 3, np.zeros(12, dtype=int)])
    X = rng.normal(size=(60, 4)) + 3.0
    X[:, :3] += 2.0 * np.eye(3)[y]
    return X, y + 4


def options_of(case, folder) -> dict:
    """Return the options of a case as keywords."""
    own = {"betas": 2, "scale": "standard", **({} if "alpha" in CASES[case][2] else {"alphas": 4}), **CASES[case][2]}
    own |= {"beta_min_ratio": 0.2} if case.startswith("classes") else {}
    return {**own, "weights": folder / "weights"} if "weights" in own else own


def words_of(case, folder) -> tuple:
    """Return the same as words of the shell."""
    words = [CASES[case][0], folder / CASES[case][1], "--quiet"]
    for name, value in options_of(case, folder).items():
        option = "--" + name.replace("_", "-")
        value = ",".join(map(str, value)) if isinstance(value, list) else value
        words += [option] if value is True else [option, value]
    return tuple(words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sparse")
    X, y = clouds(60, 4, seed=5)
    turned, two = (X * [1.0, -1.0, 1.0, -1.0], y), (X[10:] + 4.0, y[10:])
    for name, data in {"targets": targets(), "turned": turned, "two": two, "three": three()}.items():
        (place / name).write_text(libsvm_text(*data))
    (place / "weights").write_text("".join(f"{1 + k % 3}\n" for k in range(60)))
    return place


@pytest.fixture(scope="module")
def run(folder):
    """Return a function that makes the run of a case once: with certificate, audit and scores."""

    @cache
    def made(case):
        model, data, _ = CASES[case]
        more = {"audit": True, "certificate": True, "test": folder / data, "out": folder / f"run {case}"}
        screenpath.run(model, folder / data, **options_of(case, folder), **more)
        return folder / f"run {case}"

    return made


@pytest.mark.parametrize("case", CASES)
def test_a_run_and_the_commands_on_it(folder, run, call, case):
    path, (model, data, options) = run(case), CASES[case]
    table, found = read_csv(path / "steps.csv"), read_csv(path / "coefficients.csv")
    objective, last = json.loads((path / "run.json").read_text())["objective"], len(table) - 1
    intercepts = [float(one["value"]) for one in found if one["feature"] == "0"]
    assert all(row["status"] == "certified" and row["unsafe"] == "0" for row in table)
    done = call("verify", path)
    assert done.code == 0 and f"{last + 1} of {last + 1} steps proven" in done.out + done.err
    for command in (("report", "-o", "page.html"), ("plot", "-o", "picture.svg")):
        done = call(command[0], path, *command[1:])
        assert done.code == 0, done.err
    shown = call("show", path, "--step", last).out
    done = call("predict", path, folder / data, "-o", "-", "--step", last)
    assert done.code == 0 and ("mae" if data == "targets" else "accuracy") in done.err
    exported = call("export", path, "--step", last, "--to", "liblinear", "-o", "-", "--quiet").out.splitlines()
    assert ("solver_type L2R_L1LOSS_SVR_DUAL" in exported) == (model == "huber")
    if options.get("intercept") == "free":
        assert ("x_i.w - b" if model == "huber" else "y_i (x_i.w + b)") in objective and "intercept free" in shown
        for row, value in zip(table, intercepts, strict=True):
            assert float(row["intercept_low"]) - 1e-9 <= value <= float(row["intercept_high"]) + 1e-9
        assert "bias 1" in exported and float(exported[-1]) == pytest.approx(intercepts[-1])
        assert abs(screenpath.load_run(path).duals(last).values.sum()) < 1e-12
    if model == "huber" and "smoothing" in options:
        assert "gamma = 0.7" in shown and float(table[-1]["test_mae"]) < float(table[0]["test_mae"])
        checker = ROOT / "examples" / "certificate" / "check.py"
        said = subprocess.run([sys.executable, checker, path, folder / data], capture_output=True, text=True)
        assert said.stdout == "holds\n", said
    if "nonnegative" in options:
        assert min(float(one["value"]) for one in found if one["feature"] != "0") >= 0.0 and int(table[-1]["nnz_w"]) > 0
        if options["intercept"] == "penalised":  # which is a feature, and may have any sign
            assert (min(intercepts) < 0.0) == (model == "sparse-svm")
        assert objective.endswith("; w_j >= 0")
    if case == "classes":
        assert "x_i.(w_yi - w_c)" in objective and "intercept_low" not in table[0]
        assert len(intercepts) == 24 and [row["class"] for row in found[:3]] == ["4.0", "5.0", "6.0"]
        assert "intercept penalised" in shown and "4: " in shown and "6: " in shown
        np.testing.assert_allclose([float(value) for value in exported[-1].split()], intercepts[-3:])


@pytest.mark.parametrize("case", ["huber free", "signs huber free", "free", "exact", "exact free", "classes"])
def test_python_jobs_and_resume_agree(folder, run, call, case):
    stored, own = screenpath.load_run(run(case)), words_of(case, folder)
    data, options = screenpath.read_libsvm(folder / CASES[case][1]), options_of(case, folder)
    if "weights" in options:
        options["sample_weight"] = 1.0 + np.arange(60) % 3
        del options["weights"]
    path = (screenpath.huber_path if own[0] == "huber" else screenpath.sparse_svm_path)(data.X, data.y, **options)
    np.testing.assert_array_equal(path.coefficients, stored.coefficients)
    np.testing.assert_array_equal(path.intercepts, stored.intercepts)
    assert call(*own, "-o", "whole").code == 0 and call(*own, "--jobs", 2, "-o", "shared").code == 0
    assert call(*own, "--time-limit", "1e-9", "-o", "part").code in (1, 3)
    assert call(*own, "-o", "part", "--resume").code == 0
    for name in ("shared", "part"):
        assert without_times(f"{name}/steps.csv") == without_times("whole/steps.csv")


@pytest.mark.parametrize("case", ["pure exact", "pure exact free", "pure smooth", "pure squared free"])
def test_a_path_that_ends_at_the_l1_penalty_alone_goes_on(folder, call, case):
    own = words_of(case, folder)
    assert call(*own, "-o", "whole").code == 0
    assert [row["alpha"] for row in read_csv("whole/steps.csv")] == ["0.1", "0.0"] * 2
    assert call(*own, "--time-limit", "1e-9", "-o", "part").code in (1, 3)
    assert call(*own, "-o", "part", "--resume").code == 0
    assert without_times("part/steps.csv") == without_times("whole/steps.csv")
    for kind in ("grid", "coefficients"):
        assert call("plot", "whole", "--kind", kind, "--terminal").code == 0


@pytest.mark.parametrize("case", ["huber free", "free", "classes"])
def test_a_weight_is_a_number_of_repetitions(folder, case):
    model, name, options = CASES[case]
    data, function = screenpath.read_libsvm(folder / name), screenpath.huber_path
    function = function if model == "huber" else screenpath.sparse_svm_path
    X, how = data.X.toarray(), {"alphas": [0.05], "betas": [0.02], "tol": 1e-10, "intercept": options["intercept"]}
    one = function(np.vstack([X, X[:20]]), np.append(data.y, data.y[:20]), **how)
    other = function(X, data.y, sample_weight=np.where(np.arange(data.y.size) < 20, 2.0, 1.0), **how)
    assert other[0].primal == pytest.approx(one[0].primal, rel=1e-9)
    np.testing.assert_allclose(other.coefficients, one.coefficients, atol=1e-4)
    np.testing.assert_allclose(other.intercepts, one.intercepts, atol=1e-4)


@pytest.mark.parametrize(
    "case", ["huber free", "signs huber free", "free", "exact", "exact free", "pure exact", "classes"]
)
def test_folds_and_comparisons(folder, call, case):
    own, steps = words_of(case, folder), "4" if case.startswith("pure") else "8"
    done = call("cv", *own, "--folds", 3, "-o", "cv")
    assert done.code == 0, done.err
    assert json.loads(Path("cv/cv.json").read_text())["score"] == ("mae" if own[0] == "huber" else "accuracy")
    assert call("predict", "cv", own[1], "-o", "labels.txt").code == 0
    if "signs" in case:
        assert min(float(one["value"]) for one in read_csv("cv/coefficients.csv") if one["feature"] != "0") >= 0.0
    rules = ("none", "iss", "ifs", "sifs", "sifs+gap")
    assert call("compare-rules", *own, "--rules", ",".join(rules), *TABLE).code == 0
    assert [row["certified"] for row in read_csv("t.csv")] == [steps] * len(rules)


@pytest.mark.parametrize("name", ["between", "values", "states", "header"])
@pytest.mark.parametrize("case", ["huber none", "free", "exact", "exact free", "squared", "classes", "classes none"])
def test_a_certificate_that_was_changed_is_rejected(folder, run, case, name):
    (header, steps), data = read_certificate(run(case) / NAME), folder / CASES[case][1]
    entry = next(entry for entry in reversed(steps) if entry["between"].size > 2)
    if name == "header":  # of another loss
        header = {key: value for key, value in header.items() if key != "loss"}
        assert screenpath.verify.check(header | {"smoothing": 0.31}, steps, data).faults
        return
    if name == "states":
        if case.startswith("classes"):  # a sample gets a dual variable of its own class; the first one is of class 0
            entry["states"] = entry["states"].copy()
            entry["states"][0] |= 1
        else:  # beyond the box
            entry["between"] = np.full_like(entry["between"], -1.5)
    else:
        first = np.arange(entry[name].size) == 0
        entry[name] = entry[name] * np.where(first, 0.5 if name == "values" else 0.9, 1.0)
    assert {step for step, _ in screenpath.verify.check(header, steps, data).faults} == {entry["step"]}


def test_headers_that_are_none_are_refused(folder, run):
    header, steps = read_certificate(run("huber none") / NAME)
    with pytest.raises(DataError, match="smoothing is not positive"):
        screenpath.verify.check({**header, "smoothing": 0.0}, steps, folder / "targets")
    header, steps = read_certificate(run("signs huber none") / NAME)
    for factor, words in ((-1, "another sign than the certificate asks for"), (0.5, "a value that none has")):
        with pytest.raises(DataError, match=words):
            screenpath.verify.check({**header, "signs": factor * header["signs"]}, steps, folder / "targets")
    del header["signs"]  # without signs the same weights are not optimal
    assert screenpath.verify.check(header, steps, folder / "targets").faults


@pytest.mark.parametrize("column", ["value", "class"])
def test_coefficients_that_were_changed_are_found(run, call, column):
    file = run("classes") / "coefficients.csv"
    kept, text = file.read_bytes(), file.read_text().splitlines()
    cells = text[-1].split(",")
    cells[3 if column == "value" else 1] = "0.125" if column == "value" else "4.0"
    try:
        file.write_text("\n".join([*text[:-1], ",".join(cells)]) + "\n")
        assert call("verify", run("classes")).code == 1
    finally:
        file.write_bytes(kept)


def test_an_objective_with_intercepts_of_classes_is_that_of_an_older_run(run):
    header, _ = read_certificate(run("free") / NAME)
    objective = json.loads((run("free") / "run.json").read_text())["objective"]
    older = objective.replace("(w_yi - w_c)", "(w_yi - w_c) + b_yi - b_c") + "; the b_c sum to 0"
    assert objective_of(header, False, objective) == objective_of(header, False, older + ".") == objective
    assert objective_of(header, False, older) == older


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_dual_variables_of_huber_make_the_weights(run):
    path, X = screenpath.load_run(run("huber free")), targets()[0]
    (alpha, beta), duals = path.grid[7], path.duals(7)
    sums = duals.values @ ((X - X.mean(axis=0)) / X.std(axis=0))
    w = np.sign(sums) * np.maximum(np.abs(sums) - beta, 0.0) / alpha
    np.testing.assert_allclose(w, path.coef(7) * X.std(axis=0), rtol=1e-3, atol=1e-4)
    assert set(duals.sides) == {"R", "L", "E"} and duals.certified.any()
    residuals = targets()[1] - path.predict(X, step=7)
    assert np.all(residuals[duals.sides == "R"] < -0.69) and np.all(residuals[duals.sides == "L"] > 0.69)


@pytest.mark.parametrize("alpha", [0.1, 0.0])
def test_a_wide_huber_loss_is_least_squares_and_a_narrow_one_least_deviations(alpha):
    X, y = targets()
    gamma, plain = 1e3 * np.abs(y).max(), {"intercept": "none", "tol": 1e-10}
    wide = screenpath.huber_path(X, y, smoothing=gamma, alphas=[alpha / gamma], betas=[0.05 / gamma], **plain)
    w = wide.coefficients[0]
    squares = 0.5 * np.mean((y - X @ w) ** 2)
    assert gamma * wide[0].primal == pytest.approx(squares + 0.5 * alpha * w @ w + 0.05 * np.abs(w).sum(), rel=1e-9)
    narrow = screenpath.huber_path(X, y, smoothing=1e-6, alphas=[alpha], betas=[0.05], **plain)
    w = narrow.coefficients[0]
    value = np.mean(np.abs(y - X @ w)) + 0.5 * alpha * w @ w + 0.05 * np.abs(w).sum()
    assert narrow[0].primal == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_the_objective_of_the_exact_hinge(folder, intercept):
    data = screenpath.read_libsvm(folder / "two")
    path = screenpath.sparse_svm_path(data.X, data.y, betas=2, alphas=4, smoothing=0, intercept=intercept)
    signs, X = np.where(data.y > 1.5, 1.0, -1.0), data.X.toarray()
    for step, w, b in zip(path.steps, path.coefficients, path.intercepts, strict=True):
        alpha, beta = step.parameters["alpha"], step.parameters["beta"]
        hinge = np.maximum(1.0 - signs * (X @ w + b), 0.0).mean()
        assert step.primal == pytest.approx(hinge + alpha / 2 * w @ w + beta * np.abs(w).sum(), rel=1e-12)


def test_python_and_an_estimator_have_the_same_point(folder, call):
    from screenpath.sklearn import SparseSVMClassifier

    own = ("sparse-svm", folder / "two", "--beta", "0.05", "--alpha", "0", "--quiet", "--test", folder / "two")
    assert call(*own, "-o", "run").code == 0
    data = screenpath.read_libsvm(folder / "two")
    path = screenpath.sparse_svm_path(data.X, data.y, betas=[0.05], alphas=[0])
    model = SparseSVMClassifier(alpha=0, beta=0.05).fit(data.X, data.y)
    [row] = read_csv("run/steps.csv")
    assert float(row["primal"]) == path.steps[0].primal == model.path_.steps[0].primal
    assert float(row["test_accuracy"]) == pytest.approx(model.score(data.X, data.y))
    with pytest.raises(ValueError, match="`alpha` must be 0 or a positive number"):
        SparseSVMClassifier(alpha=-0.1).fit(data.X, data.y)


def test_rows_on_disk_give_the_same_numbers(folder, run, call):
    assert call("convert", folder / "targets", "shards", "--by", "columns").code == 0
    own = words_of("huber none", folder)
    assert call("huber", "shards", *own[2:], "-o", "disk").code == 0
    for one, other in zip(read_csv("disk/steps.csv"), read_csv(run("huber none") / "steps.csv"), strict=True):
        assert float(one["primal"]) == pytest.approx(float(other["primal"]), rel=2e-6)


def test_labels_may_be_texts(folder, call):
    lines = [line.split() for line in (folder / "three").read_text().splitlines()]
    names = {"4": "red", "5": "light blue", "6": "7"}
    rows = [",".join([names[y], *(value.partition(":")[2] for value in values)]) for y, *values in lines]
    Path("t.csv").write_text("\n".join(["y,a,b,c,d", *rows]) + "\n")
    for kind in ("csv", "npz"):
        own = ("--intercept", "penalised", "--certificate", "--coefficients", kind, "--betas", 2, "--alphas", 4)
        assert call("sparse-svm", "t.csv", "--target", "y", *own, "--quiet", "-o", kind).code == 0
        assert call("verify", kind).code == 0


# -- signs of weights --------------------------------------------------------------------------------------------------


def test_a_file_of_signs(folder, call):
    X, y = targets()
    signs, file = [-1, 0, 1, 1, -1], folder / "signs.txt"
    file.write_text("".join(f"{sign}\n" for sign in signs))
    grid = ("--betas", 2, "--alphas", 4, "--scale", "standard", "--quiet")
    own = ("huber", folder / "targets", "--intercept", "free", "--signs", file, *grid)
    how = {"betas": 2, "alphas": 4, "scale": "standard", "intercept": "free"}
    assert call(*own, "--certificate", "--audit", "-o", "run").code == 0
    assert json.loads(Path("run/run.json").read_text())["objective"].endswith("; signs_j w_j >= 0")
    found = screenpath.load_run("run").coefficients
    assert np.all(found * signs >= 0.0) and np.count_nonzero(found[-1]) > 1 and found[-1, 1] < 0.0
    path = screenpath.huber_path(X, y, signs=signs, **how)
    np.testing.assert_array_equal(path.coefficients, found)
    path.save("saved")
    assert np.array_equal(screenpath.load_run("saved").coefficients, found)
    flipped = screenpath.huber_path(X * [-1, 1, 1, 1, -1], y, signs=[1, 0, 1, 1, 1], **how)
    np.testing.assert_allclose(flipped.coefficients * [-1, 1, 1, 1, -1], found, atol=1e-4)
    assert call("verify", "run").code == 0 and call("cv", *own, "--folds", 3, "-o", "cv").code == 0
    assert np.all(screenpath.load_run("run").duals(7).values != 0.0)
    assert call("compare-rules", *own, "--rules", "none,sifs", *TABLE).code == 0
    assert [row["certified"] for row in read_csv("t.csv")] == ["8", "8"]
    assert call("convert", folder / "targets", "shards", "--by", "columns").code == 0
    assert call("huber", "shards", *own[2:], "-o", "disk").code == 0
    np.testing.assert_allclose(screenpath.load_run("disk").coefficients, found, atol=1e-4)
    file.write_text("1\n0\n1\n1\n-1\n")
    done = call("verify", "run")
    assert done.code == 1 and "signs are not those of the options" in done.out + done.err
    with pytest.raises(DataError, match="signs of the weights are not those of the run"):
        screenpath.load_run("run").duals(7)
    done = call(*own, "--certificate", "--audit", "--resume", "-o", "run")
    assert done.code != 0 and "signs" in done.err


@pytest.mark.parametrize(
    ("signs", "what", "more"),
    [
        ([1, 0, 2, 0, 0], "sign 3 is 2", {}), ([1, 0], "2 signs for 5 features", {}),
        (["a"] * 5, "signs are not all numbers", {}), ([1] * 5, "`nonnegative` too", {"nonnegative": True}),
    ],
)  # fmt: skip
def test_signs_that_are_none(signs, what, more):
    with pytest.raises(UsageError, match=what):
        screenpath.huber_path(*targets(), signs=signs, **more)


def test_a_run_without_its_signs_is_not_continued(folder, call):
    own = words_of("signs huber none", folder)
    assert call(*own, "-o", "run").code == 0
    done = call(*(word for word in own if word != "--nonnegative"), "--resume", "-o", "run")
    assert done.code != 0 and "nonnegative" in done.err


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("huber", "targets", "--smoothing", 0), "--smoothing must be a positive number, not '0'"),
        (("huber", "targets", "--loss", "squared-hinge"), "--loss is an option of sparse-svm, not of huber"),
        (("two", "--intercept", "free", "--solver", SDCA), "moves one dual variable at a time"),
        (("two", "--intercept", "free", "--solver", SDCA), "use --solver newton, or --intercept none"),
        (("two", "--intercept", "free", "--bias", 1), "--bias makes a penalised intercept"),
        (("compare-rules", "two", "--intercept", "free", "--start", "cold"), "leave out cold starts"),
        (("two", "--smoothing", 0, "--solver", SDCA, "--intercept", "none"), "use --solver newton, or a --smoothing"),
        (("two", "--smoothing", 1), "--smoothing must be at least 0 and below 1, not '1'"),
        (("two", "--alpha", "0", "--intercept", "none", "--solver", SDCA), "values of --alpha above 0"),
        (("two", "--alpha", "0,-1"), "every parameter of the list must be positive and finite, or 0"),
        (("two", "--alpha", "0,0"), "the parameter 0 appears twice"),
        (("two", "--alpha", "0", "--alpha-min-ratio", "0.1"), "--alpha gives the values themselves"),
        (("two", "--beta-min-ratio", 2), "beta-min-ratio"), (("two", "--beta", "0.1", "--betas", 3), "--betas"),
        (("two", "--references", 3), "--alpha"), (("two", "--rule", "dvi"), "sifs"),
        (("two", "--solver", "cd"), "newton"), (("two", "--threads", 2), "--threads"),
    ],
)  # fmt: skip
def test_what_is_refused(folder, call, words, said):
    command = [word for word in words if word in ("compare-rules", "huber")]
    data, *options = [word for word in words if word not in command]
    found = call(*command, *(() if "huber" in command else ("sparse-svm",)), folder / data, *options)
    assert found.code == 2 and said in found.err, found.err


@pytest.mark.parametrize("how", [(), ("--smoothing", 0), ("--loss", "squared-hinge"), ("--solver", SDCA)])
def test_a_free_intercept_is_for_two_labels(folder, call, how):
    own = ("sparse-svm", folder / "three", *how, "--betas", 2, "--alphas", 4, "--quiet", "-o", "refused")
    found = call(*own, "--intercept", "free")
    assert found.code == 2 and "for two labels" in found.err and "--positive LABEL" in found.err
    advised = ("--intercept", "penalised"), ("--intercept", "free", "--positive", "4")
    for advice in advised[: 1 if SDCA in how else 2]:  # a solver of the papers has no free intercept at all
        assert call(*own, *advice, "--force").code == 0


def test_what_python_refuses():
    X, y = targets()
    with pytest.raises(UsageError, match="SDCA is written for the hinge"):
        screenpath.huber_path(X, y, solver=SDCA, betas=2, alphas=2)
    with pytest.raises(DataError, match="centred features may need `intercept=free`"):
        screenpath.huber_path(X, y + 100.0, scale="standard", smoothing=0.1, intercept="none")
    with pytest.raises(DataError, match="squares of the targets exceed"):
        screenpath.huber_path(X, y * 1e200)
    X, y = clouds(20, 2, seed=1)
    with pytest.raises(UsageError, match="needs two classes"):
        screenpath.sparse_svm_path(X, y, intercept="free", sample_weight=(y > y.min()).astype(float))
