"""How many files a rule, solver, column, option or format touches: each is added to a copy of the package, and used."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.architecture.house import commands
from tests.cli.conftest import clouds, libsvm_text

ROOT = Path(__file__).resolve().parents[2]
# A region that contains the optimum because the ball of DVI does: twice its radius.
RULE = '''

class Wide(DVI):
    """The ball of DVI with twice its radius."""

    name = "wide"
    compiled = None

    def region(self, model, reference, C: float) -> Ball:
        """Return the ball of the reference's own pair, blown up."""
        ball = pair_ball(reference, C)
        return Ball(ball.center, 2.0 * ball.radius)
'''
OPTION = '''
EMPHASIS = Option(
    "emphasis", 1.0, "positive", "Factor of all losses.", stated=True, changes=True, python="models", metavar="F"
)
'''
USE = '''    if options["emphasis"] != 1.0:
        weights = [options["emphasis"] * one for one in ([1.0] * rows.n if weights is None else weights)]
'''
# From Python: the keyword with its check and its documentation, run, the estimators and the page of the reference.
USED = """
import importlib.util, inspect, json
import numpy as np
import screenpath
from screenpath.errors import UsageError
from screenpath.sklearn import LADRegressor, LADRegressorCV

data = screenpath.read_data("data")
X, y, C = data.X.toarray(), data.y, {"grid": [0.5], "tol": 1e-9}
double = screenpath.lad_path(X, y, grid=[1.0], tol=1e-9).coef()
assert np.allclose(screenpath.lad_path(X, y, emphasis=2.0, **C).coef(), double, rtol=1e-3, atol=1e-4)
assert not np.allclose(screenpath.lad_path(X, y, **C).coef(), double, rtol=1e-3, atol=1e-4)
assert "emphasis : float, default 1.0\\n    Factor of all losses." in inspect.getdoc(screenpath.lad_path)
assert "emphasis" not in inspect.signature(screenpath.l1_svm_path).parameters
try:
    screenpath.lad_path(X, y, emphasis=-1)
except UsageError as error:
    assert str(error) == "`emphasis` must be a positive number, not -1", error
else:
    raise AssertionError("a wrong value was taken")
run = screenpath.run("lad", "data", emphasis=2.0, c=0.5, out="run", quiet=True)
assert np.allclose(run.coef(), double, rtol=1e-3, atol=1e-4)
assert json.load(open("run/run.json"))["identity"]["emphasis"] == 2.0
path = screenpath.lad_path(X, y, emphasis=2.0, **C)
path.save("saved")
assert json.load(open("saved/run.json"))["identity"]["emphasis"] == 2.0
model = LADRegressor(0.5, emphasis=2.0).fit(X, y)
assert model.get_params()["emphasis"] == 2.0 and np.allclose(model.coef_, double, rtol=1e-3, atol=1e-4)
assert LADRegressorCV(emphasis=2.0, **C).fit(X, y).path_.certified and "Factor of all" in LADRegressorCV.__doc__
place = importlib.util.spec_from_file_location("site_of_the_guide", "SITE")
site = importlib.util.module_from_spec(place)
place.loader.exec_module(site)
assert "| `--emphasis F` | `1.0` | functions, estimators | Factor of all losses. |" in site.model_page("lad")
import runpy
runpy.run_path("STUBS", run_name="__main__")
"""
FORMAT = '''def lines_text(run: Run, step: dict) -> str:
    """Return the weights as text, one a line."""
    return "".join(f"{value!r}\\n" for value in run.coefficients(step)[0].ravel().tolist())


'''
SOLVER = '''"""Newton under another name."""

from screenpath.solve.newton import Newton


class Renamed(Newton):
    """Newton under another name."""

    name = "renamed"
