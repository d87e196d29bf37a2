"""``screenpath loo``, and ``path.loo()``: exact leave-one-out of a run."""

import json

import numpy as np
import pytest

import screenpath
from screenpath.errors import DataError, UsageError
from tests.cli.conftest import clouds, libsvm_text, read_csv

C = 0.3


@pytest.fixture
def data(tmp_path):
    X, y = clouds(60, 3, seed=2, labels=(1.0, -1.0))
    file = tmp_path / "clouds.libsvm"
    file.write_text(libsvm_text(X, y))
    return file, X, y


def computed(tmp_path, file, model="svm", **options):
    known = {"c_list": [0.05, C], "quiet": True, "out": str(tmp_path / "run"), "bias": 1.0}
    return screenpath.run(model, str(file), **{**known, **options})


def path_in_memory(X, y, at=C, **how):
    function = how.pop("path", screenpath.kernel_svm_path if "kernel" in how else screenpath.svm_path)
    return function(X, y, grid=[at], tol=1e-12, **how)


def fits(X, y, **how):
    """Return the models that were fitted to all rows but one, in turn."""
    return [path_in_memory(np.delete(X, i, axis=0), np.delete(y, i), **how) for i in range(len(y))]


def refits(X, y, **how):
    """Return the decision value of each row by the model that was fitted to the others."""
    return np.array([float(fit.decision_function(X[[i]])[0]) for i, fit in enumerate(fits(X, y, **how))])


@pytest.mark.parametrize("options", [{"bias": 1.0}, {"intercept": "free", "bias": 0.0}], ids=["penalised", "free"])
def test_values_are_those_of_refits(tmp_path, data, options):
    file, X, y = data
    found = computed(tmp_path, file, **options).loo(C=C)
    expected = refits(X, y, **{name: value for name, value in options.items() if value})
    np.testing.assert_allclose(found.values, expected, atol=1e-6)
    assert np.all(found.low - 1e-6 <= expected) and np.all(expected <= found.high + 1e-6)
    assert found.errors == np.count_nonzero(expected * found.targets < 0.0) > 0
    assert found.scores["accuracy"] == pytest.approx(1.0 - found.errors / 60)


def test_the_command_prints_and_writes(call, tmp_path, data):
    file, X, y = data
    path = computed(tmp_path, file)
    found, run = path.loo(C=C), str(tmp_path / "run")
    said = call("loo", run, "--step", f"C={C}")
    assert said.code == 0 and f"errors              {found.errors} (" in said.out
    assert "by a bound" in said.out and "every label" in said.out
    table = tmp_path / "loo.csv"
    record = json.loads(call("loo", run, "--step", f"C={C}", "--format", "json", "-o", str(table)).out)
    assert record["errors"] == found.errors and record["decided"]["open"] == 0
    rows = read_csv(table)
    assert [row["row"] for row in rows] == [str(k) for k in range(1, 61)]
    np.testing.assert_array_equal([float(row["decision"]) for row in rows], found.values)
    np.testing.assert_array_equal([float(row["label"]) for row in rows], y)
    assert [float(row["predicted"]) for row in rows] == np.sign(found.values).tolist()
    lines = call("loo", run, "--steps", "all").out.splitlines()
    assert [line.split()[0] for line in lines] == ["step", "0", "1"]
    assert lines[2].split()[2] == str(found.errors)


def test_a_regression_has_scores_and_a_sample_of_rows(call, tmp_path):
    X, _ = clouds(50, 3, seed=3)
    y = X @ [1.0, -0.5, 0.2] + 0.3 * np.random.default_rng(0).normal(size=50)
    file = tmp_path / "line.csv"
    names = [f"r{k}" for k in range(50)]
    lines = [[name, *map(repr, x), repr(t)] for name, x, t in zip(names, X.tolist(), y.tolist(), strict=True)]
    file.write_text("\n".join(map(",".join, [["name", "a", "b", "c", "y"], *lines])) + "\n")
    path = computed(tmp_path, file, "svr", target="y", id="name", epsilon=0.1)
    found = path.loo(C=C)
    assert found.scores["mae"] == pytest.approx(np.abs(found.values - y).mean())
    assert found.scores["mae"] > found.training["mae"]
    out = tmp_path / "some.csv"
    said = call("loo", str(tmp_path / "run"), "--step", f"C={C}", "--rows", "7", "--seed", "3", "-o", str(out))
    assert said.code == 0 and "7 rows, drawn at random from 50" in said.out and "mae" in said.out
    rows = read_csv(out)
    assert len(rows) == 7 and set(rows[0]) == {"name", "target", "predicted", "low", "high"}
    for row in rows:
        assert float(row["predicted"]) == pytest.approx(found.values[names.index(row["name"])], abs=1e-9)


