"""The grid that the options of a run ask for, beside the steps of its certificate: none is missing, none is another."""

from __future__ import annotations

import numpy as np

CMIN, CMAX = 0.01, 10.0  # ends of a grid of C by default
NEAR = 1e-9  # relative: values that a run has computed, against the formula
OPTIONS = (
    "grid", "cmin", "cmax", "c_list", "eps_path", "c", "reference", "log", "lambda_min_ratio", "lambda_list", "betas",
    "alphas", "beta_min_ratio", "alpha_min_ratio", "alpha", "beta", "references",
)  # fmt: skip


def grid_faults(header: dict, options: dict, steps: list, complete: bool) -> list[str]:
    """Return what the parameters of the steps are otherwise than the options ask for."""
    if header["model"] == "sparse-svm":
        return _pairs(options, steps)
    wanted: np.ndarray | list
    if header["model"] == "l1svm":
        values, given = [entry["lambda"] for entry in steps], options["lambda_list"]
        alone = [] if given is None else ["grid", "log", "lambda_min_ratio"]
        alone += [] if options["log"] else ["lambda_min_ratio"]
        if given is not None:
            wanted = np.sort(np.array(given, float))[::-1]
        else:
            count, ratio = options["grid"] or 20, options["lambda_min_ratio"] or 0.05
            wanted = values[0] * (_spaced(count, ratio) if options["log"] else 1.0 / np.arange(1.0, count + 1.0))
        return _alone(options, alone) + _compared("lambda", values, wanted)
    values = [entry["C"] for entry in steps]
    low, high = (options[name] or default for name, default in (("cmin", CMIN), ("cmax", CMAX)))
    alone = [] if options["c"] is not None else ["reference"]
    if options["c"] is not None:
        alone += ["grid", "cmin", "cmax", "c_list", "eps_path"]
        wanted = [value for value in (options["reference"], options["c"]) if value is not None]
    elif options["eps_path"] is not None:
        alone += ["grid", "c_list"]
        wanted = [low, *values[1:-1], high] if complete and len(values) > 1 else [low, *values[1:]]
        if any(not a < b <= high for a, b in zip(values, values[1:], strict=False)):
            return ["the steps of the eps-path do not go up to its end"]
    elif options["c_list"] is not None:
        alone += ["grid", "cmin", "cmax"]
        wanted = sorted(options["c_list"])
    else:
        count = options["grid"] or 100
        wanted = low * _spaced(count, high / low)
    return _alone(options, alone) + _compared("C", values, wanted)


def _pairs(options: dict, steps: list) -> list[str]:
    """Return the faults of a grid of (alpha, beta): for every beta, from the largest down, its values of alpha."""
    rows: list[tuple[float, list]] = []
    for entry in steps:
        if not rows or rows[-1][0] != entry["beta"]:
            rows.append((entry["beta"], []))
        rows[-1][1].append(entry["alpha"])
    alone = [] if options["beta"] is None else ["betas", "beta_min_ratio"]
    alone += [] if options["alpha"] is None else ["alphas", "alpha_min_ratio"]
    found = _alone(options, alone)
    found += ["run.json has `references` without `alpha`"] if options["references"] and options["alpha"] is None else []
    betas, alphas = [beta for beta, _ in rows], options["alpha"]
    if options["beta"] is None:
        found += _compared("beta", betas, betas[0] * _spaced(options["betas"] or 10, options["beta_min_ratio"] or 0.05))
    else:
        found += _compared("beta", betas, sorted(options["beta"], reverse=True))
    for _, row in rows:
        if alphas is None:
            count, ratio = options["alphas"] or 100, options["alpha_min_ratio"] or 0.01
            found += _compared("alpha", row, row[0] * _spaced(count, ratio))
        else:
            wanted = sorted(alphas, reverse=True)
            references = max(len(row) - len(wanted), 0)
            most = options["references"] * len(wanted)
            kept = row if not most else [value for value in row if value in wanted]
            found += _compared("alpha", kept, wanted)
            # before 0, and before what is not below the value before it, there are none
            few = references > most or references % max(options["references"], 1)
            found += ["there are more or fewer references than the options ask for"] if few else []
    return list(dict.fromkeys(found))


def _spaced(count: int, ratio: float) -> np.ndarray:
    return np.array([1.0]) if count == 1 else ratio ** (np.arange(count) / (count - 1))


def _alone(options: dict, names: list) -> list[str]:
    return [f"run.json has the option {name}, which its grid does not have" for name in names if options.get(name)]


def _compared(name: str, values: list, wanted) -> list[str]:
    if len(values) != len(wanted):
        return [f"the options ask for {len(wanted)} values of {name}, the certificate has {len(values)}"]
    far = [k for k, (a, b) in enumerate(zip(values, wanted, strict=True)) if not abs(a - b) <= NEAR * abs(b)]
    return [f"{name} is {values[far[0]]:.17g} where the options ask for {wanted[far[0]]:.17g}"] if far else []
