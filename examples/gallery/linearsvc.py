"""A model of scikit-learn to certify: `python examples/gallery/linearsvc.py DATA SCALED WEIGHTS TOL`.

Reads LIBSVM text, standardises its features, writes what the model sees to SCALED, fits LinearSVC (hinge loss, C = 1)
with the tolerance TOL, and writes intercept (feature 0) and weights to WEIGHTS, a CSV file.
"""

import sys
import warnings

from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC


def main(data: str, scaled: str, weights: str, tol: float) -> None:
    """Fit and write."""
    X, y = load_svmlight_file(data)
    X = StandardScaler().fit_transform(X.toarray())
    dump_svmlight_file(X, y, scaled, zero_based=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # how far it came is what the certificate tells
        model = LinearSVC(loss="hinge", C=1.0, tol=tol, random_state=0, max_iter=1000).fit(X, y)
    with open(weights, "w", encoding="utf-8") as file:
        file.write("feature,value\n")
        for feature, value in enumerate([*model.intercept_, *model.coef_[0]]):
            file.write(f"{feature},{float(value)!r}\n")
    print(f"{model.n_iter_} iterations")


if __name__ == "__main__":
    main(*sys.argv[1:4], float(sys.argv[4]))