def test_weighted_rows_weigh_in_the_score(tmp_path, data):
    file, X, y = data
    weights = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    (tmp_path / "weights").write_text("".join(f"{one}\n" for one in weights))
    found = computed(tmp_path, file, weights=str(tmp_path / "weights"), force=True).loo(C=C)
    right = found.values * y > 0.0
    assert found.scores["accuracy"] == pytest.approx(np.average(right, weights=weights))
    assert "accuracy" in str(found)


def test_a_long_wait_is_said_beforehand(call, tmp_path, data, monkeypatch):
    monkeypatch.setattr("screenpath.engine.leave_out.SLOW", 0.0)
    computed(tmp_path, data[0])
    said = call("loo", str(tmp_path / "run"), "--step", f"C={C}")
    assert "up to about 0 s a step; --rows N takes N rows drawn at random" in said.err
    assert "about" not in call("loo", str(tmp_path / "run"), "--step", f"C={C}", "--quiet").err


def test_two_best_intercepts_leave_a_row_open(call, tmp_path):
    """Without row 1, any intercept from -1 to 1 is best, for w = 0 at a C this small."""
    file = tmp_path / "even"
    X = np.array([[1.0], [1.1], [-1.0], [-1.1], [0.9]])
    y = np.array([1, 1, -1, -1, 1])
    file.write_text(libsvm_text(X, y))
    computed(tmp_path, file, intercept="free", bias=0.0, c_list=[1e-3])
    said = call("loo", str(tmp_path / "run"))
    assert said.code == 3 and "all but" in said.out


def test_what_is_refused(call, tmp_path, data):
    file, X, y = data
    run = str(tmp_path / "run")
    path = computed(tmp_path, file)
    assert "takes the place" in call("loo", run, "--steps", "all", "--step", "0").err
    file.write_text(libsvm_text(X * 2.0, y))
    with pytest.raises(DataError, match="not the training data"):
        path.loo(C=C)
    file.write_text(libsvm_text(X, y))
    sparse = screenpath.run("l1svm", str(file), grid=3, quiet=True, out=run, force=True)
    with pytest.raises(UsageError, match="not for l1svm"):
        sparse.loo()


def test_one_against_the_rest_is_fitted_again(call, tmp_path):
    X, _ = clouds(60, 3)
    (tmp_path / "three").write_text(libsvm_text(X, 1.0 + np.arange(60) % 3))
    assert call("svm", "three", "--one-vs-rest", "--grid", 2, "-o", "run").code == 0
    step = ("--step", 1)
    for command in (
        ("loo", "run", *step), ("influence", "run", *step), ("predict", "run", "three", "--removals", *step),
        ("predict", "run", "three", "--interval", 0.9, *step), ("plot", "run", "--kind", "loo"),
    ):  # fmt: skip
        said = call(*command)
        assert said.code == 2 and "\n  fit again with screenpath svm DATA --positive LABEL\n" in said.err, said.err
    assert call("svm", "three", "--positive", 2, "--grid", 2, "-o", "run", "--force").code == 0
    assert call("loo", "run", *step).code == 0


def targeted(file, X, y) -> None:
    """Write rows of three features and real targets."""
    cells = zip(y.tolist(), X.tolist(), strict=True)
    file.write_text("".join(f"{t!r} 1:{a!r} 2:{b!r} 3:{c!r}\n" for t, (a, b, c) in cells))


