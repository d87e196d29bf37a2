"""Certificates of small runs, and changes to them; whether they are still true then tells ``judge``."""

from __future__ import annotations

import copy
import math

import numpy as np

from screenpath.cli.app import run
from screenpath.errors import ScreenpathError
from screenpath.verify import check
from screenpath.verify.file import NAME, PARAMETERS, pack, read_certificate, unpack
from tests.plain import words
from tests.safety.judge import untrue

# Options of the runs whose certificates are changed.
RUNS = (
    ("svm", "--scale", "standard", "--bias", "1"),
    ("svm", "--class-weight", "1=3"),
    ("svm", "--scale", "l2", "--bias", "-0.5"),
    ("svm", "--scale", "maxabs", "--storage", "sparse"),
    ("svm", "--scale", "maxabs", "--bias", "1", "wide"),
    ("lad", "--weights", "weights.txt", "--scale", "maxabs"),
    ("lad", "--scale", "l2"),
    ("quantile", "--tau", "0.8", "--bias", "2"),
    ("quantile", "--tau", "0.3", "--weights", "weights.txt", "--scale", "standard"),
    ("svr", "--epsilon", "0.3"),
    ("svr", "--epsilon", "0.1", "--weights", "weights.txt", "--scale", "standard", "--bias", "1"),
    ("svm", "--kernel", "rbf", "--gamma", "0.3", "--bias", "0.5"),
    ("svm", "--kernel", "poly", "--degree", "2", "--gamma", "0.5", "--coef0", "1", "--scale", "standard"),
    ("svm", "--intercept", "free", "--scale", "standard", "--class-weight", "1=1.3"),
    ("lad", "--intercept", "free", "--weights", "weights.txt", "--scale", "maxabs"),
    ("svr", "--intercept", "free", "--epsilon", "0.1", "--scale", "l2"),
    ("svm", "--intercept", "free", "--kernel", "rbf", "--gamma", "0.3"),
    ("l1svm", "--scale", "standard"),
    ("l1svm",),
    ("sparse-svm", "--scale", "maxabs", "--bias", "1"),
    ("sparse-svm", "--scale", "l2", "--smoothing", "0.3"),
    ("sparse-svm", "--intercept", "free", "--scale", "standard", "--weights", "weights.txt"),
)
C_GRID = ("--grid", "5", "--cmin", "0.05", "--cmax", "2")
GRIDS = {"l1svm": ("--grid", "5"), "sparse-svm": ("--betas", "2", "--alphas", "3", "--beta-min-ratio", "0.3")}


WIDE = (1, 70, 30_000_000)  # numbers of the features of a file that is wide


def libsvm(X, y, numbers=None) -> str:
    numbers = range(1, 1 + len(X[0])) if numbers is None else numbers
    pairs = [zip(numbers, row, strict=True) for row in X]
    lines = [[repr(t), *(f"{j}:{x!r}" for j, x in row if x != 0.0)] for row, t in zip(pairs, y, strict=True)]
    return "\n".join(map(" ".join, lines)) + "\n"


def make_runs(folder, seed: int = 0, n: int = 14, d: int = 3) -> list:
    """Compute a small path for each of :data:`RUNS`; return header, steps, data file, rows and labels of each."""
    rng, found = np.random.default_rng(seed), []
    X = np.round(rng.normal(size=(n, d)) * [1.0, 3.0, 0.2], 3)
    X[rng.random((n, d)) < 0.2] = 0.0
    X[-1] = rng.normal(size=d)
    labels = np.where(rng.random(n) < 0.4, 1.0, 2.0)
    labels[:2] = 1.0, 2.0
    targets = np.round(X @ rng.normal(size=d) + rng.standard_t(2, size=n), 3)
    weights = np.round(rng.uniform(0.0, 3.0, n), 2)
    weights[0] = 0.0
    (folder / "weights.txt").write_text("\n".join(map(repr, weights.tolist())))
    for k, options in enumerate(RUNS):
        y = labels if "svm" in options[0] else targets
        data, out = folder / f"{k}.libsvm", folder / f"run{k}"
        data.write_text(libsvm(X.tolist(), y.tolist(), WIDE if "wide" in options else None))
        given = [str(folder / o) if o == "weights.txt" else o for o in options if o != "wide"]
        grid = (*GRIDS.get(options[0], C_GRID), "--tol", "1e-5")
        given += words(given[0], given)
        assert run([given[0], str(data), *given[1:], *grid, "--certificate", "-o", str(out), "--quiet"]) == 0
        found.append((*read_certificate(out / NAME), data, X.tolist(), y.tolist()))
    return found


