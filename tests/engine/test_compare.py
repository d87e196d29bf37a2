"""The comparison of rules: one table, checked for agreement."""

import json
import sys
from types import SimpleNamespace

import pytest

import screenpath
from screenpath.catalogue import specs
from screenpath.catalogue.kernel_models import behind_kernel
from screenpath.catalogue.option import completed
from screenpath.cli.app import run
from screenpath.engine import compare, studies
from screenpath.engine.compare import DisagreementError, Variant, check_agreement, to_markdown, to_table
from screenpath.screen import AUTO, SAME
from tests.conftest import two_classes
from tests.sparse_problems import SDCA


def table(rules="none,dvi,dvi+gap", **options):
    grid = {"cmin": 0.01, "cmax": 10.0, **({} if "eps_path" in options else {"grid": 12})}
    options = {"intercept": "none", **grid, "repeats": 1, **options}
    return screenpath.compare("svm", two_classes(150, 3), rules=rules, **options)


def test_rows_and_ratios():
    rows = table(shrinking="both", solver="cd", repeats=2)
    assert [(r["rule"], r["shrinking"]) for r in rows] == [
        (rule, shrinks) for shrinks in (True, False) for rule in ("none", "dvi", "dvi+gap")
    ]
    assert all(r["certified"] == r["points"] == 12 for r in rows)
    assert rows[0]["speedup"] == 1.0 and rows[0]["mean_rejection"] == 0.0
    assert rows[1]["mean_rejection"] > 0.3 and rows[1]["passes_per_step"] < rows[0]["passes_per_step"]


def variant(rule: str, runs=(), steps=(), base=None):
    return Variant({"rule": rule}, None, ("shrinking",), base, list(runs), list(steps))


def test_a_speedup_is_the_median_ratio_of_cpu_seconds_in_the_same_turn():
    first = variant("none", [{"cpu_s": s} for s in (8.0, 9.0, 90.0)])
    second = variant("dvi", [{"cpu_s": s} for s in (2.0, 3.0, 10.0)], base=first)
    assert second.speedup == 4.0 and first.speedup == 1.0


def test_cold_starts_certify_the_same_with_more_sweeps():
    """Every solve of the sweeps begins at zero, screened or not; the heuristic's repeated solves are counted."""
    rows = table("none,dvi,heuristic", start="warm,cold", shrinking="off")
    found = {(row["rule"], row["start"]): row for row in rows}
    assert all(row["certified"] == 12 for row in rows)
    assert found["none", "cold"]["epochs"] > found["none", "warm"]["epochs"]
    assert found["dvi", "cold"]["mean_rejection"] == pytest.approx(found["dvi", "warm"]["mean_rejection"], abs=0.02)
    assert found["heuristic", "cold"]["wasted_s"] > 0.0 == found["none", "cold"]["wasted_s"]


def test_a_point_that_one_repeat_missed_is_not_certified():
    found = variant("none", [{"points": 3, "certified": certified} for certified in (3, 2, 3)])
    assert found.row(("points",)) == {"points": 3, "certified": 2} and not found.finished


def test_a_chunk_applies_to_the_rules_that_can_serve_one():
    single, chunked = (table("none,dvi,essnsv", chunk=chunk) for chunk in (1, 6))
    assert single[1]["mean_rejection"] == chunked[1]["mean_rejection"]
    assert single[2]["mean_rejection"] > chunked[2]["mean_rejection"] > 0.0
    assert single[2]["init_s"] > 0.0


def test_all_rules_walk_the_points_of_one_epsilon_path():
    """Each rule alone would choose its own points, whose optimal values cannot be compared."""
    rows = table("none,it", eps_path=0.05, shrinking="both", solver="cd", tol=1e-2)
    assert len({row["points"] for row in rows}) == 1 and rows[0]["points"] > 3


def test_contradicting_variants_are_an_error():
    ends = {"none": {"dual": 1.0, "primal": 1.1}, "wrong": {"dual": 1.2, "primal": 1.3}}
    variants = [variant(rule, steps=[SimpleNamespace(**cells)]) for rule, cells in ends.items()]
    with pytest.raises(DisagreementError, match="'wrong\\+shrinking' proves an optimum of at least 1.2"):
        check_agreement(variants)


@pytest.mark.parametrize("kind", ["markdown", "csv", "json"])
@pytest.mark.parametrize("model", ["svm", "l1svm"])
def test_command(samples, tmp_path, model, kind):
    which, names = ("rules", "none,dvi") if model == "svm" else ("configurations", "warm,default")
    measured = studies.BOX_MEASURED if model == "svm" else studies.FEATURES_MEASURED
    command = ["compare-rules", model, str(samples / "wang_toy2.libsvm"), f"--{which}", names, "--grid", "8"]
    assert run([*command, "--repeats", "1", "--format", kind, "-o", str(tmp_path / "table"), "--quiet"]) == 0
    text = (tmp_path / "table").read_text()
    if kind == "json":
        assert [row[which[:-1]] for row in json.loads(text)] == names.split(",")
    else:
        assert text.count("\n") == (4 if kind == "markdown" else 3)
        assert all(name in text for name in (which[:-1], *measured, "speedup"))