def test_influence_is_that_of_refits(call, tmp_path, data):
    file, X, y = data
    X, y = np.vstack([X, [[3.0, 0.2, 4.0]]]), np.append(y, 1.0)
    file.write_text(libsvm_text(X, y))
    path = computed(tmp_path, file, tol=1e-9)
    found = path.loo(C=C)
    others = fits(X, y, bias=1.0)
    w, b = np.array([fit.coef(0) for fit in others]), np.array([float(fit.intercept(0)) for fit in others])
    apart = np.hstack([w - path.coef(C=C), b[:, None] - path.intercept(C=C)])
    np.testing.assert_allclose(found.distance, np.linalg.norm(apart, axis=1), atol=1e-5)
    forms = X @ w.T + b
    flipped = (forms > 0.0) != (X @ path.coef(C=C) + path.intercept(C=C) > 0.0)[:, None]
    np.fill_diagonal(flipped, False)
    np.testing.assert_array_equal(found.flips(), flipped.sum(axis=0))
    assert found.flips().max() > 0
    said = call("influence", str(tmp_path / "run"), "--step", f"C={C}", "--top", 3, "-o", "rows.csv")
    assert said.code == 0 and len(said.out.splitlines()) == 4
    rows = read_csv("rows.csv")
    assert len(rows) == 61 and rows[0]["row"] == said.out.splitlines()[1].split()[0]
    assert [int(row["row"]) - 1 for row in rows[:5]] == np.argsort(-found.distance)[:5].tolist()
    assert rows[0]["flips"] == str(found.flips()[found.distance.argmax()])
    said = call("influence", str(tmp_path / "run"), "--step", f"C={C}", "--top", 3, "--format", "json")
    assert [{name: str(value) for name, value in row.items()} for row in json.loads(said.out)] == rows[:3]


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_behind_a_kernel_the_answers_are_those_of_refits(call, tmp_path, intercept):
    X, y = clouds(40, 3, seed=7)
    how = {"kernel": "rbf", "gamma": "0.4", "intercept": intercept, "bias": 0.0}
    screenpath.write_libsvm(tmp_path / "data", X, y)
    computed(tmp_path, tmp_path / "data", **how)
    said = call("loo", str(tmp_path / "run"), "--step", f"C={C}", "-o", "loo.csv")
    assert said.code == 0 and "every label" in said.out
    labels, wrong = np.array([[float(row["label"]), float(row["decision"])] for row in read_csv("loo.csv")]).T, 0
    rows = {int(row["row"]) - 1: row for row in influential(call, tmp_path)}
    for i, fit in enumerate(fits(X, y, kernel="rbf", gamma=0.4, intercept=intercept)):
        keep, forms = np.arange(40) != i, fit.decision_function(X, 0)
        assert labels[1][i] == pytest.approx(forms[i], abs=1e-5)
        whole = np.array([float(rows[k]["all"]) for k in range(40)])
        assert int(rows[i]["flips"]) == np.count_nonzero(((forms > 0.0) != (whole > 0.0)) & keep)
        wrong += int(fit.predict(X[[i]], 0)[0] != y[i])
    assert wrong > 0 and f"{wrong} ({100.0 * wrong / 40:.2f} %)" in said.out
    cv = screenpath.cross_validate("svm", str(tmp_path / "data"), folds="loo", c_list=[C], out=tmp_path / "cv",
                                   quiet=True, **{**how, "bias": 0.0})  # fmt: skip
    assert cv.table()[0]["cv_accuracy"] == pytest.approx(1.0 - wrong / 40)
    said = call("loo", str(tmp_path / "run"), "--step", f"C={C}", "--certificate", "proof")
    assert said.code == 2 and "this one has a kernel" in said.err


def influential(call, folder) -> list[dict]:
    assert call("influence", str(folder / "run"), "--step", f"C={C}", "-o", "rows.csv").code == 0
    return read_csv("rows.csv")


HOW = ({"intercept": "free"}, {"intercept": "none"}, {"intercept": "free", "kernel": "poly", "gamma": 0.3, "degree": 2,
       "coef0": 1.0})  # fmt: skip


