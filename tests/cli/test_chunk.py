"""One rule for several grid points from the command line, resumed in the middle of a chunk."""

import csv

import pytest

from screenpath.cli.app import run
from tests.cli.conftest import TIMES
from tests.safety.test_rules import one_feature


@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("form", ["C", "s"])
def test_chunks_resume_to_the_same_numbers(samples, tmp_path, monkeypatch, form, intercept):
    base = ["svm", str(samples / "wang_toy2.libsvm"), "--rule", "essnsv", "--chunk", "5", "--chunk-form", form]
    base += ["--grid", "12", "--intercept", intercept, "--quiet", "--out"]
    assert run([*base, str(tmp_path / "whole")]) == 0
    monkeypatch.setattr("screenpath.store.folder.EVERY", 0.0)  # a checkpoint behind every step
    from screenpath.engine import session

    plain, seen = session.Session.keep_steps, []

    def stop_behind_three(self, found):
        seen.append(1)
        return plain(self, (pair for _, pair in zip(range(3 if len(seen) == 1 else 99), found, strict=False)))

    monkeypatch.setattr(session.Session, "keep_steps", stop_behind_three)
    assert run([*base, str(tmp_path / "parts")]) == 3
    assert run([*base, str(tmp_path / "parts"), "--resume"]) == 0

    def rows(name):
        with open(tmp_path / name / "steps.csv", newline="") as file:
            return [{k: v for k, v in row.items() if k not in TIMES} for row in csv.DictReader(file)]

    assert rows("parts") == rows("whole") and len(rows("whole")) == 12


@pytest.mark.parametrize("seed", [52, 109, 143])
def test_the_s_form_claims_nothing_that_an_audit_disproves(tmp_path, seed):
    """One feature, few rows, a loose tolerance: the guessed loss of the far point is wrong at some grid points."""
    X, y, grid = one_feature(seed)
    data = tmp_path / "line.libsvm"
    data.write_text("".join(f"{t!r} 1:{x!r}\n" for t, x in zip(y.tolist(), X[:, 0].tolist(), strict=True)))
    command = ["lad", str(data), "--rule", "essnsv", "--chunk", "5", "--chunk-form", "s", "--tol", "1e-3", "--audit"]
    command += ["--c-list", ",".join(repr(C) for C in grid.tolist()), "--quiet", "--out", str(tmp_path / "r")]
    assert run(command) == 0
    with open(tmp_path / "r" / "steps.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["unsafe"] for row in rows} == {"0"} and sum(float(row["rejection_ratio"]) for row in rows) > 1.0
