"""``screenpath plot`` and ``screenpath report`` from the command line."""

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import ROOT, in_process
from tests.conftest import HANGS


@pytest.fixture
def run(call, data):
    assert call("svm", data, "--grid", "6", "--out", "run", "--quiet").code == 0
    return "run"


@pytest.mark.parametrize("columns", ["0", "3"])
def test_a_terminal_that_does_not_know_its_size(call, data, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    assert call("svm", data, "--grid", 3, "-o", "r", "--quiet").code == 0
    assert "svm: gap of r" in call("plot", "r", "--terminal", "--kind", "gap").out


def test_files_are_pictures(call, run, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    result = call("plot", run)
    assert result.code == 0 and result.out == "" and "run/rejection.png" in result.err
    assert (tmp_path / "run/rejection.png").read_bytes().startswith(b"\x89PNG")
    assert call("plot", run, "--kind", "gap", "-o", "gap.svg", "--quiet").err == ""
    assert "<svg" in (tmp_path / "gap.svg").read_text()
    assert call("plot", run, "-o", "b.PDF").code == 0
    assert (tmp_path / "b.PDF").read_bytes().startswith(b"%PDF")
    assert call("report", run, "-o", "report.html").code == 0
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_a_kernel_path_that_screens_nothing_is_drawn_by_its_gaps(call, data):
    assert call("svm", data, "--grid", "4", "--kernel", "rbf", "-o", "k", "--quiet").code == 0
    assert call("plot", "k", "--terminal").out.startswith("svm: gap of k")
    assert "rejection of k" in call("plot", "k", "--terminal", "--kind", "rejection").out
    assert call("svm", data, "--grid", "4", "--kernel", "rbf", "--rule", "dvi", "-o", "r", "--quiet").code == 0
    assert not call("plot", "r", "--terminal").out.startswith("svm: gap of r")


def test_a_page_on_standard_output(call, run, tmp_path, monkeypatch):
    monkeypatch.setattr("screenpath.report.page._figure", lambda run, kind: "")
    assert call("report", run, "-o", "report.html").code == 0
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    page = call("report", run, "-o", "-", "--quiet")
    assert page.out == (tmp_path / "report.html").read_text() and page.err == ""


def test_wrong_usage(call, run):
    result = call("plot", run, "-o", "x.gif")
    assert result.code == 2 and "x.gif" in result.err and ".svg" in result.err
    assert call("plot", run, "--terminal", "-o", "x.png").code == 2
    result = call("plot", run, "--kind", "grid")
    assert result.code == 2 and "sparse-svm" in result.err and "rejection" in result.err
    assert "screenpath cv" in call("plot", run, "--kind", "cv").err
    result = call("plot", "nowhere")
    assert result.code == 1 and "not a run folder" in result.err


@pytest.fixture
def several(call, data):
    scaled = ("--rule", "dvi", "--scale", "standard")
    for name, model, *rest in (("a", "svm", "--rule", "none"), ("b", "svm", *scaled), ("c", "l1svm")):
        assert call(model, data, "--grid", 6, *rest, "-o", name, "-q").code == 0


def test_several_runs_on_one_picture(call, several, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    found = call("plot", "a", "b")
    assert found.code == 0 and found.err == "wrote rejection.png\n"
    assert (tmp_path / "rejection.png").read_bytes().startswith(b"\x89PNG")
    assert call("plot", "a", "b").code == 2  # it is there
    for kind in ("rejection", "gap", "time"):
        assert call("plot", "a", "b", "--kind", kind, "-o", f"{kind}.svg").code == 0
        text = (tmp_path / f"{kind}.svg").read_text()
        assert "a (none)" in text and "b (dvi)" in text


def test_equal_lines_are_both_seen_and_the_usual_rule_is_not_named(call, data, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    for name in ("a", "b"):
        assert call("svm", data, "--grid", 6, "-o", name, "-q").code == 0
    assert call("plot", "a", "b", "--kind", "gap", "-o", "gap.svg").code == 0
    text = (tmp_path / "gap.svg").read_text()
    assert "auto" not in text and text.count("stroke-dasharray") == 2  # of the second line, and of its key


def test_several_runs_on_the_terminal(call, several, tmp_path):
    found = call("plot", "a", "b", "--terminal")
    assert found.code == 0 and found.err == "" and not list(tmp_path.glob("*.png"))
    _, none, dvi, along = found.out.splitlines()
    assert none.split() == ["a", "(none)", "▁" * 6, "0", "0"]  # nothing is screened
    assert dvi.startswith("b (dvi)") and "█" in dvi and dvi.split()[2] != "▁" * 6
    assert along.startswith("share screened before the solve along C")


@pytest.mark.parametrize("width", [80, 100, 0])
def test_weights_along_a_path_fit_the_terminal_each_on_its_own_scale(call, tmp_path, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    names = ["a", "a name that is longer than there is room for it on a line"]
    rows = [f"{k % 2},{k % 5 + 3 * (k % 2)},{1000 * (k % 3) + 700 * (k % 2)}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join([",".join(["label", *names]), *rows, ""]))
    assert call("svm", "t.csv", "--target", "label", "--grid", 100, "-o", "r", "-q").code == 0
    lines = call("plot", "r", "--terminal", "--kind", "coefficients").out.splitlines()
    assert max(map(len, lines)) <= (width or 96)
    assert any(names[1][:24] in line for line in lines)
    for line in lines[2:4]:
        assert "▁" in line and "█" in line  # a small weight is as visible as a large one


def test_runs_that_no_picture_can_show_together(call, several):
    found = call("plot", "a", "c", "--terminal")
    assert found.code == 2 and "a by C and c by lambda" in found.err
    found = call("plot", "a", "b", "--kind", "coefficients")
    assert found.code == 2 and "--kind of rejection, gap, time, cv" in found.err and found.out == ""


@pytest.mark.parametrize("values", ["1e-307,1e-200,1,100", "1,1e100,1e200,1e300", "2e299,3e299,4e299,5e299"])
def test_parameters_near_the_ends_of_double_precision(call, data, tmp_path, values):
    """A logarithmic axis overflows there: the picture has the powers of ten on a plain one."""
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    call("svm", data, "--c-list", values, "--max-epochs", "20", "--quiet", "-o", "run")
    assert call("report", "run", "-o", tmp_path / "run.html").code == 0
    assert (tmp_path / "run.html").read_text().count("<svg") >= 3


def test_a_run_without_coefficients_has_other_pictures(call, data):
    assert call("svm", data, "--grid", "6", "--out", "bare", "--coefficients", "none", "--quiet").code == 0
    result = call("plot", "bare", "--kind", "coefficients", "--terminal")
    assert result.code == 2 and "--coefficients csv" in result.err


def test_without_matplotlib(call, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for arguments in (["plot", run], ["report", run, "-o", "report.html"]):
        result = call(*arguments)
        assert result.code == 1 and "pip install 'screenpath[plot]'" in result.err
    assert call("plot", run, "--terminal").code == 0


def test_terminal(call, run, data):
    result = call("plot", run, "--terminal")
    assert result.code == 0 and "█" in result.out and "▒" in result.out
    assert result.out.count(" %") >= 12  # R and L of six steps
    assert "certified" in call("plot", run, "--kind", "gap", "--terminal").out
    assert "solve" in call("plot", run, "--kind", "time", "--terminal").out
    assert "5 features have weights" in call("plot", run, "--kind", "coefficients", "--terminal").out
    call("sparse-svm", data, "--betas", "2", "--alphas", "3", "--out", "grid", "--quiet")
    result = call("plot", "grid", "--kind", "grid", "--terminal")
    assert result.code == 0 and "scaling ratio" in result.out and "█" in result.out


def test_a_terminal_of_any_encoding(call, run, data, tmp_path):
    assert call("cv", "svm", data, "--grid", "6", "--folds", "3", "--out", "folds", "--quiet").code == 0
    script = "import sys\nfrom screenpath.cli.app import run\n" + "".join(
        f"assert run(['plot', '{name}', '--kind', '{kind}', '--terminal']) == 0\n"
        for name, kind in ((run, "rejection"), (run, "coefficients"), (run, "gap"), (run, "time"), ("folds", "cv"))
    )
    for encoding in ("ascii", "latin-1", "utf-8"):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, timeout=HANGS
        )
        assert (done.returncode, done.stderr) == (0, b""), done.stderr
        drawn = done.stdout.decode(encoding)
        assert ("█" in drawn, "##" in drawn) == ((True, False) if encoding == "utf-8" else (False, True))
        assert "\\x" not in drawn and "\\u" not in drawn  # every character has one that stands for it


def test_narrow_terminals_keep_the_numbers(call, run, data, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert call("cv", "svm", data, "--grid", "6", "--folds", "3", "--out", "folds", "--quiet").code == 0
    for arguments in (["folds"], [run, "--kind", "gap"], [run, "--kind", "rejection"]):
        result = call("plot", *arguments, "--terminal")
        assert result.code == 0 and "…" not in result.out and max(map(len, result.out.splitlines())) <= 80
    assert "best" in call("plot", "folds", "--terminal").out


def test_pictures_need_no_kernel(run, tmp_path):
    script = (
        "import sys\nfrom screenpath.cli.app import run\n"
        "assert run(['plot', sys.argv[1], '--terminal', '--kind', 'coefficients']) == 0\n"
        "assert 'numba' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    result = in_process(script, tmp_path / run)
    assert result.returncode == 0, result.stderr
