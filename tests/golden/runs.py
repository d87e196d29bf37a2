"""Short runs whose numbers two revisions must share: bytes of steps (without seconds), coefficients and certificates.

Processors round differently, so no hashes are stored: both revisions run on this machine, each from its own checkout.

usage: python tests/golden/runs.py BASE      (a git revision; exit 1 if a number differs)
"""

from __future__ import annotations

import csv
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data_samples"
BOX = {"svm": "breast_cancer.libsvm", "lad": "diabetes.libsvm", "quantile": "diabetes.libsvm", "svr": "diabetes.libsvm"}
RULES = ("none", "gap", "dvi", "it+gap", "essnsv")
SECONDS = ("screen_s", "solve_s", "certify_s", "init_s")


def commands() -> dict[str, list[str]]:
    """Return the runs by name: model, intercept, storage, class of rule, parts of a grid."""
    found = {}
    for (model, data), intercept, rule in itertools.product(BOX.items(), ("none", "free"), RULES):
        if intercept == "free" and rule == "it+gap":
            continue
        storage = "sparse" if rule in ("gap", "dvi") else "dense"
        scale = "maxabs" if storage == "sparse" else "standard"
        words = [model, str(DATA / data), "--intercept", intercept, "--rule", rule, "--storage", storage]
        found[f"{model}-{intercept}-{rule}"] = [*words, "--grid", "12", "--scale", scale]
    cancer = str(DATA / "breast_cancer.libsvm")
    for rule in ("none", "gap", "vi", "vi+gap"):
        found[f"l1svm-{rule}"] = ["l1svm", cancer, "--scale", "standard", "--rule", rule]
    for rule, intercept in itertools.product(("none", "sifs", "sifs+gap"), ("none", "free")):
        words = ["sparse-svm", cancer, "--scale", "standard", "--rule", rule, "--intercept", intercept]
        found[f"sparse-{intercept}-{rule}"] = [*words, "--betas", "2", "--alphas", "6"]
    for rule, intercept in itertools.product(("none", "dvi+gap"), ("none", "free")):
        words = ["svm", cancer, "--scale", "standard", "--kernel", "rbf", "--rule", rule, "--intercept", intercept]
        found[f"kernel-{intercept}-{rule}"] = [*words, "--grid", "6"]
    found["raw"] = ["svm", cancer, "--intercept", "none", "--grid", "12"]
    found["eps-path"] = ["svm", cancer, "--intercept", "none", "--scale", "standard", "--eps-path", "0.01"]
    return found


def numbers_of(folder: Path) -> dict[str, object]:
    """Return what must be the same of a run folder."""
    if not (folder / "steps.csv").exists():
        return {"steps": None}
    with open(folder / "steps.csv", newline="") as file:
        rows = [{name: value for name, value in row.items() if name not in SECONDS} for row in csv.DictReader(file)]
    found = {"steps": rows, "coefficients": (folder / "coefficients.csv").read_bytes()}
    certificate = folder / "certificate.bin"
    return {**found, "certificate": certificate.read_bytes() if certificate.exists() else None}


def run(checkout: Path, out: Path) -> dict[str, dict]:
    """Run all commands with the package of a checkout."""
    found = {}
    for name, words in commands().items():
        command = [sys.executable, "-m", "screenpath", *words, "--quiet", "--certificate", "-o", str(out / name)]
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
        if done.returncode not in (0, 3):
            raise SystemExit(f"{name} ended with {done.returncode}: {done.stderr}")
        found[name] = numbers_of(out / name)
    return found


def main() -> None:
    """Compare this checkout with a revision."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder, "base")
        subprocess.run(["git", "worktree", "add", "--detach", str(base), sys.argv[1]], cwd=ROOT, check=True)
        try:
            then, now = run(base, Path(folder, "then")), run(ROOT, Path(folder, "now"))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(base)], cwd=ROOT, check=True)
    differ = {name: [part for part in now[name] if now[name][part] != then[name].get(part)] for name in now}
    for name, parts in differ.items():
        where = [", ".join(columns_of(now[name]["steps"], then[name]["steps"]))] if "steps" in parts else []
        others = [part for part in parts if part != "steps"]
        print(f"{name:24} {'the same' if not parts else 'differs in ' + '; '.join(where + others)}")
    raise SystemExit(any(differ.values()))


def columns_of(now: list, then: list) -> list[str]:
    """Return the columns of two step tables that differ, numbers with their largest relative difference."""
    if now is None or then is None or len(now) != len(then):
        return ["the number of steps"]
    found: dict[str, float] = {}
    for row, old in zip(now, then, strict=True):
        for name in row.keys() | old.keys():
            one, other = row.get(name), old.get(name)
            if one != other:
                found[name] = max(found.get(name, 0.0), apart(one, other))
    return [f"{name} ({by:.0e})" for name, by in sorted(found.items())]


def apart(one: str | None, other: str | None) -> float:
    """Return the relative difference of two cells; infinity where one is no number."""
    try:
        a, b = float(one or "nan"), float(other or "nan")
    except ValueError:
        return float("inf")
    return abs(a - b) / max(abs(a), abs(b), 1e-300)


if __name__ == "__main__":
    main()