@pytest.mark.parametrize("kernel", [(), ("--kernel", "rbf")])
def test_rules_of_a_free_intercept(samples, capsys, kernel):
    rules = ["none", "dvi", "bt2", "it", "ssnsv", "essnsv"]
    options = ["--rules", ",".join(rules), "--grid", "12", "--repeats", "1", "--scale", "standard", "--format", "json"]
    data = str(samples / "diabetes.libsvm")
    model = "svm" if kernel else "lad"
    data = str(samples / "breast_cancer.libsvm") if kernel else data
    assert run(["compare-rules", model, data, *kernel, "--intercept", "free", *options, "--quiet"]) == 0
    rows = {row["rule"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == rules and all(row["certified"] == 12 for row in rows.values())
    found = {name: row["mean_rejection"] for name, row in rows.items()}
    assert found["none"] == 0.0 < found["dvi"] <= found["it"]


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_chunks_from_the_command_line(samples, capsys, intercept):
    command = ["compare-rules", "svm", str(samples / "breast_cancer.libsvm"), "--scale", "standard", "--chunk", "3"]
    command += ["--rules", "none,dvi+gap,essnsv,ssnsv+gap", "--intercept", intercept, "--repeats", "1", "--quiet"]
    assert run([*command, "--grid", "12", "--chunk-form", "s", "--format", "json"]) == 0
    rows = {row["rule"]: row for row in json.loads(capsys.readouterr().out)}
    assert all(row["certified"] == 12 for row in rows.values())
    assert rows["essnsv"]["search_s"] > 0.0 == rows["dvi+gap"]["search_s"]
    assert rows["essnsv"]["mean_rejection"] > rows["none"]["mean_rejection"] == 0.0


def row_of(name: str, **cells) -> dict:
    measured = {"points": 100, "certified": 100, "total_s": 0.5, "cpu_s": 0.123456}
    measured |= {"passes_per_step": 269.61, "epochs": 123456}
    return {
        "rule": name, "shrinking": True, "start": "warm", **measured, "mean_rejection": 0.92, "speedup": 1.5, **cells,
    }  # fmt: skip


def test_a_table_for_a_terminal_has_the_columns_that_fit_it():
    """What tells the rows apart, and the most wanted of the rest; the cells are those of the whole table."""
    for name, width in (("dvi", 80), ("dvi", 40), ("dvi", 20), ("somewhere/" * 5 + "rules.py:Mine", 80)):
        for more in ({}, {"unsafe": 3}):
            rows = [row_of("none", **more), row_of(name, start="cold", **more)]
            lines = to_table(rows, width).splitlines()
            columns = lines[0].split()
            assert len(lines) == 3 and (max(map(len, lines)) <= width or len(columns) == 3)
            assert {"rule", "start", *(more or ["speedup"])} <= set(columns) and "shrinking" not in columns
            whole = [line.strip("| ").split(" | ") for line in to_markdown(rows).splitlines()]
            places = [whole[0].index(column) for column in columns]
            assert places == sorted(places)
            assert [line.split() for line in lines[1:]] == [[row[k] for k in places] for row in whole[2:]]
    attacked = [{"rule": "dvi", "problems": 3, "checks": 4, "unsafe": 0}]
    assert to_table(attacked).split() == ["rule", "problems", "checks", "unsafe", "dvi", "3", "4", "0"]
    assert to_table([row_of("none\x1b[2J")]).isprintable() is False and "\x1b" not in to_table([row_of("none\x1b[2J")])


@pytest.mark.parametrize("model", ["svm", "l1svm", "sparse-svm"])
def test_a_terminal_gets_the_table_and_a_pipe_or_a_file_markdown(samples, capsys, monkeypatch, tmp_path, model):
    command = ["compare-rules", model, str(samples / "wang_toy2.libsvm"), "--repeats", "1", "--quiet"]
    command += ["--betas", "1", "--alphas", "2"] if model == "sparse-svm" else ["--grid", "2"]

    def printed(*more):
        assert run([*command, *more]) == 0
        return capsys.readouterr().out

    assert printed().startswith("| ") and not printed("--format", "table").startswith("|")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    lines = printed().splitlines()
    assert lines[0].split()[0] in ("rule", "configuration") and max(map(len, lines)) <= 80
    assert {"certified", "cpu_s", "speedup"} <= set(lines[0].split())
    assert printed("--format", "markdown").startswith("| ")
    assert printed("-o", str(tmp_path / "file")) == "" and (tmp_path / "file").read_text().startswith("| ")


def test_command_line_errors(samples, capsys):
    data = str(samples / "diabetes.libsvm")
    assert run(["compare-rules"]) == 2
    said = capsys.readouterr().err
    assert "l1svm" in said and "sparse-svm" in said
    assert run(["compare-rules", "--quiet", "l1svm", data]) == 2
    assert "screenpath compare-rules --help" in capsys.readouterr().err
    assert run(["compare", "lad", data, "--rules", "none,fast", "--quiet"]) == 2
    assert "unknown rule 'fast'" in capsys.readouterr().err
    assert run(["compare", "lad", data, "--rules", ",", "--quiet"]) == 2
    assert run(["compare", "lad", data, "--rules", "none,dvi", "--chunk", "3", "--quiet"]) == 2
    assert "add ssnsv or essnsv" in capsys.readouterr().err
    assert run(["compare", "lad", data, "--chunk-form", "s", "--quiet"]) == 2
    assert run(["compare", "lad", data, "--start", "cold", "--intercept", "none", "--solver", "newton", "--quiet"]) == 2
    assert "use cold starts with cd" in capsys.readouterr().err
    assert run(["compare", "lad", data, "--scale", "standard", "--grid", "5", "--max-epochs", "1", "--quiet"]) in (0, 3)


def test_sparse_grids_agree_under_every_rule_and_start(samples, capsys):
    command = ["compare-rules", "sparse-svm", str(samples / "wang_toy2.libsvm"), "--betas", "2", "--alphas", "5"]
    rules = "none,iss,ifs,sifs,gap,sifs+gap"
    command += ["--intercept", "none", "--solver", SDCA, "--start", "warm,cold", "--repeats", "2", "--format", "json"]
    assert run([*command, "--rules", rules]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert tuple(rows[0]) == ("rule", "start", *studies.PAIRS_MEASURED, "speedup")
    assert [(r["rule"], r["start"]) for r in rows] == [(r, s) for s in ("warm", "cold") for r in rules.split(",")]
    assert all(row["certified"] == row["points"] == 10 for row in rows)
    table = {(row["rule"], row["start"]): row for row in rows}
    assert table["none", "warm"]["speedup"] == table["none", "cold"]["speedup"] == 1.0
    assert table["none", "warm"]["epochs"] < table["none", "cold"]["epochs"]
    assert table["none", "warm"]["mean_scaling"] == 0.0 < table["sifs", "warm"]["mean_scaling"]
    assert table["sifs", "cold"]["mean_scaling"] > 0.0


def test_sparse_command_line_errors(samples, capsys):
    command = ["compare", "sparse-svm", str(samples / "wang_toy2.libsvm"), "--quiet"]
    assert run([*command, "--solver", "newton", "--start", "cold"]) == 2
    assert "leave out cold starts" in capsys.readouterr().err
    assert run([*command, "--start", "hot"]) == 2
    assert run([*command, "--rules", "none,dvi"]) == 2
    assert "unknown rule 'dvi'" in capsys.readouterr().err


@pytest.mark.parametrize(("model", "kernel"), [("svm", False), ("svm", True), ("sparse-svm", False)])
def test_by_default_the_table_is_about_the_solver_of_a_run(model, kernel):
    """The last variant has the rule that a run takes where it reads all rows."""
    for spec in (behind_kernel(specs.LINEAR_SVM), specs.SPARSE_SVM):
        assert next(one.default for one in spec.options if one.name == "solver") == "auto"
    given = {"kernel": "rbf"} if kernel else {}
    options = completed(studies.study_options(model), given, "a comparison") | {"data": None}
    _, options, variants, _ = studies.plan_of(model, options)
    rule = specs.SPECS[model].default_rule
    assert options["solver"] == "auto" and variants[-1].cells["rule"] == (SAME if rule == AUTO else rule)


@pytest.mark.parametrize("command", [["svm"], ["l1svm"], ["sparse-svm"]])
def test_every_comparison_has_the_same_words_for_a_speedup(command, capsys):
    assert run(["compare-rules", *command, "--help-all"]) == 0
    assert studies.SPEEDUP in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", ["svm", "l1svm", "sparse-svm"])
def test_the_page_says_what_every_column_counts(command, capsys):
    assert run(["compare-rules", command, "--help-all"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    measured = {*studies.BOX_MEASURED, *studies.PAIRS_MEASURED, *studies.FEATURES_MEASURED} - {"points", "certified"}
    assert studies.COLUMNS in said and all(name in studies.COLUMNS for name in measured)


def test_both_clocks_measure_the_whole_walk(monkeypatch):
    monkeypatch.setattr(compare, "clock", iter((100.0, 110.0)).__next__)
    monkeypatch.setattr(compare, "processor_clock", iter((1.0, 8.0)).__next__)
    (row,) = table("none")
    assert (row["total_s"], row["cpu_s"]) == (10.0, 7.0)


@pytest.mark.parametrize(("intercept", "closed"), [("none", True), ("free", False)])
def test_it_is_said_that_nothing_was_solved(samples, capsys, intercept, closed):
    command = ["compare-rules", "lad", str(samples / "diabetes.libsvm"), "--scale", "standard", "--repeats", "1"]
    assert run([*command, "--grid", "5", "--intercept", intercept]) == 0
    assert ("all steps are in closed form: nothing was solved" in capsys.readouterr().err) is closed
