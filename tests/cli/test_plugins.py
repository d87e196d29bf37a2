"""Rules and solvers of the user's own: they run like built-in ones, are explained where they fail, and are attacked."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import screenpath
from screenpath import svm_path
from screenpath.data.safe.plugins import PluginError
from screenpath.solve.base import Budget
from screenpath.solve.sparse_newton import make_sparse_solver
from tests.cli.conftest import clouds, without_times
from tests.conftest import ROOT
from tests.sparse_problems import problem

# A rule and a solver that are DVI and Newton's method under other names, and what can be wrong with one.
OWN = '''
from pathlib import Path
from math import sqrt
import numpy as np
from screenpath.regions.geometry import Ball, Point
from screenpath.screen.box import DVI, SSNSV, pair_ball
from screenpath.screen.sparse import parse_sparse_rule
from screenpath.screen.l1svm import VariationalInequality
from screenpath.solve.base import Solution
from screenpath.solve.newton import Newton

with open(__file__ + ".imported", "a") as mark:
    mark.write("x")


class MyRule:
    def region(self, model, reference, C):
        return pair_ball(reference, C)


class Inherits(DVI):
    def region(self, model, reference, C):
        return super().region(model, reference, C)


class MyFar:
    needs_far_end = True

    def region(self, model, reference, C, far):
        return SSNSV().region(model, reference, C, far)


class Wrong:
    def region(self, model, reference, C):
        ball = pair_ball(reference, C)
        return Ball(ball.center, 0.2 * ball.radius)


class WrongL1:
    def before(self, model, reference, parameter):
        region = VariationalInequality().region(model, reference, parameter)
        keep = model.screen(region, model.slack_of(reference))
        keep.index = keep.index[1:]
        return keep


class Sifs:
    def __init__(self):
        self.inner = parse_sparse_rule("sifs")

    def before(self, model, reference, parameter):
        return self.inner.before(model, reference, parameter)

    def again(self, model, certificate, parameter):
        return self.inner.again(model, certificate, parameter)


class WrongSifs(Sifs):
    def before(self, model, reference, parameter):
        found = super().before(model, reference, parameter)
        found.keep[np.argsort(-np.abs(reference.w))[:1]] = 0
        return found


class Raises:
    def region(self, model, reference, C):
        return 1 / np.float64(C).nothing


class Returns:
    def region(self, model, reference, C):
        return 3


class Short:
    def region(self, model, reference, C):
        point = reference.point
        return Ball(Point(point.vector, point.products[:-1].copy(), point.sqnorm), 1.0)


class Decides:
    def before(self, model, reference, C):
        return np.zeros(3)


class Abstract(DVI.__mro__[1]):
    pass


class Lacks:
    pass


class MySolver(Newton):
    name = "mine"

    def __init__(self, seed=0):
        self.seed = seed

    def solve(self, reduced, *, tol, budget, dynamic, rank=0):
        found = super().solve(reduced, tol=tol, budget=budget, dynamic=dynamic, rank=rank)
        found.solver = self.name
        return found


class ShortSolver(Newton):
    def solve(self, reduced, *, tol, budget, dynamic, rank=0):
        found = super().solve(reduced, tol=tol, budget=budget, dynamic=dynamic, rank=rank)
        found.alpha = found.alpha[:-1]
        return found


class Lies:
    """Says that it has converged, with dual variables beyond their box."""

    def solve(self, reduced, *, tol, budget, dynamic, rank=0):
        return Solution(reduced.start_w, 100.0 * reduced.hi + 1.0, 1, 0.0, True, 0, "lies")


class LiesSparse:
    def solve(self, reduced, *, tol, budget, dynamic, rank=0):
        start = reduced.start
        return Solution(start.w, 1.02 * start.theta, 1, 0.0, True, 0, "lies")
'''


@pytest.fixture
def own(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    return tmp_path / "mine.py"


@pytest.mark.parametrize(
    ("rule", "built_in", "intercept"),
    [  # with a free intercept a plain ball is decided by intervals of the intercept, that of `dvi` by levers
        ("MyRule", "dvi", "none"),
        ("Inherits+gap", "dvi+gap", "none"),
        ("MyFar", "ssnsv", "none"),
        ("MyFar", "ssnsv", "free"),
    ],
)
def test_a_rule_does_what_the_same_one_does_within_the_package(call, data, own, rule, built_in, intercept):
    for folder, name in (("a", f"mine.py:{rule}"), ("b", built_in)):
        found = call("svm", data, "--rule", name, "--intercept", intercept, "--grid", 12, "-o", folder, "-q", "--audit")
        assert found.code == 0, found.err
    tables = [without_times(f"{folder}/steps.csv", "passes", "audit_rel_gap") for folder in "ab"]
    assert tables[0] == tables[1] and any(int(row["screened_R"]) for row in tables[0])


@pytest.mark.parametrize("model", ["lad", "svm"])
def test_a_solver_does_what_the_same_one_does_within_the_package(call, data, own, model):
    for folder, name in (("a", "mine.py:MySolver"), ("b", "newton")):
        assert call(model, data, "--solver", name, "--rule", "it", "--grid", 6, "-o", folder, "-q").code == 0
    mine, theirs = (without_times(f"{folder}/steps.csv", "solver", "passes") for folder in "ab")
    assert mine == theirs
    assert "mine" in {row["solver"] for row in without_times("a/steps.csv")}


def test_python_takes_text_class_object_and_gap(own, monkeypatch):
    monkeypatch.syspath_prepend(own.parent)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    import mine

    X, y = clouds(60, 4)
    screened = {}
    for rule in (f"{own}:MyRule", mine.MyRule, mine.MyRule(), "dvi", (mine.MyRule, "gap"), "gap+" + f"{own}:MyRule"):
        path = svm_path(X, y, grid=6, intercept="none", rule=rule, solver=mine.MySolver)
        screened[str(rule)] = [step.screened_R + step.screened_L for step in path.steps]
        assert {step.solver for step in path.steps} <= {"mine", "closed-form", "constant"}
    assert len({tuple(found) for found in screened.values()}) == 1 and sum(screened["dvi"])
    folder = own.parent / "saved"
    svm_path(X, y, grid=3, rule=(mine.MyRule, "gap")).save(folder)
    assert screenpath.load_run(folder).coefficients.shape == (3, 4)
    record = json.loads((folder / "run.json").read_text())
    assert record["options"]["rule"] == "mine.py:MyRule+gap" and record["identity"]["rule_sha256"]
    with pytest.raises(PluginError, match="nothing"):
        svm_path(X, y, grid=3, rule=mine.Raises)


@pytest.mark.parametrize(
    ("option", "name", "code", "words"),
    [
        ("--rule", "none.py:MyRule", 2, ["no file none.py"]),
        ("--rule", "mine.py", 2, ["names no class", "mine.py:NAME"]),
        ("--rule", "mine.py:MyRul", 2, ["no class 'MyRul'", "did you mean MyRule?"]),
        ("--rule", "mine.py:Lacks", 2, ["no method 'region'"]),
        ("--rule", "mine.py:Abstract", 2, ["no method 'region'"]),
        ("--solver", "mine.py:Lacks", 2, ["no method 'solve'"]),
        ("--rule", "mine.py:Raises", 1, ["mine.py:67: AttributeError", "nothing", "return 1 / np.float64(C).nothing"]),
        ("--rule", "mine.py:Returns", 1, ["returned int", "return a Ball, Dome, Lens"]),
        ("--rule", "mine.py:Short", 1, ["products of a point", "(120,)"]),
        ("--rule", "mine.py:Decides", 1, ["'numpy.ndarray' object has no attribute 'status'"]),
        ("--solver", "mine.py:ShortSolver", 1, ["alpha has shape (", "that of the start, ("]),
        ("--rule", "broken.py:MyRule", 1, ["broken.py:2: SyntaxError", "def f(:"]),
    ],
)
def test_what_is_wrong_is_said_in_one_message(call, data, own, option, name, code, words):
    (own.parent / "broken.py").write_text("x = 1\ndef f(:\n")
    found = call("svm", data, option, name, "--grid", 3, "--intercept", "none", "-o", "-", "-q")
    assert found.code == code, found
    assert all(word in found.err for word in words), found.err
    assert "Traceback" not in found.err and found.err.count("error:") == 1


def test_dual_variables_beyond_their_bounds_are_cut(own):
    _, _, base = problem()
    model = base.at(0.5 * base.beta_max)
    reduced = model.reduce(0.1, model.nothing_screened(), model.start(0.1))
    found = make_sparse_solver(f"{own}:LiesSparse").solve(reduced, tol=0.1, budget=Budget(1, np.inf), dynamic=False)
    assert found.alpha.max() == 1.0


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_no_solver_can_make_a_certificate_wrong(call, data, own, intercept):
    options = "svm", data, "--c", 1.0, "--intercept", intercept, "-q"
    assert call(*options, "--solver", "mine.py:Lies", "-o", "a").code == 3
    assert call(*options, "-o", "b").code == 0
    lie, truth = (without_times(f"{folder}/steps.csv")[-1] for folder in "ab")
    assert lie["status"] != "certified" and float(lie["dual"]) <= float(truth["primal"])


def test_a_file_is_imported_only_where_it_is_named_again(call, data, own):
    command = "svm", data, "--grid", 4, "-o", "run", "-q"
    named = "--rule", "mine.py:MyRule", "--solver", "mine.py:MySolver"
    assert call(*command, *named).code == 0
    mark = Path(f"{own}.imported")
    mark.unlink(missing_ok=True)
    assert call("show", "run").code == call("verify", "run", data).code - 1 == 0  # there is no certificate to check
    assert call("predict", "run", data, "--step", 1, "-o", "labels").code == 0
    assert call("report", "run", "-o", "page.html").code == 0
    stored = screenpath.load_run("run")
    assert stored.duals(step=2).values.size == 120
    found = call(*command, "--resume")
    assert found.code == 1 and 'rule was "mine.py:MyRule"' in found.err
    assert not mark.exists()
    assert call(*command, *named, "--resume").code == 0
    own.write_text(OWN + "\n# changed\n")
    found = call(*command, *named, "--resume")
    assert found.code == 1 and "the lines of the rule's file have changed" in found.err and "solver's" in found.err


def test_workers_make_objects_of_their_own(call, data, own):
    sparse = "sparse-svm", data, "--betas", 2, "--alphas", 4, "--rule", "mine.py:Sifs+gap", "-q"
    for jobs in (1, 2):
        assert call(*sparse, "--jobs", jobs, "-o", f"sparse{jobs}").code == 0
        cv = "cv", "svm", data, "--grid", 3, "--folds", 2, "--rule", "mine.py:MyRule", "--jobs", jobs
        assert call(*cv, "--solver", "mine.py:MySolver", "-o", f"cv{jobs}", "-q").code == 0
    assert without_times("sparse1/steps.csv") == without_times("sparse2/steps.csv")
    assert without_times("cv1/folds.csv") == without_times("cv2/folds.csv")


def test_one_class_after_the_other(call, tmp_path, own):
    X, _ = clouds(60, 3)
    lines = [f"{k % 3} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row)) for k, row in enumerate(X.tolist())]
    (tmp_path / "three").write_text("\n".join(lines) + "\n")
    how = "--one-vs-rest", "--rule", "mine.py:MyRule+gap", "--grid", 4, "--audit", "-o", "-", "-q"
    found = call("svm", "three", *how)
    assert found.code == 0 and found.out.count("certified") == 4


# -- unsafe decisions -------------------------------------------------------------------------------------------------


def table(found) -> dict:
    return {row.get("rule", row.get("configuration")): row for row in json.loads(found.out)}


@pytest.mark.parametrize(
    ("model", "rules"),
    [
        ("svm", "none,dvi,mine.py:MyRule,mine.py:Wrong"),
        ("sparse-svm", "none,sifs,mine.py:Sifs+gap,mine.py:WrongSifs"), ("l1svm", "warm,scr,default,mine.py:WrongL1"),
    ],
)  # fmt: skip
def test_an_audit_counts_the_unsafe_decisions_of_a_wrong_rule_alone(call, data, own, model, rules):
    which = "--configurations" if model == "l1svm" else "--rules"
    grid = ("--betas", 2, "--alphas", 6) if model == "sparse-svm" else ("--grid", 8)
    how = "compare-rules", model, data, *grid, "--audit", "--repeats", 1, "--format", "json", "-q", which
    found = call(*how, rules)
    rows = table(found)
    *right, wrong = rules.split(",")
    assert [rows[name]["unsafe"] for name in right] == [0] * len(right)
    assert rows[wrong]["unsafe"] > 0 and found.code == 3
    assert call(*how, ",".join(right)).code == 0


def test_audits_of_several_betas_share_no_solution_of_the_same_alpha(call, data, own):
    how = "compare-rules", "sparse-svm", data, "--alpha", 0.1, "--betas", 4, "--audit", "--repeats", 1, "-q"
    found = call(*how, "--format", "json", "--rules", "none,sifs,mine.py:WrongSifs")
    assert [table(found)[name]["unsafe"] > 0 for name in table(found)] == [False, False, True]


NONE = ("--intercept", "none")


@pytest.mark.parametrize(
    ("model", "options", "right", "wrong"),
    [
        ("svm", NONE, "none,gap,dvi,bt2,it+gap,ssnsv,essnsv,mine.py:MyRule+gap", "mine.py:Wrong"),
        ("lad", (), "dvi,bt2,it+gap,essnsv", "mine.py:Wrong"),
        ("svm", (*NONE, "--kernel", "rbf"), "dvi,it+gap", "mine.py:Wrong+gap"),
        ("sparse-svm", NONE, "none,sifs,ifs,iss,sifs+gap", "mine.py:WrongSifs"),
        ("l1svm", (), "warm,scr,default", "mine.py:WrongL1"),
    ],
)
def test_an_attack_finds_a_wrong_rule_alone(call, own, model, options, right, wrong):
    which = "--configurations" if model == "l1svm" else "--rules"
    how = "compare-rules", model, *options, "--attack", 8, "--format", "json", "-q", which
    found = call(*how, right)
    rows = table(found)
    assert found.code == 0 and all(row["unsafe"] == 0 and row["problems"] == 8 for row in rows.values())
    assert all(row["decisions"] > 0 for name, row in rows.items() if name not in ("none", "warm"))
    found = call(*how, wrong)
    (row,) = table(found).values()
    assert found.code == 3 and row["unsafe"] > 0 and row["first_unsafe"] is not None


def test_the_examples_are_safe_but_for_the_printed_formula(call):
    rules = f"{ROOT}/examples/plugins/rules.py"
    how = "compare-rules", "svm", *NONE, "--attack", 50, "--format", "json", "-q", "--rules"
    assert call(*how, f"dvi,{rules}:GapBall").code == 0
    found = call(*how, f"{rules}:PrintedDVI")
    page = (ROOT / "examples" / "guide" / "plugins.md").read_text()
    (row,) = table(found).values()
    assert found.code == 3
    assert f"PrintedDVI | 50 | {row['checks']} | " in page
    assert np.isclose(row["unsafe"], 144, atol=10)  # processors round differently


def test_data_or_an_attack(call, data):
    found = call("compare-rules", "svm")
    assert found.code == 2 and "DATA is missing" in found.err
    found = call("compare-rules", "svm", data, "--attack", 3)
    assert found.code == 2 and "leave out DATA" in found.err


def test_the_page_shows_the_example():
    page, file = ((ROOT / "examples" / name).read_text() for name in ("guide/plugins.md", "plugins/rules.py"))
    shown = page.split("```python\n")[1].split("```")[0].splitlines()
    assert all(line in file.splitlines() for line in shown)


@pytest.mark.parametrize(
    ("model", "how", "bars"),
    [
        ("svm", ("--rules", "none,dvi,mine.py:Wrong", "--audit"), 9),
        ("svm", ("--rules", "dvi,mine.py:Wrong", "--attack", 2), 4),
        ("sparse-svm", ("--rules", "none,sifs", "--betas", 2, "--alphas", 3), 6),
        ("l1svm", ("--configurations", "warm,default"), 2),
    ],
)
def test_the_table_is_drawn(call, data, own, monkeypatch, model, how, bars):
    pytest.importorskip("matplotlib")
    from screenpath.report import plots

    drawn = []
    draw = plots.draw_rules
    monkeypatch.setattr(plots, "draw_rules", lambda rows: drawn.append((rows, draw(rows))) or drawn[-1][1])
    file = () if "--attack" in how else (data,)
    grid = () if model == "sparse-svm" else ("--grid", 4)
    found = call("compare-rules", model, *file, *how, *grid, "--plot", "bars.svg", "-q", "--format", "json")
    assert found.code in (0, 3), found.err
    assert Path("bars.svg").read_text().startswith("<?xml")
    rows, figure = drawn[0]
    assert rows == json.loads(found.out)
    lengths = [bar.get_width() for axes in figure.axes for bar in axes.patches]
    assert len(lengths) == bars
    wrong = [row["unsafe"] for row in rows if row.get("unsafe")]
    assert [length for length in lengths if length in wrong] == wrong


def test_a_picture_of_an_unknown_kind_is_refused_before_anything_is_read(call):
    found = call("compare-rules", "svm", "no-such-file", "--plot", "bars.gif")
    assert found.code == 2 and "--plot" in found.err and ".png" in found.err