@pytest.mark.parametrize("how", HOW, ids=["free", "none", "kernel"])
def test_removals_are_the_labels_that_refits_change(call, tmp_path, how):
    X, y = clouds(40, 3, seed=5)
    new = np.random.default_rng(1).normal(size=(300, 3))
    screenpath.write_libsvm(tmp_path / "old", X, y)
    screenpath.write_libsvm(tmp_path / "new", new, np.ones(300))
    stored = {name: str(v) if name == "gamma" else v for name, v in how.items()}
    computed(tmp_path, tmp_path / "old", bias=0.0, **stored)
    said = call("predict", str(tmp_path / "run"), "new", "--step", f"C={C}", "--removals", "-o", "out.csv")
    found = np.array([int(row["removals"]) for row in read_csv("out.csv")])
    own = path_in_memory(X, y, **how).decision_function(new, 0) > 0.0
    expected = sum(((fit.decision_function(new, 0) > 0.0) != own).astype(int) for fit in fits(X, y, **how))
    assert found.tolist() == expected.tolist() and (expected > 0).any() and (expected > 1).any()
    kept = int(np.count_nonzero(expected == 0))
    assert said.code == 0 and f"{kept} of 300 labels stay whichever training row is left out" in said.err


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("intercept", ["free", "penalised"])
def test_intervals_are_those_of_refits(call, tmp_path, scale, intercept):
    X, _ = clouds(40, 3, seed=3)
    y = X @ [1.0, -0.5, 0.2] + 0.3 * np.random.default_rng(0).normal(size=40)
    new = np.random.default_rng(1).normal(size=(7, 3))
    targeted(tmp_path / "old", X, y)
    targeted(tmp_path / "new", new, np.zeros(7))
    options = {"scale": scale, "intercept": intercept, "bias": float(intercept != "free")}
    path = computed(tmp_path, tmp_path / "old", "lad", **options)
    said = call("predict", str(tmp_path / "run"), "new", "--step", f"C={C}", "--interval", 0.8, "-o", "out.csv")
    assert said.code == 0 and "jackknife+ by 40 models: at least 60%" in said.err
    table = read_csv("out.csv")
    record = path.run.record["preparation"]
    shift, width = (np.array(record[key] or default) for key, default in (("shift", [0.0] * 3), ("scale", [1.0] * 3)))
    Z, N = (X - shift) / width, (new - shift) / width
    others = fits(Z, y, path=screenpath.lad_path, intercept=intercept)
    forms = np.array([fit.predict(N, 0) for fit in others])
    errors = np.array([abs(y[i] - fit.predict(Z[[i]], 0)) for i, fit in enumerate(others)])
    last = 33  # of 41, rounded up
    low, high = np.sort(forms - errors, axis=0)[40 - last], np.sort(forms + errors, axis=0)[last - 1]
    np.testing.assert_allclose([float(row["low"]) for row in table], low, atol=1e-5)
    np.testing.assert_allclose([float(row["high"]) for row in table], high, atol=1e-5)


@pytest.mark.parametrize(("model", "options"), [("svr", {"epsilon": 0.1}), ("huber", {"betas": [0.01], "alphas": 3})])
def test_intervals_of_a_cross_validation_are_by_the_models_of_its_folds(call, tmp_path, model, options):
    X, _ = clouds(60, 3, seed=3)
    X = X * [1.0, 10.0, 0.1]
    y = X @ [1.0, -0.05, 2.0] + 0.3 * np.random.default_rng(0).normal(size=60)
    new, of = np.random.default_rng(1).normal(size=(7, 3)) * X.std(axis=0), np.arange(60) % 4
    targeted(tmp_path / "old", X, y)
    targeted(tmp_path / "new", new, np.zeros(7))
    np.savetxt(tmp_path / "folds", of, "%d")
    how = {**options, "scale": "standard", "tol": 1e-10, "intercept": "free"}
    grid = {} if model == "huber" else {"grid": 3}
    path = screenpath.cross_validate(
        model, str(tmp_path / "old"), fold_file=str(tmp_path / "folds"), out=tmp_path / "run", quiet=True, **grid, **how
    )
    said = call("predict", path.folder, "new", "--interval", 0.8, "-o", "out.csv")
    assert said.code == 0 and "CV+ by the models of 4 folds: at least 50%" in said.err  # 2 * 0.8 - 1 - 2 * 0.75 / 16
    cells, errors, values = path.run.choose("best"), np.empty(60), np.empty((7, 60))
    single = {"c": cells["C"]} if model == "svr" else {"betas": [cells["beta"]], "alphas": [cells["alpha"]]}
    for fold in range(4):  # each scales its own training part
        targeted(tmp_path / "part", X[of != fold], y[of != fold])
        fit = screenpath.run(model, str(tmp_path / "part"), out=tmp_path / "fit", force=True, quiet=True,
                             **{**how, **single})  # fmt: skip
        errors[of == fold] = np.abs(y[of == fold] - fit.predict(X[of == fold], 0))
        values[:, of == fold] = fit.predict(new, 0)[:, None]
    last = 49  # of 61, rounded up
    low, high = np.sort(values - errors)[:, 60 - last], np.sort(values + errors)[:, last - 1]
    table = read_csv("out.csv")
    found = np.array([[float(row["low"]), float(row["high"])] for row in table])
    np.testing.assert_allclose(found, np.transpose([low, high]), atol=1e-4)
    np.testing.assert_array_equal(screenpath.prediction_intervals(path, new, 0.8), found)
    np.savetxt(tmp_path / "folds", of[::-1], "%d")
    said = call("predict", path.folder, "new", "--interval", 0.8)
    assert said.code == 1 and "the folds are not those of the run" in said.err