# -- changes -----------------------------------------------------------------------------------------------------


def _size(header) -> int:
    return header["data"]["n_samples"] * (2 if header["model"] == "svr" else 1)


def _recode(entry, name, size, row, code):
    codes = unpack(entry[name], 0, size).copy()
    codes[row] = code
    entry[name] = pack(codes)


def _array(entry, name, rng, change):
    if entry.get(name) is None or not entry[name].size:
        return
    entry[name] = entry[name].copy()
    k = rng.integers(entry[name].size)
    entry[name][k] = change(float(entry[name][k]))


def _near(rng, value: float) -> float:
    """Return a value near another one, by a relative 1e-15 to 1."""
    if rng.random() < 0.1:
        return float(rng.choice([0.0, -value, math.nan, math.inf]))
    return (
        value * (1.0 + rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-15.0, 0.0))
        if value
        else 10.0 ** -rng.integers(20)
    )


def change(certificate, rng) -> tuple[str, dict, list]:
    """Return the name of a random change, and header and steps after it."""
    header, steps = copy.deepcopy(certificate[0]), copy.deepcopy(certificate[1])
    entry, size = steps[rng.integers(len(steps))], _size(header)
    states = unpack(entry["states"], 0, size) if "states" in entry else np.zeros(size, np.uint8)
    claims = unpack(entry["claims"], 0, size) if "claims" in entry else np.zeros(size, np.uint8)
    kinds = (
        "outside", "gap", "tol", "end", "claim between", "claim", "pair", "state", "C", "w", "between", "arrays",
        "header", "primal", "swap", "lengths", "gap up",
    )  # fmt: skip
    kind = str(rng.choice(kinds))
    row = int(rng.integers(size))
    if kind == "outside" and "states" in entry:
        # Past its end by one unit in the last place; a row that was at an end is made one between.
        data_row = row % header["data"]["n_samples"]
        s = float(header["weights"][data_row]) if "weights" in header else 1.0
        low, high = {
            "lad": (-s, s),
            "quantile": ((header.get("tau") - 1.0) * s, header.get("tau") * s) if header.get("tau") else (0.0, s),
        }.get(header["model"], (0.0, s))
        value = math.nextafter(high, math.inf) if rng.random() < 0.5 else math.nextafter(low, -math.inf)
        place = np.count_nonzero(states[:row] == 2)
        entry["between"] = np.insert(entry["between"], place, value)
        if states[row] == 2:
            entry["between"] = np.delete(entry["between"], place + 1)
        _recode(entry, "states", size, row, 2)
        for name in ("claims", "after"):
            if entry.get(name) is not None:
                _recode(entry, name, size, row, 0)
    elif kind in ("gap", "gap up"):
        entry["gap"] *= float(rng.choice([0.5, 0.9, 0.0, -1.0])) if kind == "gap" else 1.1
    elif kind == "tol":
        header["tol"] *= float(rng.choice([0.5, 0.1, 0.01, 1e-6]))
    elif kind == "end" and np.any(claims):
        row = int(rng.choice(np.flatnonzero(claims)))
        _recode(entry, "states", size, row, 1 - states[row])
    elif kind == "claim between" and "claims" in entry and np.any(states == 2):
        _recode(entry, "claims", size, int(rng.choice(np.flatnonzero(states == 2))), int(rng.integers(1, 4)))
    elif kind == "claim" and "claims" in entry:
        _recode(entry, "claims", size, row, int(rng.integers(1, 4)))
    elif kind == "pair" and np.any(claims):
        _recode(entry, "claims", size, int(rng.choice(np.flatnonzero(claims))), int(rng.integers(1, 4)))
    elif kind == "state" and "states" in entry:
        _recode(entry, "states", size, row, int(rng.integers(4)))
    elif kind == "C":
        name = str(rng.choice([name for name in PARAMETERS if name in entry]))
        entry[name] = _near(rng, entry[name])
    elif kind == "w" and "b" in entry and rng.random() < 0.5:
        entry["b"] = _near(rng, entry["b"])
    elif kind == "w":
        _array(entry, "w" if "w" in entry else "values", rng, lambda value: _near(rng, value))
    elif kind == "between":
        _array(entry, "between", rng, lambda value: _near(rng, value))
    elif kind == "arrays":
        name = str(
            rng.choice([name for name in ("scale", "shift", "weights", "columns") if name in header] or ["none"])
        )
        step = int(rng.choice([-1, 1, 5, 69, 10**6]))
        _array(header, name, rng, lambda value: value + step if name == "columns" else _near(rng, value))
    elif kind == "primal":
        entry["primal"] = _near(rng, entry["primal"])
    elif kind == "swap":
        a, b = rng.choice(len(steps), 2, replace=False)
        name = str(
            rng.choice([name for name in ("states", "w", "claims", "gap", "values", "b", *PARAMETERS) if name in entry])
        )
        steps[a][name], steps[b][name] = steps[b][name], steps[a][name]
    elif kind == "lengths":
        name = str(
            rng.choice([name for name in ("states", "between", "w", "claims", "values", "index") if name in entry])
        )
        entry[name] = entry[name][:-1] if rng.random() < 0.5 else np.append(entry[name], entry[name][:1])
    elif kind == "header":
        kind = _change_header(header, rng)
    return kind, header, steps


