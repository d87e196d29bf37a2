"""Certificates of leave-one-out: honest ones hold, bounds hold for poor points too, and nothing can be forged."""

import numpy as np
import pytest

import screenpath
from screenpath.engine.leave_out import leave_one_out
from screenpath.errors import ScreenpathError
from screenpath.store.open import open_run
from screenpath.verify import removals as room
from screenpath.verify import verify_certificate
from screenpath.verify.file import END, LEAVE, MAGIC, NAME, STEP, frame, frames
from tests import plain
from tests.cli.conftest import clouds, libsvm_text

X, Y = clouds(n=40, d=3)
TARGETS = np.round(X @ [1.0, -2.0, 0.5] + np.random.default_rng(1).normal(size=40), 2)
MODELS = {"svm": {}, "lad": {}, "quantile": {"tau": 0.3}, "svr": {"epsilon": 0.2}}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    place = tmp_path_factory.mktemp("loo")
    (place / "svm").write_text(libsvm_text(X, Y))
    (place / "other").write_text(libsvm_text(X, TARGETS))
    (place / "w").write_text("".join(f"{1 + k % 3}\n" for k in range(40)))
    return place


def certified(data, out, model="svm", C=0.5, **options):
    """Write the certificate ``out`` of a leave-one-out; return it and what was found."""
    source = data / ("svm" if model == "svm" else "other")
    options = {"intercept": "free", "scale": "none", **MODELS[model], **options}
    screenpath.run(model, source, c_list=[0.1, C], out=out.with_suffix(".run"), quiet=True, **options)
    run = open_run(out.with_suffix(".run"))
    found = next(leave_one_out(run, [run.steps[1]], str(source)))
    out.write_bytes(found.certificate())
    return source, found


@pytest.mark.parametrize("options", [{}, {"intercept": "none"}, {"bias": 1.0, "intercept": None}, {"scale": "standard"},
                                     {"weights": True}, {"scale": "l2", "class_weight": ("balanced",)}])  # fmt: skip
@pytest.mark.parametrize("model", MODELS)
def test_honest_ones_hold(data, tmp_path, model, options):
    if model != "svm" and "class_weight" in options:
        options = {"scale": "l2"}
    options = {name: str(data / "w") if name == "weights" else value for name, value in options.items()}
    source, one = certified(data, tmp_path / "c", model, **options)
    found = verify_certificate(tmp_path / "c", source)
    assert found.faults == [] and found.holds
    assert found.removed.proven + len(found.unclaimed) == 40 and len(found.unclaimed) == np.count_nonzero(one.how == 3)
    if model == "svm":
        assert found.removed.wrong == one.errors


@pytest.mark.parametrize("seed", [3, 12, 17])
def test_large_features_hold_where_rounding_moves_rows_off_their_kinks(tmp_path, seed):
    rng = np.random.default_rng(seed)
    X, y = np.round(rng.normal(size=(12, 3)), 3) * [1.0, 1e5, 1e6] + [0, 0, 1e6], np.round(rng.normal(size=12), 3) + 100
    (tmp_path / "data").write_text(libsvm_text(X, y))
    run = screenpath.run(
        "lad", tmp_path / "data", intercept="free", c_list=[0.01], tol=1e-10, out=tmp_path / "r", quiet=True
    )
    (tmp_path / "loo.bin").write_bytes(run.loo(0).certificate())
    found = verify_certificate(tmp_path / "loo.bin", tmp_path / "data")
    assert found.faults == [] and found.removed.proven == 12


