"""The sample files are what their script makes, and hold what their README says."""

import bz2
import csv
import gzip
import lzma
import runpy

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_svmlight_file

from screenpath.data.files.generate import generate


@pytest.fixture(scope="module")
def made(samples):
    return runpy.run_path(str(samples / "make_samples.py"))["sample_files"]()


def test_script_makes_the_same_files(samples, made):
    expand = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}
    for name, content in made.items():
        kept = (samples / name).read_bytes()
        # Compressed bytes may differ between versions of the compressor; what they hold may not.
        unpack = expand.get((samples / name).suffix, bytes)
        assert unpack(kept) == unpack(content), name
        assert len(kept) < 1_000_000
    found = [path.name for kind in ("*.libsvm*", "clinic*", "wine*") for path in samples.glob(kind)]
    assert sorted(made) == sorted(found)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("breast_cancer.libsvm", lambda: load_breast_cancer(return_X_y=True)),
        ("breast_cancer.libsvm.gz", lambda: load_breast_cancer(return_X_y=True)),
        ("diabetes.libsvm", lambda: load_diabetes(return_X_y=True, scaled=False)),
        ("digits.libsvm", lambda: load_digits(return_X_y=True)), ("wang_toy1.libsvm", lambda: generate("wang-toy1", 0)),
        ("wang_toy2.libsvm", lambda: generate("wang-toy2", 0)), ("wang_toy3.libsvm", lambda: generate("wang-toy3", 0)),
    ],
)  # fmt: skip
def test_files_hold_the_sources_exactly(samples, name, expected):
    X, y = expected()
    read, labels = load_svmlight_file(str(samples / name), zero_based=False)
    np.testing.assert_array_equal(read.toarray(), X)
    np.testing.assert_array_equal(labels, y)


def test_readme_names_every_file_and_shape(samples):
    readme = (samples / "README.md").read_text()
    for name, shape in [
        ("breast_cancer", (569, 30)), ("diabetes", (442, 10)), ("digits", (1797, 64)), ("wang_toy1", (2000, 2)),
        ("wang_toy2", (2000, 2)), ("wang_toy3", (2000, 2)),
    ]:  # fmt: skip
        assert f"`{name}.libsvm`" in readme
        assert "{} × {}".format(*shape) in readme


@pytest.mark.parametrize("name", ["wine.csv", "census.csv", "art.csv.gz", "cells.csv.gz"])
def test_real_tables_have_their_shape_and_source(samples, name):
    readme = (samples / "README.md").read_text()
    with (gzip.open if name.endswith(".gz") else open)(samples / name, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert {len(row) for row in rows} == {len(header)}
    assert f"| `{name}` | {len(rows)} × {len(header)} |" in readme
    assert f"**{name.partition('.')[0]}**: " in readme


def test_tables_hold_what_the_readme_says(samples):
    readme = (samples / "README.md").read_text()
    for name in ("penguins", "penguins_new"):
        header, *lines = (samples / f"{name}.csv").read_text().splitlines()
        assert all(f"`{column}`" in readme for column in header.split(","))
        assert all(len(line.split(",")) == 7 and "" not in line.split(",") for line in lines)
        counts = [sum(line.endswith(f",{sex}") for line in lines) for sex in ("female", "male")]
        assert f"`{name}.csv` | {len(lines)} | female ({counts[0]}), male ({counts[1]}) |" in readme
