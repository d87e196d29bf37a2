"""Choose C on held-out data: fit one certified path, score every step, take the best.

python examples/choose_from_path.py [DATA]
"""

import sys
from pathlib import Path

import numpy as np

from screenpath import read_libsvm, svm_path

SAMPLE = Path(__file__).resolve().parents[1] / "data_samples" / "breast_cancer.libsvm"


def main(file) -> None:
    """Print the score of the best step and the size of its model."""
    data = read_libsvm(file)
    X, y = data.X, data.y
    held_out = np.random.default_rng(0).random(y.size) < 0.25
    path = svm_path(X[~held_out], y[~held_out], grid=30, cmax=1.0, scale="maxabs", bias=1.0)
    assert path.certified, "a step missed its duality gap: raise max_epochs"

    # Coefficients come in the units of the file, so held-out rows need no scaling.
    scores = X[held_out] @ path.coefficients.T + path.intercepts
    positive = y[held_out] == y.max()
    accuracy = ((scores > 0.0) == positive[:, None]).mean(axis=0)

    best = int(np.argmax(accuracy))  # the first, that is the most regularised, of the best steps
    step = path.steps[best]
    print(f"best C: {step.parameters['C']:.4g}")
    print(f"held-out accuracy: {accuracy[best]:.4f} on {held_out.sum()} samples")
    print(f"largest relative gap on the path: {max(s.rel_gap for s in path.steps):.1e}")
    print(f"samples screened on average: {100 * np.mean([s.rejection_ratio for s in path.steps]):.1f} %")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else SAMPLE)
