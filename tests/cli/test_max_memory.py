"""--max-memory is kept: the peak of a command's private memory against its limit, for models, storages and modes.

A command runs without a limit first. What it takes then is more than the limit that it gets next: one that is not kept
would be seen. Under a limit a command ends as it does without one, or is refused in words, and never takes more; what
the words suggest is enough in the end.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from screenpath.compile.cache import cache_folder
from tests.cli.conftest import ROOT, screenpath
from tests.cli.measured import watch
from tests.conftest import HANGS
from tests.width import WIDE, covering

pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs the figures of Linux")

MB = 1 << 20
CLASSES = 4
SHARE = 0.85  # of what a command takes beside an idle process is its first limit
LEAST = 4 * MB  # more than an idle process takes: less is lost in the rounding of limits
ATTEMPTS = 4  # refused by the size of the file, by its rows, on disk by those that survive: each time by what is known
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
GRID = ("--grid", "2", "--cmin", "1e-4", "--cmax", "1e-3")
SETTINGS = {
    "svm": ("--positive", "1", *GRID), "lad": GRID, "quantile": ("--tau", "0.7", *GRID), "svr": GRID,
    "sparse-svm": ("--betas", "1", "--alphas", "2", "--alpha-min-ratio", "0.5"),
    "l1svm": ("--positive", "1", "--grid", "3"), "kernel": ("--positive", "1", "--kernel", "rbf", *GRID),
}  # fmt: skip
CASES = [(name, storage, "path") for storage in ("dense", "sparse", "shards", "cache") for name in SETTINGS]
CASES += [("l1svm", "columns", "path"), ("sparse-svm", "columns", "path")]
# lad, quantile and svr are the same model with other kinks and slopes.
CASES += [(name, storage, "cv") for name, storage in (
    ("svm", "sparse"), ("svm", "shards"), ("lad", "dense"), ("sparse-svm", "sparse"), ("l1svm", "dense"),
    ("kernel", "sparse"),
)]  # fmt: skip
CASES += [(name, storage, "compare") for name, storage in (
    ("svm", "dense"), ("svr", "sparse"), ("sparse-svm", "dense"), ("l1svm", "sparse"), ("kernel", "dense"),
)]  # fmt: skip
CASES += [("svm", "sparse", "one-vs-rest")]
# A narrow run has every model, each of the four kinds of model with every storage, and every mode. Each of the four
# models of the first kind has one of the four storages; `predict` reads what svm has made of sparse rows.
KIND = dict(zip(("lad", "svm", "quantile", "svr"), ("dense", "sparse", "shards", "cache"), strict=True))
NARROW = {
    *(k for k, (name, storage, what) in enumerate(CASES) if what == "path" and KIND.get(name, storage) == storage),
    *covering([{"what": what} for *_, what in CASES], 1),
}
CHOSEN = [case for k, case in enumerate(CASES) if WIDE or k in NARROW]


def write_sample(path, n: int, gap: int | None, seed: int = 0) -> None:
    """Write LIBSVM text of four classes: 60 values a row, one behind the other or up to ``gap`` columns apart."""
    rng = np.random.default_rng(seed)
    columns = np.cumsum(np.ones((n, 60), dtype=int) if gap is None else rng.integers(1, gap, size=(n, 60)), axis=1)
    labels = rng.integers(1, CLASSES + 1, size=n)
    values = np.round(rng.normal(size=columns.shape) + (columns % CLASSES + 1 == labels[:, None]), 2)
    with open(path, "w") as file:
        for label, row, cells in zip(labels.tolist(), columns.tolist(), values.tolist(), strict=True):
            file.write(f"{label} {' '.join([f'{j}:{v}' for j, v in zip(row, cells, strict=True)])}\n")


def arguments(name: str, storage: str, what: str, size: str = "") -> list:
    """Return the command line of a model on a storage: a path, or what else is done."""
    size = size or ("few-" if name == "kernel" else "")
    words = [what] if what in ("cv", "compare") else []
    words.append("svm" if name == "kernel" else name)
    words += {
        "shards": [f"{size}data.shards"], "columns": [f"{size}data.columns"],
        "cache": [f"{size}sparse", "--cache", f"{size}kept.cache"],
    }.get(storage, [f"{size}{storage}"])  # fmt: skip
    words += ("--one-vs-rest", *GRID) if what == "one-vs-rest" else SETTINGS[name]
    words += ["--tol", "1e-3"]
    if (name, what) == ("l1svm", "compare"):
        return [*words, "--configurations", "org,default", "--repeats", "1"]
    words += {"cv": ["--folds", "2"], "compare": ["--repeats", "1"]}.get(what, [])
    return [*words, "--quiet", "--force", "-o", f"{size}{name}-{storage}-{what}"]


class Forked:
    """A warm process that forks commands and watches them; see ``measured.py``."""

    def __init__(self, where, warm: list):
        self.process = subprocess.Popen(
            [sys.executable, ROOT / "tests" / "cli" / "measured.py", json.dumps(warm)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=where,
        )  # fmt: skip
        if not any(line == "ready\n" for line in self.process.stdout):
            self.close()
            raise AssertionError("the commands do not run")
        self.idle = self.run(["--version"])["peak"]

    def run(self, argv: list) -> dict:
        """Return exit code, peak and stderr of a command."""
        self.process.stdin.write(json.dumps(argv) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=HANGS)
        self.process.stdout.close()


class Started:
    """Commands as users start them, with all that they load, and with their worker processes."""

    def __init__(self, where):
        self.where = where
        self.idle = self.run(["--version"])["peak"]

    def run(self, argv: list) -> dict:
        """Return exit code, peak and stderr of a command."""
        with tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "screenpath", *argv], stdout=subprocess.DEVNULL, stderr=err, env=ENVIRONMENT,
                cwd=self.where,
            )  # fmt: skip
            process.returncode, peak = watch(process.pid)
            err.seek(0)
            return {"code": process.returncode, "peak": peak, "err": err.read()}


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    """A folder with data; ``few-`` for kernels, ``tiny-`` to load everything with."""
    folder = tmp_path_factory.mktemp("memory")
    for size, n, gap in (("", 8_000, 400), ("few-", 1_200, 8), ("tiny-", 60, 400)):
        write_sample(folder / f"{size}dense", n, None)
        write_sample(folder / f"{size}sparse", n, gap)
    return folder


@pytest.fixture(scope="module")
def forked(where):
    """The process that forks."""
    warm = [["convert", f"{name}sparse", f"{name}data.{by}", "--by", by.replace("shards", "rows"), "--block-mb", "1",
             "--force", "--quiet"]
            for name in ("", "few-", "tiny-") for by in ("shards", "columns")]  # fmt: skip
    warm += [arguments(*case, "tiny-") for case in CHOSEN]
    warm.append(["predict", "tiny-svm-sparse-path", "tiny-sparse", "--step", "0", "--quiet"])
    kernels = len(list(cache_folder().glob("*.kernel")))
    process = Forked(where, warm)
    if (
        len(list(cache_folder().glob("*.kernel"))) > kernels
    ):  # who has compiled has free memory that commands take first
        process.close()
        process = Forked(where, warm)
    yield process
    process.close()


def check(commands, argv: list, share: float = SHARE) -> None:
    """Run a command without a limit, under one that does not suffice for that, and under those that are suggested."""
    free = commands.run(argv)
    assert free["code"] in (0, 3), free
    if free["peak"] - commands.idle < LEAST:
        pytest.skip("the command finds all it takes in memory that its process has already")
    limit = int(commands.idle + share * (free["peak"] - commands.idle)) // MB
    assert free["peak"] > limit * MB > commands.idle  # it could be crossed, and is not crossed by doing nothing
    for _ in range(ATTEMPTS):
        found = commands.run([*argv, "--max-memory", f"{limit}M"])
        assert found["peak"] <= limit * MB, (limit, found)
        if found["code"] == free["code"]:
            return
        # A comparison has said which runs it has begun before one of them is refused.
        said = re.sub(r"\A(run \d+/\d+: \w+\n)*", "", found["err"])
        assert found["code"] == 1 and said.startswith("error: ") and "Traceback" not in said, found
        limit = int(re.findall(r"use --max-memory (\d+)M", found["err"])[-1])
    raise AssertionError(f"{ATTEMPTS} times a limit is said to be enough that is not: {found}")


@pytest.mark.parametrize(
    ("name", "storage", "what"),
    [pytest.param(*case, marks=[] if case in CHOSEN else [pytest.mark.wide_only], id="-".join(case)) for case in CASES],
)
def test_a_limit_is_kept(forked, where, name, storage, what):
    # Matrices of l1svm come from the heap. A fork has what the warm process has freed of it: to a limit, that is taken.
    check(Started(where) if name == "l1svm" else forked, arguments(name, storage, what))


@pytest.mark.wide_only
def test_a_limit_is_kept_from_the_start_of_the_process(forked, where):
    check(Started(where), arguments("svm", "sparse", "path"))


@pytest.mark.wide_only
def test_a_limit_is_kept_by_all_processes_together(forked, where):
    check(Started(where), [*arguments("svm", "dense", "cv"), "--jobs", "2"])


def test_predict_takes_what_one_step_takes(forked, where):
    steps = ("--grid", "80", "--cmin", "1e-6", "--cmax", "1e-4")
    made = forked.run([*arguments("svm", "sparse", "path"), *steps])
    lines = (where / "svm-sparse-path" / "coefficients.csv").read_bytes().count(b"\n")
    assert made["code"] == 0 and 24 * lines > 24 * MB  # three numbers a line
    found = forked.run(["predict", "svm-sparse-path", "few-sparse", "--step", "7", "--quiet", "-o", "predicted.csv"])
    assert found["code"] == 0 and found["peak"] < forked.idle + 24 * MB, found  # 20 for other things


@pytest.mark.parametrize("words", [("svm",), ("svm", "--kernel", "rbf"), ("cv", "svm", "--folds", "2", "--jobs", "2")])
def test_the_first_limit_that_is_suggested_is_enough(where, words):
    """That of a refusal while data are read, for what comes later, too."""
    start = [*words, str(ROOT / "data_samples/breast_cancer.libsvm"), "--grid", "3", "--quiet", "-o", "-".join(words)]
    refused = screenpath(*start, "--max-memory", "1K", cwd=where)
    assert refused.returncode == 1 and "reading beyond line" in refused.stderr
    limit = re.findall(r"--max-memory (\d+M)", refused.stderr)[0]
    done = screenpath(*start, "--max-memory", limit, cwd=where)
    assert done.returncode == 0, done.stderr