def test_rows_at_their_ends_that_rounding_brings_over_their_kinks_hold(tmp_path):
    rows = [1, 1, 1, 3, 3, -1, -4, 0, 1, -1, -1, 1, -1, 2, 3, -1, -1, 2, 0, 4, 1, -1, 1, -2, 1, 1, 0, -3, 1, -1]
    rows, targets = np.array(rows, dtype=float)[:, None], 1e-6 * np.array(list("000010011011001000110111000111"), float)
    (tmp_path / "data").write_text(libsvm_text(rows, targets))
    options = {"bias": 10.0, "c": 0.7107959762631941, "tol": 1e-9}
    run = screenpath.run("lad", tmp_path / "data", out=tmp_path / "r", quiet=True, **options)
    (tmp_path / "loo.bin").write_bytes(run.loo(0).certificate())
    assert verify_certificate(tmp_path / "loo.bin", tmp_path / "data").faults == []


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_targets_that_are_all_0_hold(tmp_path, intercept):
    """The values are 0, of which underflow leaves the checker 1e-160."""
    (tmp_path / "data").write_text(libsvm_text(100.0 * X, np.zeros(40)))
    run = screenpath.run("lad", tmp_path / "data", intercept=intercept, c=1.0, out=tmp_path / "r", quiet=True)
    (tmp_path / "loo.bin").write_bytes(run.loo(0).certificate())
    assert verify_certificate(tmp_path / "loo.bin", tmp_path / "data").faults == []


@pytest.mark.parametrize("seed", [2, 22])
def test_a_gap_beyond_the_tolerance_of_the_run_is_that_of_the_file(tmp_path, seed):
    """Dual variables next to their end are put there, which costs more where features are large."""
    rng = np.random.default_rng(seed)
    X, y = np.round(rng.normal(size=(12, 3)), 3) * [1.0, 1e5, 1e6] + [0, 0, 1e6], np.round(rng.normal(size=12), 3) + 100
    (tmp_path / "d").write_text(libsvm_text(X, y))
    about = {"intercept": "free", "c_list": [0.01], "tol": 1e-10, "quiet": True}
    one = screenpath.run("lad", tmp_path / "d", out=tmp_path / "r", **about).loo(0)
    (tmp_path / "c").write_bytes(one.certificate())
    found = verify_certificate(tmp_path / "c", tmp_path / "d")
    assert found.holds and 1e-10 < found.tol < 1e-7


@pytest.mark.parametrize("seed", [3, 58])
def test_a_row_of_whose_value_nothing_is_known_is_open_and_no_warning(tmp_path, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 14))
    X, y = 1e-8 * rng.normal(size=(n, 2)), np.where(np.arange(n) % 2, 1, -1)
    y[0] = 1 if seed % 2 else y[0]
    (tmp_path / "d").write_text(libsvm_text(X, y))
    run = screenpath.run("svm", tmp_path / "d", intercept="free", c_list=[1e-3], quiet=True, out=tmp_path / "r")
    one = run.loo(0)
    unknown = np.isinf(one.low) & np.isinf(one.high)
    assert unknown.any() and np.all(one.open[unknown]) and np.all(np.isfinite(one.values))


def test_the_only_row_of_a_class_is_proven_to_get_the_other_label(tmp_path):
    (tmp_path / "svm").write_text(libsvm_text(X, np.where(np.arange(40) == 3, 1.0, -1.0)))
    source, one = certified(tmp_path, tmp_path / "c", scale="standard")
    found = verify_certificate(tmp_path / "c", source)
    assert found.holds and found.removed.proven == 40 and found.removed.undecided == 0
    assert found.removed.wrong == one.errors and one.high[3] == pytest.approx(-1.0, abs=1e-5)


