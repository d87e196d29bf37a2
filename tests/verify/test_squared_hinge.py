"""Certificates of the sparse SVM with the squared hinge, whose dual variables have no upper end."""

import json

import numpy as np
import pytest

from screenpath.verify import check
from screenpath.verify.file import NAME, read_certificate
from tests.cli.conftest import call as call
from tests.cli.conftest import clouds, libsvm_text
from tests.safety.facts import seal

GRID = ("--loss", "squared-hinge", "--betas", 2, "--alphas", 4, "--certificate", "--force", "--quiet", "-o", "r")


@pytest.fixture
def data(tmp_path):
    X, y = clouds(n=60)
    (tmp_path / "two").write_text(libsvm_text(X, y))
    (tmp_path / "three").write_text(libsvm_text(X + np.arange(60)[:, None] % 3, np.arange(60) % 3 + 1.0))
    weights = 10.0 ** np.random.default_rng(0).uniform(-2.0, 1.0, size=60)
    (tmp_path / "weights").write_text("\n".join(f"{value!r}" for value in weights.tolist()) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    "what", [("two",), ("two", "--intercept", "free"), ("two", "--bias", 0.5), ("three",)], ids=str
)
def test_what_a_run_claims_holds(call, data, what):
    for more in ((), ("--weights", "weights", "--scale", "maxabs")):
        assert call("sparse-svm", *what, *GRID, *more).code == 0
        found = call("verify", "r")
        assert (found.code, found.err) == (0, "") and "8 of 8 steps proven" in found.out
        header, steps = read_certificate(data / "r" / NAME)
        assert header["loss"] == "squared-hinge" and max(entry["between"].max(initial=0.0) for entry in steps) > 1.0
        for k, factor in ((-1, 1.001), (-1, np.inf), (-1, -1.0)):
            wrong = [dict(entry) for entry in steps]
            wrong[k]["between"] = wrong[k]["between"] * np.where(np.arange(wrong[k]["between"].size) == 3, factor, 1.0)
            assert not check(header, wrong, data / what[0]).holds or factor == 1.001
            wrong[k]["values"] = wrong[k]["values"] * 1.01
            assert check(header, wrong, data / what[0]).proven < 8
        del header["loss"]  # of the hinge they are no dual points
        assert not check(header, steps, data / what[0]).holds


def test_an_unknown_loss_is_none(call, data):
    from screenpath.errors import DataError

    assert call("sparse-svm", "two", *GRID).code == 0
    header, steps = read_certificate(data / "r" / NAME)
    with pytest.raises(DataError, match="options"):
        check({**header, "loss": "logistic"}, steps, data / "two")
    record = (data / "r" / "run.json").read_text()
    seal(data / "r", json.loads(record.replace('"squared-hinge"', '"hinge"')))
    found = call("verify", "r")
    assert found.code == 1 and "another loss" in found.out + found.err