'''
@pytest.fixture
def house(tmp_path):
    """A copy of the package, a function that changes a file of it, and one that runs commands, then a script."""
    shutil.copytree(ROOT / "screenpath", tmp_path / "screenpath")  # byte code too: times of files stay
    X, y = clouds(60, 4, seed=1)
    (tmp_path / "data").write_text(libsvm_text(np.round(X, 6), y))
    touched = set()

    def change(name, old, new):
        file = tmp_path / "screenpath" / name
        text = file.read_text() if file.exists() else ""
        assert not text or text.count(old) >= 1, (name, old)
        file.write_text(text.replace(old, new, 1) if text else new)
        touched.add(name)

    def run(*lines, script=""):
        found = commands(tmp_path, *lines, script=script)
        assert [one.code for one in found] == [0] * len(lines), found
        return [one.out for one in found]

    return change, run, touched


def test_a_rule_touches_two_files(house):
    change, run, touched = house
    change("screen/box.py", "\n\nclass BT2", RULE + "\n\nclass BT2")
    change("screen/__init__.py", "BT2, DVI, ESSNSV", "BT2, DVI, ESSNSV, Wide")
    change("screen/__init__.py", '"bt2": BT2', '"wide": Wide, "bt2": BT2')
    assert len(touched) <= 2
    table, compared = run(
        "svm data --intercept none --rule wide --grid 6 --audit -o - --quiet",
        "compare svm data --rules none,wide --grid 3 --repeats 1 --quiet",
    )
    table = table.splitlines()
    rows = [dict(zip(table[0].split(","), line.split(","), strict=True)) for line in table[1:]]
    assert {row["status"] for row in rows} == {"certified"} and {row["unsafe"] for row in rows} == {"0"}
    assert sum(int(row["screened_R"]) + int(row["screened_L"]) for row in rows) > 0
    assert "wide" in compared


def test_a_solver_touches_two_files(house):
    change, run, touched = house
    change("solve/renamed.py", "", SOLVER)
    change("solve/__init__.py", 'NAMES = ("auto", ', 'NAMES = ("auto", "renamed", ')
    change(
        "solve/__init__.py",
        '    if name == "newton":',
        '    if name == "renamed":\n        from screenpath.solve.renamed import Renamed\n\n'
        '        return Renamed()\n    if name == "newton":',
    )
    assert len(touched) <= 2
    (table,) = run("lad data --intercept none --solver renamed --grid 3 -o - --quiet")
    assert table.count("certified") == 3


def test_a_column_touches_two_files(house):
    change, run, touched = house
    column = '    pairs: Annotated[int, Column("half of the epochs", 0)]\n'
    change("walk/step.py", "    rounds: Annotated", f"{column}    rounds: Annotated")
    change("walk/step.py", '**work, "passes"', '**work, "pairs": work["epochs"] // 2, "passes"')
    half = '    columns |= {"pairs": columns["epochs"] // 2}\n'
    change("walk/compiled.py", '    columns |= {"gap_target"', f'{half}    columns |= {{"gap_target"')
    assert len(touched) <= 2
    paths = "svm data", "svm data --rule it", "l1svm data", "svm data --one-vs-rest"
    found = run(
        *(f"{path} --grid 3 -o - --quiet" for path in paths), "svm data --grid 3 -o run --quiet --test data",
        "predict run data --step best --quiet",
    )  # fmt: skip
    for text in found[: len(paths)]:
        table = text.splitlines()
        rows = [dict(zip(table[0].split(","), line.split(","), strict=True)) for line in table[1:]]
        assert len(rows) == 3 and all(int(row["pairs"]) == int(row["epochs"]) // 2 for row in rows)


def test_an_option_touches_two_files(house, tmp_path):
    """Where it is declared and where it is used: flag, keyword, documentation, estimators, stub and page are made."""
    change, run, touched = house
    change("catalogue/options.py", "\nPREPARATION = (", OPTION + "PREPARATION = (")
    change("catalogue/losses.py", "C_GRID, CERTIFICATE,", "C_GRID, CERTIFICATE, EMPHASIS,")
    change("catalogue/losses.py", "*self.options, PENALTY,", "*self.options, EMPHASIS, PENALTY,")
    change("catalogue/losses.py", "    return loss.model(rows,", f"{USE}    return loss.model(rows,")
    assert len(touched) <= 2
    script = USED.replace("SITE", str(ROOT / "examples" / "guide" / "site.py"))
    lad, svr, l1svm, *tables = run(
        "lad --help-all", "cv svr --help-all", "l1svm --help-all",
        "lad data --c 0.5 --emphasis 2 -o - --quiet", "lad data --c 1 -o - --quiet",
        script=script.replace("STUBS", str(ROOT / "tests" / "architecture" / "stubs.py")),
    )  # fmt: skip
    assert "--emphasis F" in lad and "--emphasis" in svr and "--emphasis" not in l1svm
    tables = [table.splitlines() for table in tables]
    rows = [dict(zip(table[0].split(","), table[1].split(","), strict=True)) for table in tables]
    assert {row["status"] for row in rows} == {"certified"}
    assert float(rows[0]["primal"]) == pytest.approx(float(rows[1]["primal"]), rel=1e-5)
    for name in ("__init__.pyi", "sklearn/__init__.pyi"):
        assert "emphasis: float = 1.0" in (tmp_path / "screenpath" / name).read_text()
    assert len(touched) <= 2


def test_an_export_format_touches_one_file(house, tmp_path):
    change, run, touched = house
    change("export/export.py", "FORMATS: dict", f"{FORMAT}FORMATS: dict")
    change("export/export.py", '    "json": json_text,', '    "json": json_text,\n    "lines": lines_text,')
    assert len(touched) == 1
    words, *_ = run(
        "export --help", "svm data --grid 2 -o run --quiet", "export run --to lines --step 1 -o shell --quiet",
        script="import screenpath; screenpath.export_run('run', 'lines', 'python', step=1)",
    )  # fmt: skip
    assert "lines" in words
    weights = [float(line) for line in (tmp_path / "shell").read_text().splitlines()]
    assert len(weights) == 4 and any(weights)
    assert (tmp_path / "python").read_bytes() == (tmp_path / "shell").read_bytes()
