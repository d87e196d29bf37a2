"""runs: runs side by side on the terminal; their list, and commands that take the newest of it."""

import json
import os

import pytest

import screenpath
from tests.cli.conftest import ROOT, in_process


def test_side_by_side(call, data):
    for name, model in (("a", "svm"), ("b", "l1svm")):
        assert call("cv", model, data, "--grid", 4, "--folds", 3, "-o", name, "-q").code == 0
    found = call("runs", "a", "b")
    assert found.code == 0 and found.err == ""
    assert "2 runs on the same 3 folds" in found.out and "+-" in found.out
    again = call("runs", "a", "b", "--step", "one-se", "--test", data)
    assert again.code == 0 and "the same 120 rows" in again.out


def test_refusals(call, data):
    assert call("svm", data, "--c", 1, "-o", "a", "-q").code == 0
    assert call("svm", data, "--c", 2, "-o", "b", "-q").code == 0
    found = call("runs", "a", "b", "--step", 0)
    assert found.code == 2 and "share nothing" in found.err and "--test FILE" in found.err and found.out == ""
    assert call("runs", "a", "nothing").code == 1
    assert call("runs", "a", "b", "--step", 0, "--test", "gone").code == 1


def test_runs_without_scores_have_a_line_each(call, three):
    listed = call("runs").out.splitlines()
    found = call("runs", three[2], three[0])
    assert found.code == 0 and found.err.startswith("no comparison of scores: ") and "without --test" in found.err
    assert [line.split() for line in found.out.splitlines()] == [listed[k].split() for k in (0, 3, 1)]
    assert call("runs", three[2], three[0], "--quiet").err == ""
    alone = call("runs", three[1])
    assert alone.code == 0 and alone.err == "" and alone.out.splitlines()[1].split() == listed[2].split()


def test_a_comparison_comes_after_the_lines(call, data):
    for name, grid in (("a", 4), ("b", 5)):
        assert call("cv", "svm", data, "--grid", grid, "--folds", 3, "-o", name, "-q").code == 0
    head, first, second, blank, rest = call("runs", "a", "b").out.split("\n", 4)
    assert [line.split()[0] for line in (head, first, second)] == ["run", "a", "b"] and blank == ""
    assert rest.startswith("2 runs on the same 3 folds") and rest.count(" for path and folds\n") == 2


@pytest.fixture
def three(call, data, tmp_path):
    names = ["runs/svm-clouds", "runs/cv-lad-clouds", "b"]
    for age, command in enumerate((["svm", data], ["cv", "lad", data, "--folds", 2], ["svm", data, "--rule", "none"])):
        name = names[age]
        assert call(*command, "--grid", 3, "-o", name, "-q").code == 0
        os.utime(tmp_path / name / "run.json", (10**9 - 1000 * age,) * 2)
    return names


def test_alone_it_lists_the_runs_below_the_folder(call, three, tmp_path):
    found = call("runs")
    assert found.code == 0 and found.err == ""
    head, *lines = found.out.splitlines()
    assert head.split() == ["run", "model", "rule", "certified", "rejection", "passes", "CPU"]
    assert [line.split("  ")[0] for line in lines] == three
    assert len({len(line) for line in (head, *lines)}) == 1
    totals = json.loads((tmp_path / "b" / "run.json").read_text())["totals"]
    assert lines[2].split()[:4] == ["b", "svm", "none", f"{totals['certified']}/3"]
    assert [float(one) for one in lines[2].split()[4:6]] == pytest.approx([0.0, totals["passes"]], rel=0.01)
    assert " cv lad " in lines[1]


def test_what_is_damaged_or_of_others_does_not_hide_the_runs(call, three, tmp_path):
    for name, text in (("torn", '{"tool": "screenpath", "sche'), ("theirs", '{"tool": "other"}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text)
    lines = call("runs").out.splitlines()
    assert len(lines) == 5 and lines[-1].startswith("torn/run.json is damaged: ")
    (tmp_path / "torn" / "run.json").unlink()
    assert "the newest run is runs/svm-clouds\n" in call("show").err


@pytest.mark.parametrize("command", [["show"], ["plot", "--terminal"], ["report"]])
def test_alone_a_command_takes_the_newest_run_and_says_which(call, three, tmp_path, command):
    named = call(*command[:1], three[1], *command[1:])
    (tmp_path / three[1] / "report.html").unlink(missing_ok=True)
    os.utime(tmp_path / three[1] / "run.json", (2 * 10**9,) * 2)
    alone = call(*command)
    assert alone.code == named.code == 0 and alone.out == named.out
    assert alone.err == f"the newest run is {three[1]}\n{named.err}"
    (tmp_path / three[1] / "report.html").unlink(missing_ok=True)
    assert call(*command, "--quiet").err == ""


def test_without_a_run_they_say_what_to_do(call, tmp_path):
    for command in ("runs", "show", "plot", "report"):
        found = call(command)
        assert found.code == 2 and found.out == "" and len(found.err.splitlines()) == 2
        assert "no run folder" in found.err and "screenpath svm DATA" in found.err
    for option in ("--step", "--test", "--target"):
        assert call("runs", option, "x").code == 2 and "two runs or more" in call("runs", option, "x").err


def test_commands_that_print_load_no_numba(three, tmp_path):
    script = """
import os, sys
os.chdir(sys.argv[1])
from screenpath.cli.app import run
codes = [run(words.split()) for words in sys.argv[2:]]
assert "numba" not in sys.modules and "matplotlib" not in sys.modules
sys.exit(max(codes))
"""
    run, data = three[1], ROOT / "data_samples" / "penguins.csv"
    reading = f"inspect {data} --target sex --one-hot species --one-hot island"
    few = tmp_path / "few.csv"
    few.write_text("a,b,label\n" + "".join(f"{k},{k % 3},{k % 2}\n" for k in range(12)))
    screenpath.run("svm", few, grid=3, quiet=True, out=tmp_path / "table")
    predicting = f"predict {tmp_path / 'table'} {few} --step 2"
    commands = ["runs", f"show {run}", "rules svm", "info", reading, predicting]
    done = in_process(script, tmp_path, *commands)
    assert done.returncode == 0 and len(done.stdout.splitlines()) > 20, done.stdout + done.stderr
