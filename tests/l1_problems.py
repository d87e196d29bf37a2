"""The L1-SVM of arrays, before a path is walked."""


from screenpath.api.paths import problem_of
from screenpath.engine.path import Path, limits_of


def l1_svm_model(X, y, **keywords):
    """Return the model of data, and the map back to the data's units."""
    path, data = next(problem_of("l1svm", X, y, keywords).paths_on())
    return path.model, data.preparation


def l1_path(model, values, screening, solver, tol=1e-6, max_epochs=100_000, time_limit=None):
    """Walk a grid and return a step for each of its points."""
    limits = limits_of({"tol": tol, "max_epochs": max_epochs, "time_limit": time_limit})
    return Path(model, values, screening, solver, limits).steps()
