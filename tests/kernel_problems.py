"""Models behind a kernel, from rows that know their signs."""

from screenpath.catalogue.losses import SVM


def kernel_svm_model(rows, weights=None, intercept: str | None = None):
    return SVM.model(rows, rows.signs, weights, intercept)
