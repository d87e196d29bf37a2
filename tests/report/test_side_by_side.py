"""Runs side by side: scores and paired differences by their definitions, and refusals that say why."""

import json
import math
import shutil

import numpy as np
import pytest

import screenpath
from screenpath.errors import RunFolderError, UsageError
from screenpath.report.series import lines
from screenpath.report.show import WIDTH
from screenpath.store.open import open_run
from tests.cli.conftest import clouds, libsvm_text, read_csv
from tests.run_folders import reseal


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("side")
    X, y = clouds(120, 5)
    (folder / "two").write_text(libsvm_text(X, y))
    X, y = clouds(80, 5, seed=7)
    (folder / "new").write_text(libsvm_text(X, y))
    (folder / "three").write_text(libsvm_text(X, np.arange(80) % 3))
    quiet = {"quiet": True, "scale": "standard"}
    for name, model, more in (("a", "svm", {"bias": 1.0}), ("b", "l1svm", {}), ("k", "svm", {"kernel": "rbf"})):
        options = {**quiet, **more, "grid": 4, "folds": 4, "repeats": 2, "test": str(folder / "new")}
        screenpath.cross_validate(model, folder / "two", out=folder / f"cv-{name}", **options)
        options = {**quiet, **more, "grid": 4, "test": str(folder / "new")}
        screenpath.run(model, folder / "two", out=folder / f"run-{name}", **options)
    screenpath.run("svm", folder / "two", c=1.0, out=folder / "untested", **quiet)
    screenpath.run("lad", folder / "two", c=1.0, out=folder / "lad", **quiet, test=str(folder / "new"))
    screenpath.run("svm", folder / "two", c=0.1, out=folder / "other", **quiet, test=str(folder / "two"))
    screenpath.run("svm", folder / "three", c=0.1, positive=1.0, out=folder / "positive", **quiet)
    screenpath.cross_validate("svm", folder / "two", grid=4, folds=3, out=folder / "cv-3", **quiet)
    return folder


def test_on_the_same_folds(folder):
    found = screenpath.compare_runs([folder / name for name in ("cv-a", "cv-b", "cv-k")])
    parts = []
    for side in found:
        rows = read_csv(side.run.path / "cv.csv")
        best = next(row for row in rows if row["best"] == "1")
        assert side.step["step"] == int(best["step"]) and side.score == pytest.approx(float(best["mean"]))
        folds = read_csv(side.run.path / "folds.csv")
        parts.append(np.array([float(row["score"]) for row in folds if row["step"] == best["step"]]))
        assert parts[-1].size == 8
    assert found.best == int(np.argmax([side.score for side in found]))
    for difference in found.differences:
        paired = parts[found.best] - parts[difference.other]
        assert difference.mean == pytest.approx(paired.mean(), abs=1e-12) and difference.mean >= 0.0
        error = paired.std(ddof=1) * math.sqrt(1 / 8 + 1 / 3)  # Nadeau and Bengio: 1/J + n_test/n_train
        assert difference.error == pytest.approx(error)
        assert difference.clear == (difference.mean > 2.0 * error)
    assert "flatters" in found.notes[-1] and repr(found).startswith("<RunComparison: 3 runs, best accuracy 0.")
    assert found.score == "accuracy" and "4 folds, 2 times" in found.basis
    assert found[2].features is None and found[2].support == found[2].step["nnz_w"]
    assert found[0].support == found[0].step["n_E"] + found[0].step["n_L"] and found[1].support is None
    assert found[1].features == np.count_nonzero(found[1].run.coefficients(found[1].step)[0])


def test_rows_that_a_run_was_fitted_to_promise_too_much(folder, capsys):
    runs = [folder / "run-a", folder / "run-b"]
    found = screenpath.compare_runs(runs, step=2, test=folder / "two")
    seen = [note for note in found.notes if "was fitted to these very rows: its score there is too good" in note]
    assert len(seen) == 2 and str(runs[0]) in seen[0]
    assert "fitted" not in str(screenpath.compare_runs(runs, step=2, test=folder / "new"))
    for name in ("two", "new"):
        options = {"c": 0.1, "out": folder / f"tested-on-{name}", "progress": False}
        screenpath.run("svm", folder / "two", test=str(folder / name), **options)
        assert ("are the training data, so scores there are too good" in capsys.readouterr().err) == (name == "two")


