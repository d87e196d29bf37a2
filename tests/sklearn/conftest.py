"""Data that the tests of the estimators share."""

import numpy as np
import pytest

from screenpath import read_libsvm
from tests.conftest import ROOT


@pytest.fixture(scope="package")
def cancer():
    """Rows and labels of breast_cancer."""
    data = read_libsvm(ROOT / "data_samples" / "breast_cancer.libsvm")
    return data.X.toarray(), data.y


@pytest.fixture(scope="package")
def three(cancer):
    """The same rows without the first feature, and names by it."""
    X, _ = cancer
    return X[:, 1:], np.array(["large", "middle", "small"])[2 - np.digitize(X[:, 0], [12.0, 16.0])]
