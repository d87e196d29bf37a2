"""Runs of the tasks of a job array, put together: what one run would have written, or why they make none."""

import json
from pathlib import Path

import numpy as np
import pytest

import screenpath
from tests.certificates.compare import exact
from tests.cli.conftest import TIMES, read_csv, without_times
from tests.sparse_problems import SDCA

GRID = ("--grid", "7", "--cmax", "1", "--bias", "1", "--quiet")
# What depends on where a path begins: the solver's way, and how much could be screened from there.
WAY = ("epochs", "rounds", "passes", "solver", "screened_R", "screened_L", "n_survivors", "rejection_ratio",
       "screening_rate", "n_features_screened")  # fmt: skip


def parts(call, command, data, count, *options, **more):
    """Compute all parts, and return their folders, the last one first."""
    folders = []
    for k in range(1, count + 1):
        assert call(*command, data, *options, "--part", f"{k}/{count}", "-o", f"p{k}", **more).code == 0
        folders.append(f"p{k}")
    return folders[::-1]


def test_parts_of_a_grid_of_c(call, data):
    """The grid, the labels and the claims are those of one run; the last digits are those of a path begun elsewhere."""
    folders = parts(call, ("svm",), data, 3, *GRID, "--test", data)
    assert call("svm", data, *GRID, "--test", data, "-o", "whole").code == 0
    result = call("merge", *folders, "-o", "merged")
    assert result.code == 0 and "7 of 7 steps certified, put together from 3 runs" in result.err
    merged, whole = (read_csv(f"{name}/steps.csv") for name in ("merged", "whole"))
    assert [len(read_csv(f"p{k}/steps.csv")) for k in (1, 2, 3)] == [2, 2, 3]
    assert list(merged[0]) == list(whole[0])
    for one, other in zip(merged, whole, strict=True):
        assert [one[name] for name in ("step", "C", "status")] == [other[name] for name in ("step", "C", "status")]
        assert float(one["dual"]) <= float(other["primal"]) and float(other["dual"]) <= float(one["primal"])
    # The first part begins where the whole run does: nothing but times differs.
    keys = [name for name in merged[0] if name not in TIMES]
    assert [[row[key] for key in keys] for row in merged[:2]] == [[row[key] for key in keys] for row in whole[:2]]
    records = [json.loads(Path(name, "run.json").read_text()) for name in ("merged", "whole")]
    assert records[0]["identity"] == records[1]["identity"] and list(records[0]["grid"]) == list(records[1]["grid"])
    assert [origin["run"] for origin in records[0]["merged"]] == ["p1", "p2", "p3"]
    for name in ("n_steps", "certified"):
        assert records[0]["totals"][name] == records[1]["totals"][name]
    a, b = (screenpath.load_run(name) for name in ("merged", "whole"))
    for record, path in zip(records, (a, b), strict=True):
        found = record["between"]
        assert (found["from"], found["to"]) == (path.grid[0], path.grid[-1])
        assert (found["worst_rel_gap"], found["C"]) == pytest.approx(path.worst_between, rel=1e-6)
    np.testing.assert_allclose(a.coefficients, b.coefficients, rtol=1e-2, atol=1e-2)
    assert a.best() == b.best() and call("predict", "merged", data, "--step", 6).code == 0
    assert "with --certificate; merging needs it of all parts" in call("verify", "merged", data).err
    again = call("svm", data, *GRID[:-1], "--test", data, "-o", "merged", "--resume")
    assert again.code == 0 and "complete already" in again.err


@pytest.mark.parametrize(("kind", "table"), [("csv", "json"), ("npz", "csv")])
@pytest.mark.parametrize("how", ["part", "values"])
def test_values_of_beta_have_the_numbers_of_one_run_to_the_last_bit(call, data, kind, table, how):
    """Rows of the grid do not depend on each other, nor does what a solver draws on where its job begins."""
    options = ("--beta", "0.3,0.1,0.03", "--alphas", "4", "--coefficients", kind, "--format", table, "-q")
    options = (*options, "--solver", SDCA, "--intercept", "none")
    if how == "values":
        options = (*options, "--solver", "newton")  # what sdca draws goes by the number of the point
    assert call("sparse-svm", data, *options, "-o", "whole").code == 0
    folders = []
    for k, beta in enumerate(("0.03", "0.3,0.1")):
        own = ("--part", f"{k + 1}/2") if how == "part" else ("--beta", beta)
        assert call("sparse-svm", data, *options, *own, "-o", f"p{k}").code == 0
        folders.append(f"p{k}")
    assert call("merge", *folders, "-o", "merged", "-q").code == 0
    assert without_times(f"merged/steps.{table}") == without_times(f"whole/steps.{table}")
    assert Path(f"merged/coefficients.{kind}").read_bytes() == Path(f"whole/coefficients.{kind}").read_bytes()
    assert screenpath.load_run("merged").certified


