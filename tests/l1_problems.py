"""The L1-SVM of arrays, before a path is walked."""

from screenpath.api.paths import problem_of


def l1_svm_model(X, y, **keywords):
    """Return the model of data, and the map back to the data's units."""
    model, _, preparation = next(iter(problem_of("l1svm", X, y, keywords).models()))
    return model, preparation
