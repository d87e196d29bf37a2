"""Runs of several kinds, computed once."""

import csv
import json
import shutil

import numpy as np
import pytest

from screenpath.cli.app import run as screenpath
from screenpath.store.open import open_run
from tests.cli.conftest import clouds, libsvm_text
from tests.run_folders import reseal

COMMANDS = {
    "path": ["svm", "two", "--grid", "12", "--scale", "standard", "--intercept", "none"],
    "one": ["svm", "two", "--c", "1"], "many": ["svm", "narrow", "--grid", "1000"],
    "features": ["l1svm", "two", "--grid", "8"], "grid": ["sparse-svm", "two", "--betas", "3", "--alphas", "5"],
    "classes": ["sparse-svm", "three", "--betas", "2", "--alphas", "3"],
    "kernel": ["svm", "two", "--grid", "5", "--kernel", "rbf", "--intercept", "none"],
    "several": ["svm", "three", "--grid", "3", "--one-vs-rest", "--kernel", "rbf"],
    "rest": ["svm", "three", "--grid", "5", "--one-vs-rest"], "regression": ["lad", "two", "--grid", "5"],
}  # fmt: skip


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    X, y = clouds()
    for name, columns, labels in (("two", 5, y), ("narrow", 2, y), ("three", 5, np.arange(y.size) % 3)):
        (folder / name).write_text(libsvm_text(X[:, :columns], labels))
    opened = {}
    for name, (model, data, *options) in COMMANDS.items():
        arguments = [model, str(folder / data), *options, "--quiet", "--out", str(folder / f"run-{name}")]
        assert screenpath(arguments) == 0
        opened[name] = open_run(folder / f"run-{name}")
    return opened


def write_cv(run, path, certified=True):
    """Copy a run and put a cross-validation beside it; return the run and the mean scores."""
    shutil.copytree(run.path, path)
    mean = 0.9 - 0.01 * np.abs(np.arange(len(run.steps)) - 3)

    def choice(k):
        parameters = {name: run.steps[k][name] for name in run.parameters}
        return {"step": k, "parameters": parameters, "mean": mean[k], "se": 0.015}

    values = [row["C"] for row in run.steps] if run.parameters == ["C"] else []
    bound = {"best_error": 0.1, "best_C": 1.0, "lower_bound": 0.08, "difference": 0.02, "cmin": 0.01, "cmax": 10.0}
    record = {
        "schema_version": 1, "model": run.model, "score": "accuracy", "higher_is_better": True, "folds": 5,
        "repeats": 2, "parameters": run.parameters, "best": choice(3), "one_se": choice(2),
        "at_boundary": None, "certified": bound if certified else None,
    }  # fmt: skip
    (path / "cv.json").write_text(json.dumps(record))
    with open(path / "cv.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", *run.parameters, "mean", "se", "n_folds", "best", "one_se"])
        for k, row in enumerate(run.steps):
            writer.writerow([k, *(row[name] for name in run.parameters), mean[k], 0.015, 10, int(k == 3), int(k == 2)])
    if certified:
        lines = [f"{a!r},{b!r},0.08,0.2" for a, b in zip(values, values[1:], strict=False)]
        (path / "bounds.csv").write_text("\n".join(["C_from,C_to,lower,upper", *lines]) + "\n")
    reseal(path)
    return open_run(path), mean