def test_values_of_c_in_any_order(call, data):
    for name, values in (("a", "1,0.01"), ("b", "0.1")):
        assert call("svm", data, "--c-list", values, "--one-vs-rest", "--format", "json", "-q", "-o", name).code == 0
    path = screenpath.merge_runs([screenpath.load_run("a"), "b"], "merged")
    assert path.grid.tolist() == [0.01, 0.1, 1.0] and path.run.record["identity"]["c_list"] == [0.01, 0.1, 1.0]
    alone = screenpath.load_run("b")
    np.testing.assert_array_equal(path.coef(C=0.1), alone.coef(C=0.1))


def test_folds_have_the_numbers_of_one_run_to_the_last_bit(call, data):
    options = ("--grid", "5", "--folds", "3", "--repeats", "2", "--quiet")
    folders = parts(call, ("cv", "svm"), data, 6, *options)
    assert "the choice is made by screenpath merge" in call("cv", "svm", data, *options[:-1], "--part", "1/2").err
    assert call("cv", "svm", data, *options, "-o", "whole").code == 0
    assert call("merge", *folders, "-o", "merged", "-q").code == 0
    for name in ("steps.csv", "folds.csv"):
        assert without_times(f"merged/{name}") == without_times(f"whole/{name}")
    for name in ("cv.csv", "coefficients.csv"):
        assert Path("merged", name).read_bytes() == Path("whole", name).read_bytes()
    records = [json.loads(Path(name, "cv.json").read_text()) for name in ("merged", "whole")]
    for record in records:
        del record["seconds"]
    assert records[0] == records[1]
    assert call("predict", "merged", data).out == call("predict", "whole", data).out


def test_folds_put_together_keep_what_is_recorded_of_the_path(call):
    lines = [f"{y} 1:{y * (1 + k / 7)} 2:{k % 3 / 3}\n" for k in range(12) for y in (1, -1)]
    Path("apart.libsvm").write_text("".join(lines))
    options = ("--grid", "5", "--folds", "2", "--cmax", "1e4", "--quiet")
    folders = parts(call, ("cv", "svm"), "apart.libsvm", 2, *options)
    assert call("cv", "svm", "apart.libsvm", *options, "-o", "whole").code == 0
    assert call("merge", *folders, "-o", "merged", "-q").code == 0
    merged, whole = (json.loads(Path(name, "run.json").read_text()) for name in ("merged", "whole"))
    assert whole["totals"]["constant_from"] > 0.0 and merged["between"] == whole["between"]
    for record in (merged, whole):
        del record["totals"]["seconds"], record["totals"]["cpu_seconds"]
    assert merged["totals"] == whole["totals"]


def test_a_part_of_the_folds_is_shown_as_one(call, data):
    """One fold has no standard error: such a folder is sound."""
    options = ("--grid", "5", "--folds", "3", "--quiet")
    parts(call, ("cv", "svm"), data, 3, *options)
    parts(call, ("cv", "l1svm"), data, 3, *options, "--force")
    for k in (1, 2):
        assert call("cv", "svm", data, *options, "--part", f"{k}/2", "-o", f"h{k}").code == 0
        assert call("cv", "svm", data, *options, "--part", f"{k}/3", "-o", f"s{k}").code == 0
    for name, count, error in (("s1", "1 of 3", ""), ("h2", "2 of 3", "+- ")):
        shown = call("show", name, "--step", "one-se")
        said = " ".join(shown.out.split())
        assert shown.code == 0 and f"over {count} folds" in said and f"chosen by {count} folds" in said
        assert ("+-" in said) == bool(error)
        assert call("report", name, "-o", f"{name}.html").code == 0
        page = Path(f"{name}.html").read_text(encoding="utf-8")
        assert f"<td>{count}</td>" in page and "nan" not in page
        assert call("plot", name, "--kind", "cv", "-o", f"{name}.svg").code == 0
        drawn = call("plot", name, "--kind", "cv", "--terminal")
        assert drawn.code == 0 and "nan" not in drawn.out
    assert "share no fold" in call("runs", "h1", "h2").err and "share no fold" in call("runs", "s1", "s2").err
    for words in (("predict", "h2", data), ("export", "h2", "--to", "json", "-o", "m.json")):
        assert "the score and the choice are of part 2/2 of the folds; screenpath merge" in call(*words).err
    assert "of the folds" not in call("predict", "p1", data, "--step", "0", "--quiet").err
    refused = call("runs", "s2", "h2")
    assert refused.code == 0 and "have not the same folds" in refused.err and "merge" in refused.err
    assert "resume" not in refused.err
    alike = call("runs", "s1", "p1")
    assert alike.code == 0 and "same 1 of 3 folds" in alike.out and "no uncertainty" in alike.out


