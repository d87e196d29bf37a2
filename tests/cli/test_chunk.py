"""One rule for several grid points from the command line, resumed in the middle of a chunk."""

import csv

import pytest

from screenpath.cli.app import run
from tests.cli.conftest import TIMES


@pytest.mark.parametrize("form", ["C", "s"])
def test_chunks_resume_to_the_same_numbers(samples, tmp_path, monkeypatch, form):
    base = ["svm", str(samples / "wang_toy2.libsvm"), "--rule", "essnsv", "--chunk", "5", "--chunk-form", form]
    base += ["--grid", "12", "--quiet", "--out"]
    assert run([*base, str(tmp_path / "whole")]) == 0
    monkeypatch.setattr("screenpath.write.folder.EVERY", 0.0)  # a checkpoint behind every step
    from screenpath.cli import job

    plain, seen = job.Job.keep_steps, []

    def stop_behind_three(self, found):
        seen.append(1)
        return plain(self, (pair for _, pair in zip(range(3 if len(seen) == 1 else 99), found, strict=False)))

    monkeypatch.setattr(job.Job, "keep_steps", stop_behind_three)
    assert run([*base, str(tmp_path / "parts")]) == 3
    assert run([*base, str(tmp_path / "parts"), "--resume"]) == 0

    def rows(name):
        with open(tmp_path / name / "steps.csv", newline="") as file:
            return [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(file)]

    assert rows("parts") == rows("whole") and len(rows("whole")) == 12


def test_wrong_combinations_are_usage_errors(samples, capsys):
    data = str(samples / "wang_toy1.libsvm")
    assert run(["svm", data, "--rule", "dvi", "--chunk", "3", "-o", "-", "--quiet"]) == 2
    assert "ssnsv, essnsv" in capsys.readouterr().err
    assert run(["svm", data, "--chunk-form", "s", "-o", "-", "--quiet"]) == 2
    assert run(["svm", data, "--rule", "none", "--chunk", "3", "-o", "-", "--quiet"]) == 2
