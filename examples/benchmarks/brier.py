"""Brier score of the probabilities of ``SVMClassifierCV`` against ``CalibratedClassifierCV`` around the same model.

Both get the C that the cross-validation has chosen and the same five folds; ours calibrates by the held-out forms that
cross-validation has computed, scikit-learn's by those of five further fits (``ensemble=False``: one model on all data,
as ours; ``ensemble=True``: the mean of five). The score is that of rows that none has seen, lower is better; ``noise``
is the standard error of the difference to the better one of scikit-learn's.

    python examples/benchmarks/brier.py breast_cancer german_scale a9a [--method sigmoid]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn_cv import data_file, prepared

from screenpath.sklearn import SVMClassifier, SVMClassifierCV

MOST = 6000  # rows of a set that are used


def compare(name: str, X, y, method: str) -> str:
    """Return a line of the table."""
    if X.shape[0] > MOST:
        X, _, y, _ = train_test_split(X, y, train_size=MOST, random_state=1, stratify=y)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    ours = SVMClassifierCV(30, cv=cv, bias=1.0, calibration=method).fit(X, y)
    models = [ours]
    for ensemble in (False, True):
        one = SVMClassifier(ours.C_, bias=1.0)
        models.append(CalibratedClassifierCV(one, method=method, cv=cv, ensemble=ensemble).fit(X, y))
    truth = (y_new == ours.classes_[1]).astype(float)
    parts = [(model.predict_proba(X_new)[:, 1] - truth) ** 2 for model in models]
    scores = [float(part.mean()) for part in parts]
    difference = parts[0] - parts[1 + int(np.argmin(scores[1:]))]
    noise = float(difference.std(ddof=1)) / np.sqrt(difference.size)
    cells = " | ".join(f"{score:.5f}" for score in scores)
    return f"| {name} | {X.shape[0]:,} × {X.shape[1]} | {ours.C_:.3g} | {cells} | {noise:.1e} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="files of the data folder, without .libsvm.gz, or paths")
    parser.add_argument("--method", choices=("sigmoid", "isotonic"), default="sigmoid")
    options = parser.parse_args()
    print("| data | training set | C | screenpath | CalibratedClassifierCV | its ensemble | noise |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name in options.names:
        file = data_file(name)
        if not file.exists():
            print(f"{file.name} is not here")
            continue
        X, y = prepared(file)
        print(compare(file.name.split(".")[0], X, y, options.method), flush=True)


if __name__ == "__main__":
    main()
