"""Make the valid half of the corpus: small runs of every model, penalty, intercept, storage, kernel and kind of data.

Usage: python tests/certificates/make_valid.py [FOLDER]        (default: tests/certificates/valid)

Each folder is a run folder with its data, whose name begins with ``data``. What differs from machine to machine, and
that no checker compares, is left out: names, times, versions of libraries.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import shutil
import sys
from pathlib import Path

import numpy as np

from tests.plain import words
from tests.run_folders import seal

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

TWO = """1 1:0.5 2:-1.25 3:2
-1 1:-0.75 3:1
1 2:0.3 3:-0.1
-1 1:-2 2:0.1
1 1:1.5 2:0.7 3:0.4
-1 1:0.25 2:-0.6 3:-1.1
1 1:0.1 2:1
-1 2:-2.5 3:0.9
"""
TARGETS = "\n".join(
    f"{y} {line.split(' ', 1)[1]}"
    for y, line in zip(["2.5", "-1", "0.75", "-3", "2", "-0.25", "1.5", "-4"], TWO.splitlines(), strict=True)
)
THREE = "\n".join(f"{k % 3} {line.split(' ', 1)[1]}" for k, line in enumerate(TWO.splitlines()))
WORDS = "\n".join(f"{'no' if line[0] == '-' else 'yes'} {line.split(' ', 1)[1]}" for line in TWO.splitlines())
FAR = "\n".join(f"{(-1) ** k} 1:{1e8 + 3 * k * k!r} 2:{-3e7 + k % 3!r} 3:{k % 4 + 0.5}" for k in range(8))
REST = WORDS.replace("yes", "rest")
WIDE = TWO.replace("3:", "30000000:").replace(" 2:", " 70:")
NONE = "\n".join(f"{line.split(' ', 1)[0]} 1:{k % 2}.5" for k, line in enumerate(TWO.splitlines()))
TABLE = """size,shade,weight,kind
0.5,red,-1.25,a
-0.75,green,1,b
0.3,red,-0.1,a
-2,blue,0.1,b
1.5,green,0.7,a
0.25,blue,-0.6,b
"""
WEIGHTS = "1\n0.3\n2\n0\n1.7\n0.9\n1\n1\n"
PENALTIES = "1\n0.3\n2\n"
DATA = {
    "two": TWO, "targets": TARGETS, "three": THREE, "words": WORDS, "rest": REST, "far": FAR, "wide": WIDE,
    "none": NONE, "zero": TWO.replace(" 1:", " 0:"),
}  # fmt: skip
SPARSE, WEIGHED = ("--betas", "2", "--alphas", "2"), ("--weights", "weights.txt")
# name: data, model and options
RUNS = {
    "svm": ("two", "svm"), "svm-bias": ("two", "svm", "--bias", "0.7"),
    "svm-free": ("two", "svm", "--intercept", "free"),
    "svm-free-weights": ("two", "svm", "--intercept", "free", "--weights", "weights.txt"),
    "svm-free-maxabs": ("two", "svm", "--intercept", "free", "--scale", "maxabs"),
    "svm-free-centred": ("far", "svm", "--intercept", "free"),
    "svm-free-centred-maxabs": ("far", "svm", "--intercept", "free", "--scale", "maxabs"),
    "svm-maxabs": ("two", "svm", "--scale", "maxabs"),
    "svm-standard": ("two", "svm", "--scale", "standard", "--bias", "1"),
    "svm-l2": ("two", "svm", "--scale", "l2", "--bias", "-0.5"),
    "svm-sample-weights": ("two", "svm", "--weights", "weights.txt"),
    "svm-class-weights": ("two", "svm", "--class-weight", "1=3"),
    "svm-balanced": ("two", "svm", "--class-weight", "balanced", "--weights", "weights.txt"),
    "svm-positive": ("three", "svm", "--positive", "2"), "svm-words": ("words", "svm"),
    "svm-word-rest": ("rest", "svm"), "svm-gzip": ("two.gz", "svm"), "svm-bzip2": ("two.bz2", "svm"),
    "svm-xz": ("two.xz", "svm"), "svm-csv": ("table", "svm", "--target", "kind", "--one-hot", "shade"),
    "svm-sparse-rows": ("two", "svm", "--storage", "sparse"),
    "l1svm-sparse-rows": ("two", "l1svm", "--storage", "sparse", "--scale", "maxabs"),
    "sparse-sparse-rows": ("two", "sparse-svm", *SPARSE, "--storage", "sparse"),
    "svm-few-columns": ("wide", "svm", "--scale", "maxabs"), "svm-more-features": ("two", "svm", "--n-features", "5"),
    "svm-json-npz": ("two", "svm", "--format", "json", "--coefficients", "npz"),
    "svm-eps-path": ("two", "svm", "--eps-path", "0.5", "--cmin", "0.2", "--cmax", "2"),
    "svm-stopped": ("two", "svm", "--time-limit", "1e-9"), "svm-linear-kernel": ("two", "svm", "--kernel", "linear"),
    "svm-poly": ("two", "svm", "--kernel", "poly", "--degree", "2", "--gamma", "0.5", "--coef0", "1"),
    "svm-rbf": ("two", "svm", "--kernel", "rbf", "--gamma", "0.3", "--bias", "0.5"),
    "svm-rbf-free": ("two", "svm", "--kernel", "rbf", "--gamma", "1/d", "--intercept", "free"),
    "svm-rbf-l2": ("two", "svm", "--kernel", "rbf", "--scale", "l2"),
    "svm-rbf-standard": ("two", "svm", "--kernel", "rbf", "--scale", "standard", "--tol", "1e-3"),
    "lad": ("targets", "lad"), "lad-free": ("targets", "lad", "--intercept", "free", "--weights", "weights.txt"),
    "quantile": ("targets", "quantile", "--tau", "0.1"),
    "quantile-free": ("targets", "quantile", "--tau", "0.9", "--intercept", "free", "--scale", "standard"),
    "quantile-weights": ("targets", "quantile", "--tau", "0.3", "--weights", "weights.txt"),
    "lad-rbf-free": ("targets", "lad", "--kernel", "rbf", "--intercept", "free"),
    "quantile-poly": ("targets", "quantile", "--kernel", "poly", "--degree", "2", "--tau", "0.3"),
    "svm-laplacian-free": ("two", "svm", "--kernel", "laplacian", "--scale", "maxabs", "--intercept", "free"),
    "svm-laplacian-l2": ("two", "svm", "--kernel", "laplacian", "--gamma", "0.3", "--bias", "1", "--scale", "l2"),
    "svr-rbf": ("targets", "svr", "--kernel", "rbf", "--epsilon", "0.3", *WEIGHED),
    "svr-rbf-free": ("targets", "svr", "--kernel", "rbf", "--intercept", "free"),
    "svr": ("targets", "svr", "--epsilon", "0.3"),
    "svr-free": ("targets", "svr", "--epsilon", "0.1", "--intercept", "free", "--scale", "l2"),
    "l1svm": ("two", "l1svm"), "l1svm-standard": ("two", "l1svm", "--scale", "standard", "--class-weight", "balanced"),
    "l1svm-l2": ("two", "l1svm", "--scale", "l2", "--weights", "weights.txt"), "l1svm-far": ("far", "l1svm"),
    "l1svm-penalty-weights": ("two", "l1svm", "--penalty-weights", "penalties.txt"),
    "sparse": ("two", "sparse-svm", *SPARSE), "sparse-hinge": ("two", "sparse-svm", *SPARSE, "--smoothing", "0"),
    "sparse-squared": ("two", "sparse-svm", *SPARSE, "--loss", "squared-hinge", "--bias", "0.5"),
    "sparse-no-ridge": ("two", "sparse-svm", "--betas", "2", "--alpha", "0.1,0", "--smoothing", "0"),
    "sparse-no-ridge-squared": ("two", "sparse-svm", "--betas", "2", "--alpha", "0", "--loss", "squared-hinge"),
    "sparse-free": ("two", "sparse-svm", *SPARSE, "--intercept", "free", "--weights", "weights.txt"),
    "sparse-free-l2": ("two", "sparse-svm", *SPARSE, "--intercept", "free", "--scale", "l2"),
    "sparse-free-no-ridge": ("two", "sparse-svm", "--betas", "2", "--alpha", "0", "--intercept", "free"),
    "sparse-classes": ("three", "sparse-svm", *SPARSE, "--weights", "weights.txt", "--bias", "1"),
    "sparse-classes-hinge": ("three", "sparse-svm", "--betas", "2", "--alpha", "0.1,0", "--smoothing", "0"),
    "sparse-classes-squared": ("three", "sparse-svm", *SPARSE, "--loss", "squared-hinge", "--scale", "maxabs"),
    "sparse-classes-csv": ("table", "sparse-svm", *SPARSE, "--target", "shade", "--one-hot", "kind"),
    "sparse-zero-based": ("zero", "sparse-svm", *SPARSE, "--zero-based"), "huber": ("targets", "huber", *SPARSE),
    "lad-smoothed": ("targets", "lad", "--kernel", "rbf", "--smoothing", "0.4", *WEIGHED),
    "svm-smoothed-free": ("two", "svm", "--kernel", "linear", "--smoothing", "0.2", "--intercept", "free", *WEIGHED),
    "huber-free": ("targets", "huber", *SPARSE, "--smoothing", "2.5", "--intercept", "free", *WEIGHED),
    "huber-nonnegative": ("targets", "huber", *SPARSE, "--nonnegative", "--bias", "1"),
    "sparse-nonnegative-free": ("two", "sparse-svm", *SPARSE, "--nonnegative", "--intercept", "free"),
    "sparse-nonnegative-no-ridge": ("two", "sparse-svm", "--betas", "2", "--alpha", "0.1,0", "--nonnegative"),
    "huber-no-lasso": ("targets", "huber", "--penalty", "l2", "--alphas", "2"),
    "sparse-lad-no-ridge": ("targets", "sparse-lad", "--betas", "2", "--penalty", "l1", "--intercept", "free"),
    "sparse-quantile": ("targets", "sparse-quantile", *SPARSE, "--tau", "0.3", "--smoothing", "0.2"),
    "sparse-svr": ("targets", "sparse-svr", *SPARSE, "--intercept", "free", "--epsilon", "0.3", *WEIGHED),
    "huber-no-ridge": ("targets", "huber", "--betas", "2", "--alpha", "0.1,0", "--smoothing", "0.3"),
}  # fmt: skip
# name: data, model and options, and what a step claims of a row that these codes prove (its own, that of its frame N)
CLOSE = ("--cmin", "0.5", "--cmax", "2", "--grid", "4", "--tol", "1e-6")
CLAIMS = {
    "claims-before": (("two", "svm", *CLOSE), lambda proven, _: (2 if 2 in proven else 0, None)),
    "claims-after": (("two", "svm", *CLOSE), lambda proven, _: (3 if 3 in proven else 0, None)),
    "claims-next": (("targets", "lad", *CLOSE), lambda proven, k: (0, proven[k % len(proven)] if proven else 0)),
    "claims-next-ignored": (
        ("two", "svm", *CLOSE),
        lambda proven, k: (
            proven[k % len(proven)] if proven else 0, min({1, 2, 3} - {*proven}, default=0) if proven else 0,
        ),
    ),
    "claims-l2": (
        ("targets", "lad", *CLOSE, "--scale", "l2"),
        lambda proven, k: ((0, max(proven)) if k % 2 else (min(proven), 0)) if proven else (0, 0),
    ),
}  # fmt: skip
RUNS |= {name: run for name, (run, _) in CLAIMS.items()}
OPENERS = {"gz": lambda data: gzip.compress(data, mtime=0), "bz2": bz2.compress, "xz": lzma.compress}
GRIDS = dict.fromkeys(("sparse-svm", "huber", "sparse-lad", "sparse-quantile", "sparse-svr"), ())
GRIDS["l1svm"] = "--grid", "3"


def make(name: str, out: Path) -> Path:
    from screenpath.cli.app import run

    (kind, model, *options), folder = RUNS[name], out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    base, _, packed = kind.partition(".")
    data = f"data.{'csv' if base == 'table' else 'libsvm'}{'.' * bool(packed)}{packed}"
    text = TABLE if base == "table" else DATA[base].rstrip("\n") + "\n"
    files = {"weights.txt": WEIGHTS, "penalties.txt": PENALTIES}
    before = Path.cwd()
    os.chdir(folder)
    try:
        Path(data).write_bytes(OPENERS.get(packed, bytes)(text.encode()))
        for file in set(files) & set(options):
            Path(file).write_text(files[file])
        grid = (
            ()
            if {"--eps-path", "--grid"} & set(options)
            else GRIDS.get(model, ("--grid", "3", "--cmin", "0.05", "--cmax", "5"))
        )
        options = *options, *words(model, options)
        code = run([model, data, *grid, "--certificate", "--quiet", *options, "-o", "run", "--force"])
        assert code == (3 if name == "svm-stopped" else 0), (name, code)
    finally:
        os.chdir(before)
    for file in sorted((folder / "run").iterdir()):
        file.rename(folder / file.name)
    (folder / "run").rmdir()
    if name in CLAIMS:
        claim(folder, folder / data, CLAIMS[name][1])
    tidy(folder)
    return folder


def claim(folder: Path, data: Path, rule) -> None:
    """Let the steps of a certificate claim of rows what a rule says, of the codes that are proven."""
    from tests.certificates.compare import exact
    from tests.certificates.mutants import Frames

    file = folder / "certificate.bin"
    frames = Frames(file.read_bytes())
    _, _, steps, _ = exact.certified(file.read_bytes(), data)
    head, *given, end = (frame for frame in frames.found if frame[0] != b"N")
    frames.found = [head]
    later = None
    for number, frame in enumerate(given):
        step, codes = steps[number], []
        for k in range(len(step.states)):
            proven = [code for code in (1, 2, 3) if is_proven(step, steps, k, code)]
            codes.append(rule(proven, k))
        frame[2]["claims"] = of_two_bits([own for own, _ in codes])
        frames.found += [frame, *([later] if later else [])]
        later = [b"N", {"step": number}, {"claims": of_two_bits([code or 0 for _, code in codes])}]
        later = None if codes[0][1] is None else later
    frames.found.append(end)
    file.write_bytes(frames.packed())


def is_proven(step, steps: dict, k: int, code: int) -> bool:
    """Tell whether a step may claim this of a row, by the exact checker."""
    entry = step.entry
    codes = [code * (i == k) for i in range(len(step.states))]
    step.entry = {**entry, "after": None, "claims": ("u1", tuple(of_two_bits(codes).tolist()))}
    found = step.claims(steps)
    step.entry = entry
    return not found


def of_two_bits(codes: list):
    """Return codes as the file has them."""
    return np.array(
        [sum(code << 2 * j for j, code in enumerate(codes[i : i + 4])) for i in range(0, len(codes), 4)], "u1"
    )


def tidy(folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text())
    record |= {"machine": {}, "working_directory": "", "started": "", "ended": ""}
    record["command"] = ["screenpath", record["model"]]
    record["versions"] = {"screenpath": record["versions"]["screenpath"]}
    record["totals"]["seconds"] = {}
    if record["kernel"]:
        record["kernel"]["seconds"] = 0.0
    seconds = ("screen_s", "solve_s", "certify_s", "init_s")
    if (table := folder / "steps.csv").exists():
        head, *lines = table.read_text().splitlines()
        places = [k for k, name in enumerate(head.split(",")) if name in seconds]
        rows = [[("0.0" if k in places and cell else cell) for k, cell in enumerate(line.split(","))] for line in lines]
        table.write_text("\n".join([head, *(",".join(row) for row in rows), ""]))
    else:
        table = folder / "steps.json"
        content = json.loads(table.read_text())
        for row in content["steps"]:
            row.update({name: 0.0 for name in seconds if row.get(name)})
        table.write_text(json.dumps(content))
    seal(folder, record)


def main() -> None:
    out = Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "valid")
    for name in RUNS:
        make(name, out)


if __name__ == "__main__":
    main()