def test_what_does_not_fit_is_named(call, data, tmp_path):
    other = tmp_path / "other.libsvm"
    other.write_text(data.read_text().replace("\n", " 9:1\n", 1))
    for name, more in (
        ("p1", ("--part", "1/3")), ("p2", ("--part", "2/3")), ("q2", ("--part", "2/2")), ("whole", ()),
        ("tol", ("--part", "2/3", "--tol", "1e-5")),
    ):  # fmt: skip
        assert call("svm", data, *GRID, *more, "-o", name).code == 0
    assert call("svm", other, *GRID, "--part", "2/3", "-o", "other").code == 0
    assert call("svm", data, *GRID, "--part", "3/3", "--time-limit", "1e-9", "-o", "late").code == 3
    refused = {
        ("p1",): "two or more", ("p1", "p2"): "part 3 of 3 is missing", ("p1", "q2"): "q2 is part 2/2, p1 part 1/3",
        ("p1", "p1"): "both part 1/3", ("p1", "whole"): "whole is a whole run", ("whole", "whole"): "same run twice",
        ("p1", "nothing"): "nothing is not a run folder",
    }  # fmt: skip
    for names, words in refused.items():
        result = call("merge", *names, "-o", "merged")
        assert result.code in (1, 2) and words in result.err and not Path("merged").exists(), result
    assert call("svm", data, *GRID, "--part", "3/3", "-o", "p3").code == 0
    for name, words in (("tol", "tol is 1e-06 and 1e-05"), ("other", "data_sha256 is ")):
        result = call("merge", "p1", name, "p3", "-o", "merged")
        assert result.code == 2 and words in result.err and "screenpath runs" in result.err
    found = call("merge", "p1", "p2", "late", "-o", "m").err
    assert "late is not complete" in found or "no finished step" in found
    assert call("merge", "p1", "p2", "p3", "-o", "p1", "--force").code == 2
    assert call("merge", "p1", "p2", "p3", "-o", "whole").code == 1  # without --force nothing is replaced
    assert call("merge", "p1", "p2", "p3", "-o", "whole", "--force").code == 0


def test_unsafe_decisions_of_a_part_are_said(call, data, monkeypatch):
    """They alone make the exit code 3, where all steps are certified."""
    from screenpath.walk import loop

    options = (*GRID, "--audit")
    assert call("svm", data, *options, "--part", "1/2", "-o", "p1").code == 0
    monkeypatch.setattr(loop, "contradicted", lambda *a: 2)
    assert call("svm", data, *options, "--part", "2/2", "-o", "p2").code == 3
    result = call("merge", "p1", "p2", "-o", "merged")
    assert result.code == 3 and "7 of 7 steps certified, 8 unsafe decisions, put together" in result.err
    assert "unsafe decisions (audit): 8" in call("show", "merged").out
    assert "unsafe decisions (audit): 0" in call("show", "p1").out


@pytest.mark.parametrize("kind", ["csv", "npz"])
@pytest.mark.parametrize("lost", ["p1", "p2"])
def test_a_part_without_its_coefficients_is_refused(call, data, kind, lost):
    folders = parts(call, ("svm",), data, 2, *GRID, "--coefficients", kind)
    Path(lost, f"coefficients.{kind}").unlink()
    result = call("merge", *folders, "-o", "merged")
    assert result.code == 1 and f"{lost} has lost its coefficients.{kind}" in result.err
    assert not Path("merged").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--part", "0/3"), "I/K with I from 1 to K"), (("--part", "8/8"), "more parts than grid points: 7"),
    ],
)  # fmt: skip
def test_parts_that_are_none(call, data, options, words):
    result = call("svm", data, *GRID, *options, "-o", "p")
    assert result.code == 2 and words in result.err


