"""The schemas of ``schemas``: what every command writes obeys them, and they notice what does not."""

import json
import re

import pytest

import screenpath
from screenpath.cv.run import finished_paths
from tests.cli.conftest import ROOT
from tests.schemas import FOLDER, faults, folder_faults, table_faults, validator

TWO, NUMBERS = (ROOT / "tests" / "fixtures" / "runs-0.1.0" / name for name in ("two.libsvm", "numbers.libsvm"))
RUNS = {
    "svm": ("svm", TWO, "--grid", "4", "--scale", "standard", "--class-weight", "balanced"),
    "free": ("svm", TWO, "--grid", "4", "--intercept", "free", "--format", "json", "--test", TWO),
    "kernel": ("svm", TWO, "--kernel", "rbf", "--grid", "3"),
    "eps-path": ("svm", TWO, "--eps-path", "0.1", "--cmin", "0.1", "--cmax", "1"),
    "lad": ("lad", NUMBERS, "--grid", "4", "--audit"), "svr": ("svr", NUMBERS, "--grid", "4", "--bias", "1"),
    "l1svm": ("l1svm", TWO, "--grid", "4", "--certificate"),
    "sparse-svm": ("sparse-svm", TWO, "--alpha", "0.2,0.1", "--beta", "0.05"),
    "cv": ("cv", "svm", TWO, "--grid", "4", "--folds", "3", "--certify", "--until-turn", "--calibrate"),
}  # fmt: skip
# A value that a file may not have, by schema and the place of the value.
WRONG = [
    ("run", "status", "done"), ("run", "schema_version", 3), ("run", "options", []), ("run", "sha256", "0"),
    ("run", "totals", {}), ("run", "started", "yesterday"), ("run", "parameters", ["gamma"]),
    ("cv", "best", {"step": -1}), ("cv", "seconds", "1"), ("cv", "score", None),
]  # fmt: skip


@pytest.fixture(params=sorted(RUNS))
def run(request, call, tmp_path):
    result = call(*RUNS[request.param], "-o", "run", "--log-format", "json")
    assert result.code == 0, result.err
    return tmp_path / "run", result.err


def test_runs_and_their_messages(run):
    folder, messages = run
    assert folder_faults(folder) == []
    lines = [json.loads(line) for line in messages.splitlines()]
    assert [fault for line in lines for fault in faults("log", line)] == []
    assert {"progress", "summary"} <= {line["event"] for line in lines}


def test_a_run_whose_folds_are_under_way(tmp_path, monkeypatch):
    """As another process finds it, and a later one if this is killed."""
    found = []

    def seen(*given, **more):
        found.append(json.loads((tmp_path / "r" / "run.json").read_text()))
        return finished_paths(*given, **more)

    monkeypatch.setattr("screenpath.cv.session.finished_paths", seen)
    screenpath.cross_validate("svm", str(TWO), grid=3, folds=3, out=tmp_path / "r", quiet=True)
    assert found[0]["folds_certified"] is None and faults("run", found[0]) == []


@pytest.mark.parametrize("name, entry, value", WRONG)
def test_a_wrong_value_is_noticed(call, tmp_path, name, entry, value):
    assert call(*RUNS["cv"], "-o", "run", "--quiet").code == 0
    record = json.loads((tmp_path / "run" / f"{name}.json").read_text())
    assert faults(name, record) == []
    assert faults(name, {**record, entry: value})
    del record[entry]
    assert faults(name, record) or entry in ("started",)


def test_a_wrong_table_is_noticed(call, tmp_path):
    assert call(*RUNS["svm"], "-o", "run", "--quiet").code == 0
    text = (tmp_path / "run" / "steps.csv").read_text()
    assert table_faults("steps", text) == []
    assert table_faults("steps", text.replace("certified,", "good,"))
    assert table_faults("steps", text.replace("rel_gap", "gap_rel"))
    assert table_faults("steps", re.sub(r"^1,", "0,", text, flags=re.MULTILINE)) == ["step is not unique"]
    assert table_faults("steps", re.sub(r"^1,", "1.5,", text, flags=re.MULTILINE))
    assert table_faults("steps", text + "4\n")


def test_earlier_runs():
    for file in sorted((ROOT / "tests" / "fixtures" / "runs-0.1.0").glob("*/run.json")):
        record = json.loads(file.read_text())
        assert faults("run", record) == [], file
        assert (record["schema_version"] == 2) == ("sha256" in record)


@pytest.mark.parametrize(("model", "values"), [("quantile", "--tau-list"), ("svr", "--epsilon-list")])
def test_paths_over_tau_and_epsilon(call, tmp_path, model, values):
    words = (model, RUNS["svr"][1], "--c", "1", values, "0.2,0.5", "-o", "run", "--log-format", "json")
    logged = call(*words).err.splitlines()
    assert logged and [fault for line in logged for fault in faults("log", json.loads(line))] == []
    assert faults("run", json.loads((tmp_path / "run" / "run.json").read_text())) == []
    assert table_faults("steps", (tmp_path / "run" / "steps.csv").read_text()) == []
    assert call("export", "run", "--step", "1", "-o", "model.json").code == 0
    assert faults("export", json.loads((tmp_path / "model.json").read_text())) == []


def test_what_commands_print_as_json(call, tmp_path):
    assert call(*RUNS["l1svm"], "-o", "run", "--quiet").code == 0
    assert faults("verify", json.loads(call("verify", "run", "--format", "json").out)) == []
    assert call("export", "run", "--step", "1", "-o", "model.json").code == 0
    assert faults("export", json.loads((tmp_path / "model.json").read_text())) == []
    for words in (("info", "--json"), ("--version", "--json")):
        assert faults("info", json.loads(call(*words).out)) == []
    (tmp_path / "model.csv").write_text("feature,value\n1,0.9\n2,0.5\n")
    result = call("certify", "svm", TWO, "--weights", "model.csv", "--c", "1", "--format", "json")
    assert result.code == 0, result.err
    assert faults("certify", json.loads(result.out)) == []
    failed = call("svm", "nowhere.libsvm", "--log-format", "json")
    assert failed.code == 1
    assert faults("log", json.loads(failed.err)) == []


def test_predictions(call, tmp_path):
    for name, words in (("svm", ["--decision"]), ("svr", [])):
        assert call(*RUNS[name], "-o", name, "--quiet").code == 0
        assert call("predict", name, RUNS[name][1], "--step", "1", "-o", f"{name}.csv", *words).code == 0
        text = (tmp_path / f"{name}.csv").read_text()
        assert table_faults("predictions", text) == []
        known = {field["name"] for field in json.loads((FOLDER / "predictions.table.json").read_text())["fields"]}
        assert set(text.splitlines()[0].split(",")) <= known
        assert table_faults("predictions", "value\nmuch\n")


def test_schemas_are_schemas():
    files = [file.name.removesuffix(".schema.json") for file in FOLDER.glob("*.schema.json")]
    assert len(files) == 8
    for name in files:
        assert validator(name).schema["title"]
        assert faults(name, {}) != []