@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", [0.0, 1e-3, 0.1])
def test_bounds_hold_for_any_dual_point(data, tmp_path, model, intercept, size, monkeypatch):
    """Refits without a row lie within the bounds, also by dual points that were disturbed; and these are not idle."""
    source, _ = certified(data, tmp_path / "c", model, intercept=intercept)
    targets, rng, found = Y if model == "svm" else TARGETS, np.random.default_rng(0), {}
    ask = room.Removals.without

    def disturbed(self, fields, arrays, nearer=0):
        row, duals = fields["row"], self.duals
        if row % 4 == 0:
            index, values = arrays["index"], arrays["theta"].copy()
            more = np.setdiff1d(rng.permutation(duals.row.size)[:4], [*index, *np.flatnonzero(duals.row == row)])
            index, values = np.append(index, more), np.append(values, duals.side[more] * duals.theta[more])
            order = np.argsort(index)
            index, values = index[order], values[order] + size * rng.normal(size=index.size) * (size > 0.0)
            ends = np.sort([(duals.side * end)[index] for end in (duals.low, duals.high)], axis=0)
            fields = {**fields, "b": fields.get("b", 0.0) + size * rng.normal()}
            arrays = {"index": index, "theta": np.clip(values, *ends)}
            found[row, nearer] = ask(self, fields, arrays, nearer)
            return -np.inf, np.inf, 0.0
        return ask(self, fields, arrays, nearer)

    monkeypatch.setattr(room.Removals, "without", disturbed)
    verify_certificate(tmp_path / "c", source)
    assert len(found) == 30
    for (row, _), (low, high, loss) in found.items():
        others = np.arange(40) != row
        options = {"grid": [0.5], "intercept": intercept, "tol": 1e-10, **MODELS[model]}
        path = getattr(plain, f"{model}_path")(X[others], targets[others], **options)
        value = float(X[row] @ path.coefficients[-1] + path.intercepts[-1])
        wide = 1e-4 * (1.0 + abs(value)) if intercept == "free" else 1e-5 * (1.0 + abs(value))
        assert low - wide <= value <= high + wide, (row, low, value, high)
        assert size > 0.0 or high - low < 1e-3 or intercept == "free"
        assert loss >= 0.0


# -- forgeries ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest(data):
    """Return an honest certificate as frames, and its data."""
    source, _ = certified(data, data / "honest")
    return list(frames(data / "honest")), source


def refused(parts, source, place) -> str:
    place.write_bytes(MAGIC + b"".join(frame(*part) for part in parts))
    try:
        found = verify_certificate(place, source)
    except ScreenpathError as error:
        return error.message
    return " | ".join(reason for _, reason in found.faults)


def copied(parts):
    return [(kind, dict(fields), {k: np.array(one) for k, one in arrays.items()}) for kind, fields, arrays in parts]


def test_frames_written_again_hold(honest, tmp_path):
    assert refused(copied(honest[0]), honest[1], tmp_path / "c") == ""


@pytest.mark.parametrize("name, move, words", [
    ("value", 1.0, "not between its bounds"), ("low", 0.3, "proven is only|not between"),
    ("high", -0.3, "proven is only|not between"), ("b", 0.5, "proven is only"),
    ("row", 1, "twice|none of other rows|proven is only"), ("low", np.nan, "not between"),
    ("value", None, "not between"), ("row", 100, "a row that is none"), ("row", True, "twice|a row"),
])  # fmt: skip
def test_numbers_of_a_row(honest, tmp_path, name, move, words):
    for k in range(2, 42, 7):
        parts = copied(honest[0])
        fields = parts[k][1]
        numbers = type(move) in (int, float)
        fields[name] = fields[name] + move if numbers else move
        said = refused(parts, honest[1], tmp_path / "c")
        assert any(word in said for word in words.split("|")), (k, said)


def test_values_that_are_all_moved(honest, tmp_path):
    """Value and bounds of each row move together, by ten times their width: every one is noticed."""
    parts = copied(honest[0])
    for kind, fields, _ in parts:
        if kind == LEAVE:
            by = 10.0 * (fields["high"] - fields["low"]) + 1e-9
            for name in ("value", "low", "high"):
                fields[name] += by
    said = refused(parts, honest[1], tmp_path / "c")
    assert said.count("proven is only") == 40