def _change_header(header, rng) -> str:
    what = str(
        rng.choice(["model", "tau", "epsilon", "bias", "labels", "scaling", "sha256", "n_samples", "n_features"])
    )
    if what in ("n_samples", "n_features"):
        header["data"][what] += int(rng.choice([-1, 1]))
    elif what == "sha256":
        header["data"]["sha256"] = header["data"]["sha256"][::-1]
    elif what == "kernel":
        if "kernel" in header:
            name = str(rng.choice([key for key in ("gamma", "coef0", "degree", "constant") if key in header["kernel"]]))
            value = header["kernel"][name]
            header["kernel"][name] = value + 1 if name == "degree" else abs(_near(rng, value))
    elif what == "model" and header["model"] in ("svm", "lad", "quantile", "svr") and "kernel" not in header:
        others = {"svm": ["svm"], "lad": ["svr"], "quantile": ["lad"], "svr": ["lad"]}
        header["model"] = str(rng.choice(others[header["model"]]))
        header.setdefault("epsilon", 0.0)
    elif what == "labels" and header["labels"]:
        header["labels"] = {"+1": header["labels"]["-1"], "-1": header["labels"]["+1"]}
    elif what == "scaling":
        header["scaling"] = str(rng.choice(["none", "l2"]))
    elif what == "bias":
        header["bias"] = _near(rng, header["bias"]) if header["bias"] else 0.0
    elif isinstance(header.get(what), float):
        header[what] = _near(rng, header[what])
    return f"header: {what}"


EXTREMES = (
    1e308, -1e308, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e-300, 1e155, 2**63, 2.0**63, -1, 0, 10**400, None,
    True, "x", [], {},
)  # fmt: skip


