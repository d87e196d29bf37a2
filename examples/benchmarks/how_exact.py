"""How exact are other solvers at their default tolerances? The table of `examples/guide/exact.md`:

    python examples/benchmarks/how_exact.py FOLDER [--seconds 60] [--sets NAME,NAME]

FOLDER has `binary/NAME.libsvm.gz` and `regression/NAME.libsvm.gz`. Features are standardised (those of wide sets
divided by their largest value). Every solver has its defaults, C = 1 among them; each fit runs in a process of its own,
which ends after `--seconds`. A cell is the relative gap that `screenpath.certify` proves, and behind it how many labels
are proven not to be those of the optimum. Libraries that are not installed are named.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import tempfile
import warnings
from pathlib import Path

import numpy as np

import screenpath

BINARY = ("breast_cancer", "german_scale", "winequality12", "mushrooms", "pcmac")
REGRESSION = ("diabetes", "cpusmall", "cadata")
WIDE = 500  # features from which a set is divided by its largest values
MOST = 4000  # rows up to which models behind a kernel are certified, whose matrix is n x n


def liblinear(options: str):
    """Return a function that trains LIBLINEAR's own program, and returns the name of its model file."""

    def fit(X, y, folder):
        from liblinear.liblinearutil import problem, save_model, train

        model = train(problem(y, X), f"{options} -q")
        save_model(str(path := Path(folder) / "liblinear.model"), model)
        return str(path)

    return fit


def estimator(module: str, name: str, **more):
    def fit(X, y, folder):
        return getattr(importlib.import_module(module), name)(**more).fit(X, y)

    return fit


CLASSIFIERS = {
    "LIBLINEAR -s 3 -B 1": (liblinear("-s 3 -c 1 -B 1"), "liblinear", {"c": 1.0}),
    "LinearSVC": (estimator("sklearn.svm", "LinearSVC"), "sklearn", {}),
    "LinearSVC, hinge": (estimator("sklearn.svm", "LinearSVC", loss="hinge"), "sklearn", {}),
    "SVC, linear": (estimator("sklearn.svm", "SVC", kernel="linear"), "sklearn", {}),
    "SVC": (estimator("sklearn.svm", "SVC"), "sklearn", {}),
    "rehline, svm": (estimator("rehline", "plq_Ridge_Classifier", loss={"name": "svm"}), "rehline", {}),
    "skglm LinearSVC": (estimator("skglm", "LinearSVC"), "skglm", {}),
}
REGRESSIONS = {
    "LinearSVR": (estimator("sklearn.svm", "LinearSVR"), "sklearn", {}),
    "SVR, linear": (estimator("sklearn.svm", "SVR", kernel="linear"), "sklearn", {}),
    "rehline, quantile": (estimator("rehline", "plq_Ridge_Regressor", loss={"name": "QR", "qt": 0.5}), "rehline", {}),
    "QuantileRegressor": (estimator("sklearn.linear_model", "QuantileRegressor"), "sklearn", {}),
}


def read(folder: Path, kind: str, name: str):
    data = screenpath.read_data(str(folder / kind / f"{name}.libsvm.gz"))
    X = data.X.toarray()
    if X.shape[1] < WIDE:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    else:
        X = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    y = data.y if kind == "regression" else np.where(data.y == data.y.max(), 1.0, -1.0)
    return np.ascontiguousarray(X), (y - y.mean()) / y.std() if kind == "regression" else y


def linear_program_gap(model, X, y) -> float:
    """Return the relative gap of a QuantileRegressor, whose problem is none of screenpath's: in doubles, not proven.

    The dual of ``1/n sum_i pinball(y_i - x_i.w - b) + alpha ||w||_1`` is a linear program in theta.
    """
    from scipy.optimize import linprog

    n, tau, alpha = len(y), model.quantile, model.alpha
    bounds, most = ((tau - 1.0) / n, tau / n), np.full(2 * X.shape[1], alpha)
    found = linprog(-y, np.vstack([X.T, -X.T]), most, np.ones((1, n)), [0.0], bounds, method="highs")
    t = y - X @ model.coef_ - model.intercept_
    value = np.mean(np.maximum((tau - 1.0) * t, tau * t)) + alpha * np.abs(model.coef_).sum()
    return float((value + found.fun * min(1.0, alpha / max(np.abs(X.T @ found.x).max(), 1e-300))) / value)


def judged(send, folder: str, kind: str, name: str, solver: str) -> None:
    """Fit and certify in a process of its own, and send the cell of the table."""
    warnings.simplefilter("ignore")
    X, y = read(Path(folder), kind, name)
    fit, _, options = (CLASSIFIERS | REGRESSIONS)[solver]
    with tempfile.TemporaryDirectory() as place:
        model = fit(X, y, place)
        if solver == "QuantileRegressor":
            send.send(f"{max(linear_program_gap(model, X, y), 0.0):.0e}")
            return
        found = screenpath.certify(model, X, y, **options)
    others = f" ({found.other})" if kind == "binary" else ""
    send.send(f"{found.rel_gap:.0e}{others}" + ("" if found.accurate else " ?"))


def cell(folder: str, kind: str, name: str, solver: str, seconds: float) -> str:
    """Return a cell of the table: a gap, or why there is none."""
    if importlib.util.find_spec((CLASSIFIERS | REGRESSIONS)[solver][1]) is None:
        return "not installed"
    if solver == "SVC" and len(read(Path(folder), kind, name)[1]) > MOST:
        return "-"
    receive, send = multiprocessing.Pipe(False)
    process = multiprocessing.Process(target=judged, args=(send, folder, kind, name, solver))
    process.start()
    send.close()
    try:
        found = receive.recv() if receive.poll(seconds) else f"> {seconds:g} s"
    except EOFError:
        found = "failed"
    process.terminate()
    process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=60.0, help="for a fit and its certificate")
    parser.add_argument("--sets", help="names of sets, joined by commas")
    asked = parser.parse_args()
    for kind, sets, solvers in (("binary", BINARY, CLASSIFIERS), ("regression", REGRESSION, REGRESSIONS)):
        names = [name for name in sets if asked.sets is None or name in asked.sets.split(",")]
        if names:
            print(f"| {kind} | {' | '.join(names)} |\n|---|{'---:|' * len(names)}", flush=True)
        for solver in solvers if names else ():
            cells = [cell(asked.folder, kind, name, solver, asked.seconds) for name in names]
            print(f"| {solver} | {' | '.join(cells)} |", flush=True)
        print()


if __name__ == "__main__":
    main()