def test_arrays_of_a_row(honest, tmp_path):
    moved = [k for k, part in enumerate(honest[0]) if part[0] == LEAVE and part[2]["index"].size > 1]
    assert moved

    def outside(arrays):
        arrays["theta"][0] = 1.5

    def no_number(arrays):
        arrays["theta"][0] = np.nan

    def others(arrays):
        arrays["theta"][:] = arrays["theta"][::-1] * 0.5

    def none(arrays):
        arrays["index"], arrays["theta"] = arrays["index"][:0], arrays["theta"][:0]

    def twice(arrays):
        arrays["index"][1] = arrays["index"][0]

    def beyond(arrays):
        arrays["index"][-1] = 40

    def short(arrays):
        arrays["theta"] = arrays["theta"][:-1]

    def kind(arrays):
        arrays["index"] = arrays["index"].astype(float)

    def own(arrays):
        arrays["index"] = np.append(arrays["index"], honest[0][k][1]["row"])
        arrays["theta"] = np.append(arrays["theta"], 0.0)

    for k in moved[:3]:
        for change in (outside, no_number, others, none, twice, beyond, short, kind, own):
            parts = copied(honest[0])
            change(parts[k][2])
            assert refused(parts, honest[1], tmp_path / "c"), change.__name__


def test_the_rest_of_the_file(honest, data, tmp_path):
    def change(kind, name, value):
        parts = copied(honest[0])
        for part in parts:
            if part[0] == kind:
                part[2 if name in part[2] else 1][name] = value(part[2 if name in part[2] else 1][name])
        return parts

    errors = honest[0][-1][1]["errors"]
    for parts in (
        change(END, "left_out", lambda n: n - 1), change(END, "errors", lambda n: n + 1),
        change(STEP, "C", lambda C: 2 * C), change(STEP, "w", lambda w: w + 0.01), change(STEP, "gap", lambda g: -1.0),
        change(STEP, "between", lambda x: 0.9 * x), change(STEP, "step", lambda k: 1), copied(honest[0])[:-1],
        copied(honest[0])[1:], [honest[0][0], *honest[0][2:]], [*honest[0], honest[0][-1]],
        [*honest[0][:5], *honest[0][6:]], [*honest[0][:5], honest[0][1], *honest[0][5:]],
        [*honest[0][:5], honest[0][4], *honest[0][5:]],
    ):  # fmt: skip
        assert refused(parts, honest[1], tmp_path / "c"), [part[:2] for part in parts[:3]]
    assert errors >= 0 and refused(copied(honest[0]), data / "other", tmp_path / "c")
    with pytest.raises(ScreenpathError, match="without a run folder"):
        verify_certificate(tmp_path / "c")
    (tmp_path / "c").rename(tmp_path / NAME)
    with pytest.raises(ScreenpathError, match="the certificate of a run") as error:
        verify_certificate(tmp_path / NAME, honest[1])
    assert error.value.hint == f"name its folder: screenpath verify {tmp_path}"


def test_rows_that_are_open_claim_nothing(honest, tmp_path):
    parts = copied(honest[0])
    for part in parts[2:5]:
        part[1]["open"] = True
    parts[-1][1]["errors"] = sum(
        part[1]["high"] < 0.0 if Y[part[1]["row"]] == 2.0 else part[1]["low"] > 0.0 for part in parts[5:-1]
    )
    assert refused(parts, honest[1], tmp_path / "c") == ""
    found = verify_certificate(tmp_path / "c", honest[1])
    assert len(found.unclaimed) == 3 and "3 left open" in str(found)


@pytest.mark.parametrize(("intercept", "seed"), [("none", 0), ("none", 3), ("free", 2), ("free", 5)])
def test_errors_of_long_rows_are_counted_and_hold(tmp_path, intercept, seed):
    """Rounding of the dual variables left half of them open."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(40, 3)), 3) * [1.0, 1e3, 1e5]
    y = np.where(X @ [1.0, 1e-3, 1e-5] + rng.normal(size=40) > 0.0, 1.0, -1.0)
    (tmp_path / "d").write_text(libsvm_text(X, y))
    about = {"intercept": intercept, "c_list": [0.01], "quiet": True}
    one = screenpath.run("svm", tmp_path / "d", out=tmp_path / "r", **about).loo(0)
    (tmp_path / "c").write_bytes(one.certificate())
    found = verify_certificate(tmp_path / "c", tmp_path / "d")
    assert found.holds and found.faults == [] and not one.open.any()