def test_a_feature_of_one_run_only_is_named(tmp_path):
    X, y = clouds(40, 3)
    rows = [f"{','.join(map(str, row))},{k % 4},{label}" for k, (row, label) in enumerate(zip(X, y, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,part,class", *rows, ""]))
    for name, more in (("by", {"fold_column": "part"}), ("at-random", {})):
        options = {"target": "class", "grid": 2, "quiet": True, "out": tmp_path / name}
        screenpath.cross_validate("svm", tmp_path / "t.csv", **options, **more)
    with pytest.raises(UsageError, match="their features differ .part is one in .*at-random, not in .*by."):
        screenpath.compare_runs([tmp_path / "by", tmp_path / "at-random"])


@pytest.mark.parametrize("given", [False, True], ids=["shared", "named"])
def test_on_the_same_rows(folder, given):
    runs = [folder / name for name in ("run-a", "run-b", "run-k")]
    found = screenpath.compare_runs(runs, step=2, test=folder / "new" if given else None)
    X, y = clouds(80, 5, seed=7)
    right = [screenpath.load_run(run).predict(X, 2) == y for run in runs]
    assert [side.score for side in found] == pytest.approx([one.mean() for one in right])
    for difference in found.differences:
        paired = right[found.best].astype(float) - right[difference.other]
        assert difference.mean == pytest.approx(paired.mean())
        assert difference.error == pytest.approx(paired.std(ddof=1) / math.sqrt(80))
    assert "80 rows" in found.basis and not any("chosen" in note for note in found.notes)


def test_the_words_fit_a_narrow_terminal(folder):
    for names in (("cv-a", "cv-b"), ("run-a", "run-b", "run-k")):
        text = str(screenpath.compare_runs([folder / name for name in names]))
        assert text.isascii() and "has the best accuracy:" in " ".join(text.split())
        assert max(map(len, text.splitlines())) <= WIDTH
    chosen = screenpath.compare_runs([folder / "run-a", folder / "run-b"])
    assert "too good" in chosen.notes[-1]


def test_test_data_that_are_gone(folder, tmp_path):
    """The scores are there, but nothing that could be paired."""
    (tmp_path / "new").write_text((folder / "new").read_text())
    for name in ("one", "two"):
        more = {"out": tmp_path / name, "quiet": True, "test": str(tmp_path / "new")}
        screenpath.run("svm", folder / "two", c=1.0 if name == "one" else 0.01, **more)
    (tmp_path / "new").write_text("1 1:1\n2 2:1\n")
    found = screenpath.compare_runs([tmp_path / "one", tmp_path / "two"])
    assert found.differences[0].error is None and found.differences[0].clear is None
    assert "not the test data" in str(found).replace("\n  ", " ")
    assert "clear" not in str(found)


@pytest.mark.parametrize(
    ("names", "options", "why"),
    [
        (("run-a",), {}, "two runs or more"), (("run-a", "run-a"), {}, "named twice"),
        (("run-a", "lad"), {}, "is a regression"),
        (("run-a", "positive"), {"step": 0}, "between different labels: 1 and 2, and rest and 1"),
        (("run-a", "untested"), {"step": 0}, "untested has no test data"),
        (("run-a", "other"), {"step": 0}, "their test data differ"),
        (("cv-a", "cv-3"), {}, "the folds of their cross-validations differ"),
        (("run-a", "run-b"), {"step": 9}, "no solution of step 9"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared(folder, names, options, why):
    with pytest.raises(UsageError) as refused:
        screenpath.compare_runs([folder / name for name in names], **options)
    assert why in str(refused.value)


def test_any_runs_on_one_file(folder):
    found = screenpath.compare_runs([folder / "untested", folder / "other"], step=0, test=folder / "new")
    assert len(found) == 2 and found.differences[0].error is not None


def test_the_column_of_labels_can_be_named(folder, tmp_path):
    X, y = clouds(80, 5, seed=7)
    lines = [",".join([*map(repr, row), f"{label:g}"]) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,e,group", *lines]) + "\n")
    runs = [folder / "run-a", folder / "run-b"]
    with pytest.raises(UsageError, match="`target=COLUMN`"):
        screenpath.compare_runs(runs, step=2, test=tmp_path / "t.csv")
    found = screenpath.compare_runs(runs, step=2, test=tmp_path / "t.csv", target="group")
    same = screenpath.compare_runs(runs, step=2, test=folder / "new")
    assert [side.score for side in found] == [side.score for side in same]
    with pytest.raises(UsageError, match="`test=FILE`"):
        screenpath.compare_runs(runs, step=2, target="group")


def test_scores_of_two_kinds_are_not_compared(folder, tmp_path):
    """Pinball losses of two levels are two scores, and so are means over rows that count once, or by weights."""
    weights = np.arange(120) % 3 + 1.0
    kinds = {
        "half": ("quantile", {"tau": 0.5}), "high": ("quantile", {"tau": 0.8}), "tube": ("svr", {"score": "pinball"}),
        "once": ("svm", {"score": "accuracy,f1"}), "balanced": ("l1svm", {"class_weight": "balanced"}),
        "weighted": ("svm", {"weights": weights}),
        "both": ("svm", {"weights": weights, "class_weight": "balanced"}),
    }  # fmt: skip
    for name, (model, options) in kinds.items():
        options = {**options, "folds": 3, "grid": 2, "scale": "standard", "quiet": True, "out": tmp_path / name}
        screenpath.cross_validate(model, folder / "two", **options)
    for one, other, why in (
        ("half", "high", "pinball at tau = 0.5, pinball at tau = 0.8"), ("tube", "high", "pinball at tau = 0.8"),
        ("once", "weighted", "count the rows by other weights"), ("balanced", "both", "by other weights"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=why):
            screenpath.compare_runs([tmp_path / one, tmp_path / other])
    for one, other in (("half", "tube"), ("once", "balanced"), ("weighted", "both")):
        assert len(screenpath.compare_runs([tmp_path / one, tmp_path / other])) == 2
    with pytest.raises(UsageError, match="other scores: pinball at tau = 0.5, pinball at tau = 0.8"):
        lines([open_run(tmp_path / name) for name in ("half", "high")], "cv")


def test_regressions_are_better_when_lower(folder):
    screenpath.run(
        "lad", folder / "two", c=1e-4, out=folder / "lad-2", quiet=True, test=str(folder / "new"), force=True
    )
    found = screenpath.compare_runs([folder / "lad-2", folder / "lad"], step=0)
    assert found.score == "mae" and found[found.best].score == min(side.score for side in found)
    assert found.differences[0].mean > 0.0 and " lower than " in " ".join(str(found).split())
    assert found[0].support is None  # at the lower end a row has its say too


def test_each_row_left_out_is_no_part_of_the_folds(folder, tmp_path):
    for name, more in (("linear", {"bias": 1.0}), ("curved", {"kernel": "rbf"})):
        options = {**more, "folds": "loo", "grid": 3, "quiet": True, "out": tmp_path / name}
        screenpath.cross_validate("svm", folder / "two", **options)
    found = screenpath.compare_runs([tmp_path / "linear", tmp_path / "curved"])
    assert found.basis == "the same 120 rows of two, each left out" and found.differences[0].error is None
    assert "the mean over the rows" in found.notes[0]
    assert [side.score for side in found] == [side.step["cv_accuracy"] for side in found]


def gaps(folder, labels=("ash", "elm", "oak")):
    """Write a table for training, and one for tests with a gap in each feature, an unknown label, and no oak."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    names = np.array(labels)[(X[:, 0] + 0.5 * X[:, 1] > 0.0).astype(int) + (X[:, 2] > 0.8)]
    for name in ("train", "test"):
        rows = [[*map(repr, x.tolist()), label] for x, label in zip(X, names.tolist(), strict=True)]
        if name == "test":
            rows[3][0], rows[7][1], rows[11][2], rows[20][3] = "", "", "", "?"
            rows = [row for row in rows if row[3] != "oak"]
        (folder / f"{name}.csv").write_text("\n".join(",".join(row) for row in [["a", "b", "c", "tree"], *rows]) + "\n")
    return folder / "train.csv", folder / "test.csv"


def test_rows_that_only_some_runs_predict_are_left_out(tmp_path):
    train, test = gaps(tmp_path)
    runs = [tmp_path / name for name in ("without-a", "without-b", "filled")]
    for out, more in zip(runs, ({"drop": "a"}, {"drop": "b"}, {"missing": "mean"}), strict=True):
        screenpath.run("svm", train, target="tree", one_vs_one=True, c=1.0, out=out, quiet=True, **more)
    found = screenpath.compare_runs(runs, 0, test)
    lines = [line.split(",") for line in test.read_text().splitlines()[1:]]
    whole = [line for line in lines if "" not in line and line[3] != "?"]
    X, y = np.array([list(map(float, line[:3])) for line in whole]), np.array([line[3] for line in whole])
    kept = ([1, 2], [0, 2], [0, 1, 2])
    right = [screenpath.load_run(run).predict(X[:, own], 0) == y for run, own in zip(runs, kept, strict=True)]
    assert [side.score for side in found] == pytest.approx([one.mean() for one in right])
    for difference in found.differences:
        paired = right[found.best].astype(float) - right[difference.other]
        assert difference.error == pytest.approx(paired.std(ddof=1) / math.sqrt(y.size))
    assert f"the same {y.size} rows" in found.basis and any("left out: 3 of the rows" in note for note in found.notes)


def test_test_data_with_gaps_and_fewer_labels_are_known_again(tmp_path):
    train, test = gaps(tmp_path)
    options = {"target": "tree", "test": str(test), "c": 1.0, "quiet": True}
    for missing in ("mean", "drop"):
        runs = [tmp_path / f"{missing}-{way}" for way in ("one_vs_rest", "one_vs_one")]
        for out in runs:
            screenpath.run("svm", train, **options, missing=missing, out=out, **{out.name[len(missing) + 1 :]: True})
        found = screenpath.compare_runs(runs, 0)
        assert found.differences[0].error is not None and not any("any more" in note for note in found.notes)
        assert [side.score for side in found] == pytest.approx([side.step["test_accuracy"] for side in found])
        assert "fitted to these very rows" in str(screenpath.compare_runs(runs, 0, train).notes)
    for name, numbers in (("train.svm", range(30)), ("test.svm", range(20))):  # without ash, the first label
        lines = [f"{('oak', 'elm', 'ash')[k // 10]} 1:{k % 10} 2:{k % 7}\n" for k in numbers]
        (tmp_path / name).write_text("".join(lines[::-1]))
    for out in runs:
        more = {"test": str(tmp_path / "test.svm"), "force": True, "c": 1.0, "quiet": True, out.name[5:]: True}
        screenpath.run("svm", tmp_path / "train.svm", out=out, **more)
    assert screenpath.compare_runs(runs, 0).differences[0].error is not None


def test_quantiles_of_one_level_are_compared_by_it(folder, tmp_path):
    X, y = clouds(80, 5, seed=7)
    quantile = {"quiet": True, "test": str(folder / "new")}
    for name, options in (("low", {"tau": 0.9, "c": 1e-4}), ("high", {"tau": 0.9, "c": 1.0}), ("half", {"c": 1.0})):
        screenpath.run("quantile", folder / "two", **quantile, **options, out=tmp_path / name)
    screenpath.run("quantile", folder / "two", c=1.0, tau_list=[0.9, 0.95], quiet=True, out=tmp_path / "many")
    for names, test in ((("low", "high"), None), (("low", "many"), folder / "new")):
        found = screenpath.compare_runs([tmp_path / name for name in names], 0, test)
        left = [y - screenpath.load_run(tmp_path / name).predict(X, 0) for name in names]
        losses = np.array([np.maximum(-0.1 * one, 0.9 * one) for one in left])
        assert found.score == "pinball" and [side.score for side in found] == pytest.approx(losses.mean(axis=1))
        assert found.differences[0].error == pytest.approx((losses[0] - losses[1]).std(ddof=1) / math.sqrt(80))
    assert screenpath.compare_runs([tmp_path / "high", tmp_path / "half"], 0).score == "mae"


def test_folds_of_another_number(folder, tmp_path):
    """A table of folds that was cut is no ground for a comparison."""
    import shutil

    cut = tmp_path / "cut"
    shutil.copytree(folder / "cv-b", cut)
    lines = (cut / "folds.csv").read_text().splitlines()
    (cut / "folds.csv").write_text("\n".join(lines[:-4]) + "\n")
    reseal(cut)
    assert json.loads((cut / "run.json").read_text())["files"]
    with pytest.raises(UsageError, match="some folds did not reach"):
        screenpath.compare_runs([folder / "cv-a", cut])
    (cut / "folds.csv").write_text("\n".join(lines).replace("0.", "x.") + "\n")
    reseal(cut)
    with pytest.raises(RunFolderError, match="folds.csv is damaged"):
        screenpath.compare_runs([folder / "cv-a", cut])


def test_compiling_is_no_part_of_the_time_of_a_run(folder, tmp_path):
    shutil.copytree(folder / "run-a", tmp_path / "run")
    before = screenpath.compare_runs([folder / "run-a", folder / "run-b"])[0].seconds
    reseal(tmp_path / "run", lambda record: record["totals"]["seconds"].update(compiling=1000.0))
    found = screenpath.compare_runs([tmp_path / "run", folder / "run-b"])[0]
    assert found.seconds == before < 1000.0
    phases = found.run.record["totals"]["seconds"]
    assert before == pytest.approx(sum(phases.values()) - 1000.0, abs=1e-9)
