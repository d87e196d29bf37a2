"""Make the corpus of held-out rows: cross-validations and leave-one-outs, and of each restriction one that breaks it.

Usage: python tests/certificates/make_held_out.py [FOLDER]        (default: tests/certificates/held-out)

A folder of ``loo-...`` has data and ``loo.bin``, one of ``folds-...`` is a run folder with its data. Hashes are made
good again where they are not what is broken: each file has one fault.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.certificates.make_valid import DATA, WEIGHTS, tidy  # noqa: E402
from tests.certificates.mutants import Frames  # noqa: E402
from tests.run_folders import seal  # noqa: E402

FREE, NONE = {"intercept": "free"}, {"intercept": "none"}
CV = {"folds": 2, "grid": 3, "cmin": 0.05, "cmax": 5.0}
# name: data, model and options
VALID = {
    "loo-svm": ("two", "svm", NONE), "loo-svm-bias": ("two", "svm", {"bias": 0.7, "scale": "maxabs"}),
    "loo-svm-free": ("two", "svm", FREE), "loo-svm-free-l2": ("two", "svm", {**FREE, "scale": "l2"}),
    "loo-weights": ("two", "svm", {**NONE, "weights": "weights.txt"}), "loo-lad": ("targets", "lad", NONE),
    "loo-lad-free": ("targets", "lad", {**FREE, "scale": "standard"}),
    "loo-quantile-free": ("targets", "quantile", {**FREE, "tau": 0.3}),
    "loo-svr": ("targets", "svr", {**NONE, "epsilon": 0.3}),
    "loo-svr-free": ("targets", "svr", {**FREE, "epsilon": 0.1}), "loo-three-rows": ("two", "svm", {**NONE, "rows": 3}),
    "folds-svm": ("two", "svm", {**CV, **NONE, "certify": True}),
    "folds-svm-free": ("two", "svm", {**CV, **FREE, "certify": True}),
    "folds-svm-free-standard": ("two", "svm", {**CV, **FREE, "certify": True, "scale": "standard", "repeats": 2}),
    "folds-weights": ("two", "svm", {**CV, **NONE, "certify": True, "weights": "weights.txt", "stratify": False}),
    "folds-lad": ("targets", "lad", {**CV, **FREE, "score": "mae,r2"}),
    "folds-classes": ("three", "sparse-svm", {"folds": 2, "betas": 2, "alphas": 2, "score": "f1,accuracy"}),
    "folds-l1svm": ("two", "l1svm", {"folds": 2, "grid": 3, "score": "auc"}),
}  # fmt: skip


def of(kind: bytes, number: int, **changes):
    """Change entries and arrays of a frame of a kind: by functions of them, or to others."""

    def change(frames: Frames, folder: Path) -> None:
        frame = [frame for frame in frames.found if frame[0] == kind][number]
        for name, value in changes.items():
            part = frame[2] if name in frame[2] else frame[1]
            part[name] = value(part.get(name)) if callable(value) else value

    return change


def without(kind: bytes, number: int):
    def change(frames: Frames, folder: Path) -> None:
        frames.found.remove([frame for frame in frames.found if frame[0] == kind][number])

    return change


def table(file: str, row: int, column: str, value):
    """Change a cell of a table."""

    def change(frames: Frames, folder: Path) -> None:
        with open(folder / file, newline="") as stream:
            rows = list(csv.DictReader(stream))
        rows[row][column] = value(float(rows[row][column]))
        write(folder / file, rows)

    return change


def said(**changes):
    def change(frames: Frames, folder: Path) -> None:
        record = json.loads((folder / "cv.json").read_text())
        for name, value in changes.items():
            record[name] |= value
        (folder / "cv.json").write_text(json.dumps(record))

    return change


def moved(by: float):
    def change(frames: Frames, folder: Path) -> None:
        for frame in frames.found:
            if frame[0] == b"L":
                for name in ("value", "low", "high"):
                    frame[1][name] += by

    return change


def others(array: np.ndarray) -> np.ndarray:
    """Return numbers of other rows of the four that are trained on."""
    return (array + 1) % 4


def levers(name: str, value):
    def change(frames: Frames, folder: Path) -> None:
        for frame in frames.found:
            if frame[0] == b"S" and frame[2][name].size:
                frame[2][name] = value(frame[2][name])

    return change


# name: what it is made of, and the change
INVALID = {
    "loo-value-outside-its-bounds": ("loo-svm", of(b"L", 1, value=9.0)),
    "loo-bounds-too-narrow": ("loo-svm-free", of(b"L", 1, low=lambda x: x + 0.5, value=lambda x: x + 0.5, high=9.0)),
    "loo-values-moved": ("loo-svm", moved(1e-3)),
    "loo-another-intercept": ("loo-lad-free", of(b"L", 2, b=lambda b: b + 0.5)),
    "loo-theta-outside-its-interval": ("loo-svr", of(b"L", 1, index=np.array([0]), theta=np.array([1.5]))),
    "loo-theta-no-number": ("loo-svr", of(b"L", 1, index=np.array([0]), theta=np.array([np.nan]))),
    "loo-theta-of-the-row-itself": ("loo-lad", of(b"L", 1, index=np.array([1]), theta=np.array([0.5]))),
    "loo-theta-of-another-point": ("loo-lad", of(b"L", 1, index=np.arange(2, 8), theta=np.zeros(6))),
    "loo-index-not-rising": ("loo-lad", of(b"L", 0, index=np.array([3, 2]), theta=np.zeros(2))),
    "loo-index-too-large": ("loo-lad", of(b"L", 0, index=np.array([8]), theta=np.zeros(1))),
    "loo-row-twice": ("loo-svm", of(b"L", 1, row=0)), "loo-row-none": ("loo-svm", of(b"L", 1, row=8)),
    "loo-another-count": ("loo-svm", of(b"E", 0, left_out=7)),
    "loo-another-count-of-errors": ("loo-svm", of(b"E", 0, errors=lambda n: n + 1)),
    "loo-no-end": ("loo-svm", without(b"E", 0)), "loo-no-step": ("loo-svm", without(b"S", 0)),
    "loo-another-w": ("loo-svm", of(b"S", 0, w=lambda w: w + 0.1)),
    "loo-gap-beyond-the-tolerance": ("loo-svm", of(b"H", 0, tol=1e-30)),
    "folds-row-held-out-twice": ("folds-svm", of(b"F", 0, held_out=lambda a: np.append(a[1:], a[-1] + 0))),
    "folds-row-never-held-out": ("folds-svm", of(b"F", 0, held_out=lambda a: a[1:])),
    "folds-another-scale": ("folds-svm-free-standard", of(b"F", 1, scale=lambda a: 2.0 * a)),
    "folds-another-shift": ("folds-svm-free-standard", of(b"F", 1, shift=lambda a: a + 0.5)),
    "folds-other-weights": ("folds-weights", of(b"F", 1, weights=lambda a: 2.0 * a)),
    "folds-another-problem": ("folds-svm", of(b"H", 0, tol=0.5)),
    "folds-another-w": ("folds-lad", of(b"S", 1, w=lambda w: w + 0.1)),
    "folds-gap-too-small": ("folds-svm", of(b"S", 2, gap=-1.0)), "folds-step-missing": ("folds-svm", without(b"S", 1)),
    "folds-fold-missing": ("folds-svm", without(b"F", 1)), "folds-another-count": ("folds-svm", of(b"E", 0, folds=3)),
    "folds-another-score": ("folds-svm", table("folds.csv", 2, "score", lambda x: 1.0 - x)),
    "folds-another-r2": ("folds-lad", table("folds.csv", 2, "r2", lambda x: x + 0.1)),
    "folds-another-f1": ("folds-classes", table("folds.csv", 1, "score", lambda x: x + 0.1)),
    "folds-another-auc": ("folds-l1svm", table("folds.csv", 2, "score", lambda x: 1.0 - 0.5 * x)),
    "folds-another-mean": ("folds-lad", table("cv.csv", 1, "mean", lambda x: 0.9 * x)),
    "folds-another-choice": ("folds-lad", said(best={"step": 7})),
    "folds-bound-too-high": ("folds-svm", table("bounds.csv", 0, "lower", lambda x: x + 0.5)),
    "folds-bound-too-low": ("folds-svm-free", table("bounds.csv", 0, "upper", lambda x: x - 0.25)),
    "folds-bound-too-high-free": ("folds-svm-free", table("bounds.csv", 1, "lower", lambda x: x + 0.25)),
    "folds-lever-of-no-row": ("folds-svm-free", levers("lever_rows", lambda a: a + 4)),
    "folds-lever-weight-negative": ("folds-svm-free", levers("lever_weights", lambda a: -a)),
    "folds-lever-ends-not-rising": ("folds-svm-free", levers("lever_ends", lambda a: a[::-1])),
    "folds-lever-ends-beyond": ("folds-svm-free", levers("lever_ends", lambda a: a + 1)),
}  # fmt: skip


def make(name: str, out: Path) -> Path:
    import screenpath
    from screenpath.engine.leave_out import leave_one_out
    from screenpath.store.open import open_run

    (kind, model, options), folder = VALID[name], out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    before = Path.cwd()
    os.chdir(folder)
    try:
        Path("data.libsvm").write_text(DATA[kind].rstrip("\n") + "\n")
        if "weights" in options:
            Path("weights.txt").write_text(WEIGHTS)
        options = {"quiet": True, "out": "run", **options}
        if name.startswith("folds"):
            screenpath.cross_validate(model, "data.libsvm", certificate=True, **options)
        else:
            rows = options.pop("rows", None)
            screenpath.run(model, "data.libsvm", c_list=[0.1, 0.5], **options)
            run = open_run("run")
            Path("loo.bin").write_bytes(next(leave_one_out(run, [run.steps[1]], "data.libsvm", rows)).certificate())
            shutil.rmtree("run")
    finally:
        os.chdir(before)
    if name.startswith("folds"):
        for file in sorted((folder / "run").iterdir()):
            file.rename(folder / file.name)
        (folder / "run").rmdir()
        _without_seconds(folder)
        tidy(folder)
    return folder


def _without_seconds(folder: Path) -> None:
    with open(folder / "folds.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    write(folder / "folds.csv", [{k: "0.0" if k.endswith("_s") and v else v for k, v in row.items()} for row in rows])
    record = json.loads((folder / "cv.json").read_text())
    (folder / "cv.json").write_text(json.dumps({**record, "seconds": 0.0}))


def write(file: Path, rows: list) -> None:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    file.write_text("\n".join(lines) + "\n")


def broken(name: str, valid: Path, out: Path) -> Path:
    base, change = INVALID[name]
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(valid / base, folder)
    (file,) = (folder / part for part in ("loo.bin", "folds.bin") if (folder / part).exists())
    frames = Frames(file.read_bytes())
    change(frames, folder)
    file.write_bytes(frames.packed())
    if (folder / "run.json").exists():
        seal(folder)
    return folder


if __name__ == "__main__":
    place = Path((*sys.argv[1:], HERE / "held-out")[0])
    for one in VALID:
        make(one, place / "valid")
    for one in INVALID:
        broken(one, place / "valid", place / "invalid")
