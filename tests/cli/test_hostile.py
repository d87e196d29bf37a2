"""Input and surroundings that nobody hopes for: one clear message, or simply the right numbers."""

import json
import os
import resource
import signal

import pytest

from tests.cli.conftest import clouds, libsvm_text, read_csv, screenpath
from tests.width import wide

GRID = ("--grid", "5", "--cmax", "1", "--quiet")


def test_one_row_of_very_many_features(call, tmp_path):
    many = wide(10**5, 10**6)
    cells = " ".join(f"{j}:{j % 9 + 1}" for j in range(1, many + 1))
    (tmp_path / "wide").write_text(f"1 {cells}\n-1 7:1\n")
    result = call("svm", "wide", "--c-list", "1e-9,1e-8", "-o", "r", "--quiet", "--coefficients", "npz")
    assert result.code == 0, result.err
    assert json.loads((tmp_path / "r/run.json").read_text())["data"]["n_features"] == many
    assert call("convert", "wide", "shards", "--quiet").code == 0
    assert call("svm", "shards", "--c-list", "1e-9,1e-8", "-o", "s", "--quiet", "--coefficients", "npz").code == 0
    assert [row["primal"] for row in read_csv("r/steps.csv")] == [row["primal"] for row in read_csv("s/steps.csv")]


def test_labels_only(call, tmp_path):
    (tmp_path / "labels").write_text("1\n-1\n1\n")
    result = call("svm", "labels", *GRID, "-o", "r")
    assert result.code == 0, result.err  # w = 0 is the solution, and certified
    assert {row["nnz_w"] for row in read_csv("r/steps.csv")} == {"0"}


@pytest.mark.parametrize("words", [
    "svm --grid HUGE", "l1svm --grid HUGE", "sparse-svm --betas HUGE", "sparse-svm --alphas HUGE",
    "svm --grid 2 --max-memory HUGEG", "cv svm --kernel rbf --gammas HUGE --grid 2",
])  # fmt: skip
def test_numbers_that_no_machine_can_count(call, data, words):
    found = call(*words.replace("HUGE", "1" + 30 * "0").split(), data, "-o", "r", "--quiet")
    assert found.code == 2 and found.err.count("error: ") == 1 and "Traceback" not in found.err


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_read(call, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(tmp_path))
    found = call("svm", "missing.csv", "-o", "a/b")
    assert found.code == 1 and found.err.startswith("error: a/b cannot be made: ") and "missing" not in found.err
    (tmp_path / "a/b").mkdir(parents=True)
    assert "missing.csv: no such file" in call("svm", "missing.csv", "-o", "a/b").err  # it need not be made


@pytest.mark.parametrize("words", [
    ("svm", ""), ("predict", "", "data"), ("show", ""), ("convert", "data", ""), ("merge", "", "b", "-o", "c"),
    ("svm", "data", "--weights", ""), ("svm", "data", "--test", ""), ("compare-rules", "svm", ""),
    ("svm", "data", "-o", ""), ("predict", "run", "data", "-o", ""), ("report", "run", "-o", ""),
    ("compare-rules", "svm", "data", "--plot", ""), ("show", "run", "--duals", ""), ("loo", "run", "-o", ""),
])  # fmt: skip
def test_a_variable_of_the_shell_that_is_not_set(call, words):
    found = call(*words)
    assert found.code == 2 and "the name is empty: is a variable of the shell not set?" in found.err


def test_names_with_blanks_and_letters_of_all_kinds(call, tmp_path):
    name = "däta set ✓ (1).libsvm"
    (tmp_path / name).write_text(libsvm_text(*clouds()))
    assert call("svm", name, *GRID, "-o", "rün 1").code == 0
    assert call("convert", name, "shärds 1", "--quiet").code == 0
    assert call("svm", "shärds 1", *GRID, "-o", "rün 2", "--cache", "çache").code == 0
    assert call("svm", name, *GRID, "-o", "rün 3", "--cache", "çache").code == 0
    assert len({(tmp_path / f"rün {k}/coefficients.csv").read_bytes() for k in (1, 2, 3)}) == 1


def test_output_that_cannot_be_written(call, data, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for arguments in (("svm", data, *GRID, "-o", "file/run"), ("convert", data, "file/shards")):
        result = call(*arguments)
        assert result.code == 1 and "file" in result.err and "Traceback" not in result.err, result.err
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everywhere")
    os.chmod(tmp_path, 0o555)
    try:
        for arguments in (("svm", data, *GRID, "-o", "run"), ("convert", data, "shards")):
            result = call(*arguments)
            assert result.code == 1 and "ermission denied" in result.err
    finally:
        os.chmod(tmp_path, 0o755)


def test_read_only_data(call, data, tmp_path):
    """Nothing is written beside the data."""
    assert call("convert", data, "kept/shards", "--quiet").code == 0
    places = [tmp_path / "kept/shards", tmp_path / "kept"]
    before = sorted(p.name for p in places[0].iterdir())
    for path in [*places[0].iterdir(), *places]:
        os.chmod(path, 0o555)
    try:
        assert call("svm", "kept/shards", *GRID, "-o", "r").code == 0
    finally:
        for path in reversed(places):
            os.chmod(path, 0o755)
    assert sorted(p.name for p in places[0].iterdir()) == before


def test_run_folder_of_a_newer_version(call, data, tmp_path):
    assert call("svm", data, *GRID, "-o", "r").code == 0
    file = tmp_path / "r/run.json"
    file.write_text(file.read_text().replace('"schema_version": 2', '"schema_version": 99'))
    for more in ((), ("--resume",)):
        result = call("svm", data, *GRID, "-o", "r", *more)
        assert result.code == 1 and "schema" in result.err, result.err
    assert call("svm", data, *GRID, "-o", "r", "--force").code == 0


def test_full_disk_while_converting(call, data, tmp_path, monkeypatch):
    """A limit on the size of files stands for a full disk: there is no folder then, and the next call makes it."""
    assert call("convert", data, "before", "--quiet").code == 0  # keeps the compiled code while that is possible
    for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
        monkeypatch.delenv(name)  # its file could not be written either

    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # Python keeps byte code that was cut off

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = screenpath("convert", data, tmp_path / "shards", preexec_fn=limited)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "shards").exists()
    assert call("convert", data, "shards", "--quiet").code == 0
    assert not (tmp_path / "shards.partial").exists()