def test_a_part_that_was_stopped_goes_on(call, data, monkeypatch):
    from screenpath.store import folder

    monkeypatch.setattr(folder, "EVERY", 0.0)
    options = ("svm", data, "--grid", "12", "--quiet", "--part", "2/2", "--solver", "cd", "--cmax", "0.1")
    options = (*options, "--intercept", "none", "-o")
    assert call(*options, "once").code == 0
    with monkeypatch.context() as patch:
        from screenpath.engine.session import Session

        def keep(self, found, keep=Session.keep_steps):
            keep(self, (pair for _, pair in zip(range(3), found, strict=False)))

        patch.setattr(Session, "keep_steps", keep)
        assert call(*options, "twice").code == 3
    assert call(*options, "twice", "--resume").code == 0
    assert without_times("once/steps.csv") == without_times("twice/steps.csv")


def test_labels_that_are_texts(call, tmp_path):
    """Coefficients of several classes name them by number; the names are in run.json, as in that of one run."""
    rng = np.random.default_rng(0)
    rows = [f"{rng.normal(k % 3):.4f},{rng.normal(-(k % 3)):.4f},{'xyz'[k % 3]}" for k in range(60)]
    (tmp_path / "three.csv").write_text("\n".join(["a,b,class", *rows]) + "\n")
    options = ("sparse-svm", "three.csv", "--betas", "2", "--alphas", "3", "--quiet")
    folders = parts(call, options[:1], "three.csv", 2, *options[2:])
    assert call(*options, "-o", "whole").code == 0
    assert call("merge", *folders, "-o", "merged").code == 0
    assert Path("merged/coefficients.csv").read_bytes() == Path("whole/coefficients.csv").read_bytes()
    assert (
        call("predict", "merged", "three.csv", "--step", 5).out
        == call("predict", "whole", "three.csv", "--step", 5).out
    )


@pytest.mark.parametrize("model", ["svm", "free", "l1svm", "sparse-svm", "values", "cv"])
def test_certificates_are_put_together(call, data, model):
    """Both checkers accept what is merged of parts; a part alone is none, nor is one of some of them."""
    words, own = ("svm", *GRID, "--certificate"), None
    if model == "free":
        words = ("svm", "--grid", "7", "--certificate")
    elif model in ("l1svm", "sparse-svm"):
        words = (model, "--certificate", *(("--grid", "4") if model == "l1svm" else ("--betas", "2", "--alphas", "2")))
    elif model == "cv":
        words = ("cv", "svm", "--grid", "4", "--folds", "4", "--certificate")
    elif model == "values":  # of which each stands between two of the other run
        words, own = ("svm", "--intercept", "none", "--certificate"), ("0.1,0.3,0.5,0.6", "0.2,0.4")
    for k in (1, 2):
        more = ("--part", f"{k}/2") if own is None else ("--c-list", own[k - 1])
        assert call(*words, data, *more, "-o", f"p{k}", "-q").code == 0
    if own is None:
        assert "p1 is part 1/2 of a run" in call("verify", "p1", data).err
    assert call("merge", "p1", "p2", "-o", "merged", "-q").code == 0
    found = json.loads(call("verify", "merged", data, "--format", "json").out)
    steps = len(read_csv("merged/steps.csv"))
    assert found["holds"] and found["proven"] == found["steps"] == steps
    assert ("folds.bin: gaps of the steps" in found["covered"]) == (model == "cv")
    assert (found["rows_fixed"] > 0) == (model in ("svm", "values"))
    assert exact.main(["merged", str(data)]) == 0
    assert call("merge", "merged", "merged", "-o", "twice").code == 2
    more = ("--part", "2/2") if own is None else ("--c-list", own[1])
    words = [word for word in words if word != "--certificate"]
    assert call(*words, data, *more, "-o", "p2", "-q", "--force").code == 0
    assert "certificate is true and false" in call("merge", "p1", "p2", "-o", "merged", "-q", "--force").err


def test_kept_rows_are_kept(call, data, tmp_path):
    words = ("svm", data, "--kernel", "rbf", "--keep-rows", "--certificate", "--grid", 4, "--quiet")
    for k in (1, 2):
        assert call(*words, "--part", f"{k}/2", "-o", f"part{k}").code == 0
    assert call("merge", "part1", "part2", "-o", "whole").code == call("verify", "whole").code == 0
    data.rename(tmp_path / "elsewhere")
    asked = ("elsewhere", "--decision", "--quiet", "--step")
    found = call("predict", "whole", *asked, 3)
    assert (found.code, found.out) == (0, call("predict", "part2", *asked, 1).out) and found.out