def test_intervals_hold_what_they_promise_and_infinite_ones_where_rows_are_few(tmp_path):
    inside = []
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(60, 3))
        y = X @ [1.0, -0.5, 0.2] + 0.5 * np.random.default_rng(100 + seed).standard_t(3, size=60)
        file = tmp_path / "data"
        targeted(file, X[:40], y[:40])
        found = computed(tmp_path, file, "quantile", force=True).loo(C=C)
        low, high = found.intervals(X[40:], 0.8).T
        inside.append(np.mean((low <= y[40:]) & (y[40:] <= high)))
    assert 0.7 < np.mean(inside) < 0.9
    assert np.isinf(found.intervals(X[40:], 0.99)).all()


@pytest.mark.parametrize("how", [HOW[1], {**HOW[2], "intercept": "none"}], ids=["linear", "kernel"])
def test_sets_of_labels_are_those_of_refits(call, tmp_path, how):
    X, y = clouds(40, 3, seed=5)
    new = np.random.default_rng(1).normal(size=(200, 3))
    screenpath.write_libsvm(tmp_path / "old", X, y)
    screenpath.write_libsvm(tmp_path / "new", new, np.ones(200))
    stored = {name: str(v) if name == "gamma" else v for name, v in how.items()}
    path = computed(tmp_path, tmp_path / "old", bias=0.0, **stored)
    said = call("predict", path.folder, "new", "--step", f"C={C}", "--interval", 0.7, "-o", "out.csv")
    assert said.code == 0 and "jackknife+ by 40 models: at least 40% of labels" in said.err
    low, high = sorted(set(y.tolist()))
    counts = np.zeros((200, 2))
    for i, fit in enumerate(fits(X, y, **how)):
        own, forms = fit.decision_function(X[[i]], 0)[0], fit.decision_function(new, 0)
        counts += np.stack([forms, -forms], axis=1) > (own if y[i] == low else -own)
    inside = counts < 0.7 * 41
    names = np.array([f"{low:g}", f"{high:g}"])
    expected = [";".join(names[one]) for one in inside]
    assert [row["set"] for row in read_csv("out.csv")] == expected and len(set(expected)) > 2
    np.testing.assert_array_equal(screenpath.prediction_intervals(path, new, 0.7, C=C), inside)


@pytest.mark.parametrize("column", ["--fold-column", "--group-column"])
def test_columns_of_folds_are_no_features_of_the_problem_again(call, tmp_path, column):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X @ [1.0, -1.0] + 0.3 * np.random.default_rng(1).normal(size=60)
    lines = [f"{a!r},{b!r},{k % 4},{t!r}" for k, ((a, b), t) in enumerate(zip(X.tolist(), y.tolist(), strict=True))]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,part,y", *lines, ""]))
    more = ("--folds", 4) if column == "--group-column" else ()
    said = call("cv", "lad", "data.csv", "--target", "y", column, "part", "--grid", 3, "--out", "run", *more)
    assert said.code == 0, said.err
    assert call("loo", "run").code == 0
    said = call("predict", "run", "data.csv", "--interval", 0.8, "-o", "out.csv")
    assert said.code == 0 and "CV+ by the models of 4 folds" in said.err and len(read_csv("out.csv")) == 60