def places(value, before: tuple = ()) -> list:
    """Return the way to every entry of a certificate's fields: keys and positions, of lists the first two."""
    if isinstance(value, dict):
        return [way for key in value for way in places(value[key], (*before, key))]
    inner = value[:2] if isinstance(value, list) else []
    return [before, *(way for k, one in enumerate(inner) for way in places(one, (*before, k)))]


def extreme(certificate, rng) -> tuple[str, dict, list]:
    """Return what was changed, header and steps where one number or entry is as extreme as it can be."""
    header, steps = copy.deepcopy(certificate[0]), copy.deepcopy(certificate[1])
    entry = header if rng.random() < 0.5 else steps[rng.integers(len(steps))]
    ways = places(entry)
    way = ways[rng.integers(len(ways))]
    target = entry
    for key in way[:-1]:
        target = target[key]
    old, value = target[way[-1]], EXTREMES[rng.integers(len(EXTREMES))]
    if isinstance(old, np.ndarray):
        numbers = [v for v in EXTREMES if isinstance(v, float)] if old.dtype.kind == "f" else [255, 1 << 62, -1]
        numbers = [v for v in numbers if old.dtype != np.uint8 or v == 255]
        value, target[way[-1]] = numbers[rng.integers(len(numbers))], old.copy()
        if old.size:
            target[way[-1]][rng.integers(old.size)] = value
    else:
        value = value if value or old else 1e308  # None in place of False says the same
        target[way[-1]] = value
    return f"{'.'.join(map(str, way))} = {value!r:.20}", header, steps


def survive(certificates: list, count: int, seed: int = 0) -> dict:
    """Check certificates with one extreme entry each.

    Returns
    -------
    dict
        ``refused``: how many; ``held``: false ones that were accepted; ``raised``: those that ended in no words.
    """
    rng, found = np.random.default_rng(seed), {"refused": 0, "held": [], "raised": []}
    for _ in range(count):
        which = int(rng.integers(len(certificates)))
        what, header, steps = extreme(certificates[which], rng)
        try:
            if not check(header, steps, certificates[which][2]).holds:
                found["refused"] += 1
            elif not still_true(header, steps, certificates[which]):
                found["held"].append(f"run {which}, {what}")
        except ScreenpathError:
            found["refused"] += 1
        except Exception as error:
            found["raised"].append(f"run {which}, {what}: {type(error).__name__}: {error}")
    return found


def accepts(header: dict, steps: list, data) -> bool:
    """Tell whether the checker accepts a certificate."""
    try:
        return check(header, steps, data).holds
    except ScreenpathError:
        return False


def still_true(header: dict, steps: list, certificate) -> bool:
    """Tell whether a changed certificate still is one of the same data, and true."""
    before = certificate[0]["data"]
    if header["data"] != before or not np.array_equal(header.get("columns"), certificate[0].get("columns")):
        return False
    try:
        return not untrue(header, steps, *certificate[3:])
    except (ValueError, OverflowError, ArithmeticError, IndexError, TypeError):
        return False  # not finite, or of lengths that do not fit


def attack(certificates: list, count: int, seed: int = 0) -> dict:
    """Change certificates at random; return how many changed ones were false and caught, true and accepted, and so on.

    Returns
    -------
    dict
        ``false`` and ``true``: how many; ``accepted``: of the true ones; ``missed``: descriptions of false ones that
        were accepted; ``kinds``: false ones by kind of change.
    """
    rng = np.random.default_rng(seed)
    found = {"false": 0, "true": 0, "accepted": 0, "missed": [], "kinds": {}}
    while found["false"] < count:
        which = int(rng.integers(len(certificates)))
        kind, header, steps = change(certificates[which], rng)
        accepted, true = accepts(header, steps, certificates[which][2]), still_true(header, steps, certificates[which])
        if true:
            found["true"] += 1
            found["accepted"] += accepted
        else:
            found["false"] += 1
            found["kinds"][kind] = found["kinds"].get(kind, 0) + 1
            if accepted:
                found["missed"].append(f"run {which}, {kind}")
    return found