def test_of_folds_that_leave_out_each_row_intervals_are_jackknife(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    targeted(tmp_path / "data", X, X @ [1.0, -0.5, 0.2] + np.random.default_rng(1).normal(size=40))
    path = screenpath.cross_validate("lad", str(tmp_path / "data"), c_list=[C], folds="loo", out=tmp_path / "cv")
    found = screenpath.prediction_intervals(path, X, 0.8)
    np.testing.assert_array_equal(found, path.loo(C=C).intervals(X, 0.8))


def test_intervals_are_refused_for_weighted_rows_and_chosen_thresholds(call, tmp_path, data):
    file, _, y = data
    chosen = ("--threshold", "recall=0.9", "--c-list", "0.5,1", "--folds", 3, "--out", "chosen")
    assert call("cv", "svm", file, *chosen).code == 0
    for option in (("--interval", 0.9), ("--removals",)):
        said = call("predict", "chosen", file, *option)
        assert said.code == 2 and "the threshold of the run was chosen with all rows" in said.err
    assert "decisions above 0 are +1: the threshold of the run was chosen" in call("loo", "chosen").out
    assert "decisions above 0 are +1" in call("loo", "chosen", "--steps", "every-c").out
    for command in (("loo",), ("influence",), ("predict", "--interval", 0.9)):  # before a step is asked for
        huber = screenpath.run("huber", str(file), betas=[0.1], alphas=[0.1, 1.0], out=tmp_path / "huber", force=True)
        name, *more = command
        said = call(name, huber.folder, *([file] if more else []), *more)
        assert said.code == 2 and "not for huber" in said.err and "which step" not in said.err
    lad = screenpath.run("lad", str(file), c_list=[0.1, 1.0], out=tmp_path / "lad", quiet=True)
    said = call("predict", lad.folder, file, "--step", "C=0.5", "--interval", 0.9)
    assert said.code == 2 and "C = 0.5 is between steps 0 and 1\n  name one of them: --step 1" in said.err
    said = call("predict", lad.folder, file, "--step", 0, "--removals")
    assert said.code == 2 and "lad is a regression: it has no labels to change" in said.err
    with pytest.raises(UsageError, match="between 0 and 1, not 90"):
        computed(tmp_path, file, "lad", force=True).loo(C=C).intervals(np.zeros((1, 3)), 90)
    (tmp_path / "weights").write_text("".join(f"{one}\n" for one in 1.0 + (y > 0.0)))
    weighted = computed(tmp_path, file, "lad", weights=str(tmp_path / "weights"), force=True)
    with pytest.raises(UsageError, match="weigh alike"):
        weighted.loo(C=C).intervals(np.zeros((1, 3)))


def test_a_certificate_is_written_and_checked(call, tmp_path, data):
    file, _, _ = data
    computed(tmp_path, file)
    run, proof = str(tmp_path / "run"), str(tmp_path / "loo.bin")
    assert call("loo", run, "--step", f"C={C}", "--certificate", proof).code == 0
    said = call("verify", proof, str(file))
    assert said.code == 0 and "60 of 60 rows left out of 60 proven" in said.out
    assert "covered: rows left out" in said.out
    found = json.loads(call("verify", proof, str(file), "--format", "json").out)
    assert found["holds"] and found["left_out"]["proven"] == 60 and found["left_out"]["open"] == 0
    assert "name the data file" in call("verify", proof).err
    assert "exists already" in call("loo", run, "--step", f"C={C}", "--certificate", proof).err
    assert "writes no file" in call("loo", run, "--steps", "all", "--certificate", proof).err
    (tmp_path / "loo.bin").write_bytes((tmp_path / "loo.bin").read_bytes()[:-20])
    err = call("verify", proof, str(file)).err
    assert "is damaged" in err and "again: screenpath loo RUN, with --certificate FILE and --force\n" in err
    assert call("loo", run, "--step", f"C={C}", "--certificate", proof, "--force").code == 0
    assert call("verify", proof, str(file)).code == 0
    err = call("verify", str(file), str(file)).err
    assert f"{file} is no certificate: " in err and "name a run folder, or" in err


def test_every_c(call, tmp_path, data):
    file, X, y = data
    path = computed(tmp_path, file, c_list=None, grid=12, cmin=0.02, cmax=5.0)
    found, run = path.loo_every_c(), str(tmp_path / "run")
    table = tmp_path / "labels.csv"
    said = call("loo", run, "--steps", "every-c", "-o", str(table))
    assert said.code == 0 and str(found) in said.out and "every C from 0.02 to 5" in said.out
    record = json.loads(call("loo", run, "--steps", "every-c", "--format", "json").out)
    assert record["unproven"] == pytest.approx(found.unproven) and 0.0 < record["unproven"] < 0.01
    steps = {one["C"]: one for one in record["steps"]}
    assert len(steps) > 12  # so few leave too much open
    for k, step in enumerate(path.steps):  # the same as at each step, and inside of the bounds of the curve
        exact = path.loo(k)
        assert steps[step.C]["errors"] == [exact.errors, exact.errors]
        assert steps[step.C]["training"] == np.count_nonzero(path.decision_function(X, k) * y <= 0.0)
        around = [row for row in found.curve if row[0] <= step.C <= row[1]]
        assert any(low <= exact.errors <= high for *_, low, high in around)
    assert found.errors == (record["curve"] and tuple(record["errors"]))
    rows = read_csv(table)
    assert list(rows[0]) == ["row", "label", "predicted", "C_from", "C_to"]
    widths = {row["row"]: 0.0 for row in rows}
    for row in rows:
        widths[row["row"]] += np.log(float(row["C_to"]) / float(row["C_from"]))
    assert len(widths) == 60 and sum(widths.values()) == pytest.approx((1 - found.unproven) * 60 * np.log(250.0))
    middle = [row for row in rows if float(row["C_from"]) < 0.4 < float(row["C_to"])]
    expected = dict(enumerate(refits(X, y, at=0.4, bias=1.0), start=1))
    assert all(np.sign(expected[int(row["row"])]) == float(row["predicted"]) for row in middle) and len(middle) > 55


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize(("model", "score"), [("svr", "mae"), ("quantile", "pinball")])
def test_every_c_of_a_regression(call, tmp_path, data, model, score, intercept):
    file, X, _ = data
    y = np.round(X @ np.array([1.0, -2.0, 0.5]) + np.random.default_rng(0).normal(size=60), 3)  # as the file has it
    file.write_text(libsvm_text(X, y))
    options = {"bias": 0.0, "intercept": intercept, "c_list": None, "grid": 30, "cmin": 0.05, "cmax": 1.0}
    path = computed(tmp_path, file, model, **options)
    found, table = path.loo_every_c(), tmp_path / "values.csv"
    said = call("loo", path.folder, "--steps", "every-c", "-o", table)
    assert said.code == 0 and str(found) in said.out and f"smallest {score}" in said.out
    record = json.loads(call("loo", path.folder, "--steps", "every-c", "--format", "json").out)
    assert record["errors"] == list(found.errors) and record["unproven"] == found.unproven == 0.0
    for k, (step, said_of) in enumerate(zip(path.steps, record["steps"], strict=True)):
        exact = path.loo(k)
        assert said_of["C"] == step.C and said_of["errors"] == pytest.approx(exact.scores[score], rel=1e-6)
        assert said_of["training"] == pytest.approx(exact.training[score], rel=1e-6)
        for segment in {max(k - 1, 0), min(k, 28)}:
            assert found.curve[segment, 2] <= said_of["errors"] <= found.curve[segment, 3]
            assert ((found.low[segment] <= exact.values) & (exact.values <= found.high[segment])).all()
    assert 0.6 * found.errors[1] < found.errors[0] < found.errors[1] == min(one["errors"] for one in record["steps"])
    rows = read_csv(table)
    assert list(rows[0]) == ["row", "target", "C_from", "C_to", "low", "high"] and len(rows) == 60 * 29
    value = 0.5 * (path.steps[11].C + path.steps[12].C)
    fit = {"svr": screenpath.svr_path, "quantile": screenpath.quantile_path}[model]
    for row in [row for row in rows if float(row["C_from"]) < value < float(row["C_to"])][::4]:
        i = int(row["row"]) - 1
        keep = np.arange(60) != i
        form = fit(X[keep], y[keep], grid=[value], tol=1e-12, intercept=intercept).predict(X[[i]])[0]
        assert float(row["target"]) == y[i]
        assert float(row["low"]) - 1e-5 <= form <= float(row["high"]) + 1e-5


def test_what_every_c_refuses(call, tmp_path, data):
    computed(tmp_path, data[0], c_list=[0.3])
    run = str(tmp_path / "run")
    assert "has one step" in call("loo", run, "--steps", "every-c").err
    assert "leaves out all rows at every C" in call("loo", run, "--steps", "every-c", "--rows", 3).err
    kernel = screenpath.run("svm", str(data[0]), kernel="rbf", grid=3, out=tmp_path / "kernel", quiet=True)
    assert "every C is for linear runs" in call("loo", kernel.folder, "--steps", "every-c").err
