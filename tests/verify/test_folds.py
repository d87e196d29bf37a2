"""Certificates of cross-validations: honest ones hold, and no score, bound or choice can be forged beside them."""

import csv
import io
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import screenpath
from screenpath.errors import ScreenpathError, UsageError
from screenpath.verify import folds as room
from screenpath.verify import levers, verify_certificate
from screenpath.verify.file import END, FOLD, FOLDS, HEADER, LEVERS, MAGIC, STEP, frame, frames
from tests import plain
from tests.cli.conftest import clouds, libsvm_text
from tests.conftest import ROOT
from tests.run_folders import seal, unsealed

X, Y = clouds(n=60, d=3)
SVM = {"grid": 5, "folds": 3, "scale": "standard", "quiet": True, "certificate": True, "intercept": "none"}
HONEST = {
    "bounds": ("svm", {"certify": True, "bias": 1.0, "intercept": None}),
    "refined": ("svm", {"certify_to": 0.02, "certify_points": 10, "scale": "maxabs", "repeats": 2}),
    "weights": ("svm", {"certify": True, "class_weight": ("balanced",), "weights": "w", "scale": "l2"}),
    "free": (
        "svm",
        {"intercept": "free", "certify": True, "score": "accuracy,f1", "threshold": "recall=0.8", "calibrate": True},
    ),
    "quantile": ("quantile", {"tau": 0.3, "score": "pinball,mae,mse,r2", "intercept": "free"}),
    "svr": ("svr", {"epsilon": 0.2, "jobs": 2}),
    "l1svm": ("l1svm", {"intercept": None}),
    "sparse": ("sparse-svm", {"grid": None, "betas": 2, "alphas": 3, "format": "json"}),
}
CLINIC = {"target": "returned", "id": "visit", "drop": ("seen", "patient"), "one_hot": ("auto",), "missing": "median"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with a data file ``d`` and weights ``w`` of its rows."""
    place = tmp_path_factory.mktemp("folds")
    (place / "d").write_text(libsvm_text(X, Y))
    (place / "w").write_text("".join(f"{1 + k % 3}\n" for k in range(60)))
    return place


@pytest.fixture(scope="module")
def made(data):
    """Return the folder of a certified cross-validation with bounds, and a free intercept."""
    options = {**SVM, "grid": 8, "certify": True, "intercept": "free"}
    screenpath.cross_validate("svm", data / "d", out=data / "made", **options)
    return data / "made"


@pytest.fixture
def run(made, tmp_path):
    shutil.copytree(made, tmp_path / "r")
    return tmp_path / "r"


@pytest.mark.parametrize("name", HONEST)
def test_honest_ones_hold(data, tmp_path, name):
    model, options = HONEST[name]
    options = {one: str(data / "w") if one == "weights" else value for one, value in options.items()}
    given = {one: value for one, value in {**SVM, **options}.items() if value is not None}
    path = screenpath.cross_validate(model, data / "d", out=tmp_path / "r", **given)
    assert path.certified
    found = verify_certificate(tmp_path / "r")
    assert found.faults == [] and found.holds
    score = json.loads((tmp_path / "r" / "cv.json").read_text())["score"]
    own = {f"folds.csv: {score}", "cv.json: best, one_se", "folds.bin: gaps of the steps", "run.json: options.folds"}
    assert own <= set(found.covered) and not own & set(found.uncovered)
    bounded = "certify" in options or "certify_to" in options
    assert ("bounds.csv: lower, upper" in found.covered) == bounded
    assert not any(one.startswith("bounds.csv") for one in found.uncovered)
    for other in str(options.get("score")).split(",")[1:]:
        assert f"folds.csv: {other}" in found.covered


@pytest.mark.parametrize("way", ["array", "column", "classes"])
def test_bounds_weigh_rows_by_weights_that_are_no_file(data, tmp_path, way):
    weights, given, file = 1.0 + np.arange(60) % 3, {**SVM, "certify": True, "scale": "none"}, data / "d"
    if way == "column":
        file, given = tmp_path / "t.csv", {**given, "weight_column": "w", "target": "y"}
        lines = [",".join(f"{float(v)!r}" for v in (y, w, *row)) for y, w, row in zip(Y, weights, X, strict=True)]
        file.write_text("\n".join(["y,w,a,b,c", *lines, ""]))
    else:
        given |= {"weights": weights} | ({"class_weight": ("balanced",)} if way == "classes" else {})
    screenpath.cross_validate("svm", file, out=tmp_path / "r", **given)
    found = verify_certificate(tmp_path / "r", file)
    assert found.faults == [] and ("bounds.csv: all" in found.uncovered) == (way == "classes")
    assert ("bounds.csv: lower, upper" in found.covered) == (way != "classes")


def test_tables_and_what_cannot_be_proven(data, tmp_path):
    options = {**SVM, **CLINIC, "certify": True, "missing_indicator": True}
    screenpath.cross_validate("svm", ROOT / "data_samples" / "clinic.csv", out=tmp_path / "r", **options)
    found = verify_certificate(tmp_path / "r")
    assert found.holds and "bounds.csv: lower, upper" in found.covered
    for more, words in (
        ({"kernel": "rbf"}, "of cross-validation does not cover `kernel`"),
        ({"until_turn": True}, "does not cover `until_turn`"),
        ({"one_vs_rest": True}, "leave|one_vs_rest"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=words):
            screenpath.cross_validate("svm", data / "d", out=tmp_path / "s", **{**SVM, **more})


SCORES = {
    "svm": "auc,accuracy,balanced-accuracy,f1", "sparse-svm": "f1,accuracy,balanced-accuracy", "lad": "r2,mae,mse",
}  # fmt: skip


@pytest.mark.parametrize("model", SCORES)
def test_every_score_is_formed_again(data, tmp_path, model):
    """Of two and of three labels, of a regression; each score moved by little is noticed."""
    options = {"grid": 4} if model != "sparse-svm" else {"betas": 2, "alphas": 2}
    (tmp_path / "three").write_text(libsvm_text(X, np.arange(60) % 3))
    (tmp_path / "other").write_text(libsvm_text(X, X[:, 0] + np.sin(np.arange(60.0))))
    source = {"svm": data / "d", "sparse-svm": tmp_path / "three", "lad": tmp_path / "other"}[model]
    options |= {"score": SCORES[model], "folds": 3, "certificate": True, "quiet": True, "weights": str(data / "w")}
    screenpath.cross_validate(model, source, out=tmp_path / "r", **options)
    found = verify_certificate(tmp_path / "r")
    names = [name.replace("-", "_") if k else name for k, name in enumerate(SCORES[model].split(","))]
    assert found.holds and {f"folds.csv: {name}" for name in names} <= set(found.covered)
    assert "folds.bin: the folds are those of the seed" in found.covered
    original = rows(tmp_path / "r", "folds.csv")
    for name in ["score", *names[1:]]:
        table = [dict(row) for row in original]
        table[5][name] = float(table[5][name]) + 0.01
        write(tmp_path / "r", "folds.csv", table)
        assert "folds.csv says" in refused(tmp_path / "r")


def test_folds_of_a_file_of_a_column_and_of_another_seed(data, tmp_path):
    (tmp_path / "f").write_text("".join(f"{k % 4}\n" for k in range(60)))
    options = {name: value for name, value in SVM.items() if name != "folds"}
    screenpath.cross_validate("svm", data / "d", out=tmp_path / "r", fold_file=str(tmp_path / "f"), **options)
    found = verify_certificate(tmp_path / "r")
    assert found.holds and {"folds.bin: the folds are those of the file", "cv.json: best, one_se"} <= set(found.covered)
    (tmp_path / "f").write_text("".join(f"{k % 3}\n" for k in range(60)))
    assert "folds.bin: that the folds are those of the file" in verify_certificate(tmp_path / "r").uncovered
    clinic = {**options, **CLINIC, "drop": ("seen",)}
    for name, what in (("group_column", "seed"), ("fold_column", "column")):
        file = ROOT / "data_samples" / "clinic.csv"
        screenpath.cross_validate("svm", file, out=tmp_path / "s", force=True, **clinic, **{name: "patient"})
        found = verify_certificate(tmp_path / "s")
        assert found.holds and f"folds.bin: that the folds are those of the {what}" in found.uncovered
    for repeats, stratify in ((1, False), (2, None)):
        screenpath.cross_validate("svm", data / "d", out=tmp_path / "t", force=True, repeats=repeats, stratify=stratify,
                                  fold_seed=5, **{**SVM, "folds": 4})  # fmt: skip
        assert "folds.bin: the folds are those of the seed" in verify_certificate(tmp_path / "t").covered
        record = json.loads((tmp_path / "t" / "run.json").read_text())
        record["options"]["fold_seed"] = record["identity"]["fold_seed"] = 6
        (tmp_path / "t" / "run.json").write_text(json.dumps(record))
        seal(tmp_path / "t")
        assert "folds.bin: that the folds are those of the seed" in verify_certificate(tmp_path / "t").uncovered


def test_a_stopped_run_goes_on_to_the_same_bytes(data, made, tmp_path, monkeypatch):
    options = {**SVM, "grid": 8, "certify": True, "out": tmp_path / "r", "intercept": "free"}
    from screenpath.cv import saved

    count, save = [0], saved.FoldFile.save

    def stop(self, *arguments):
        save(self, *arguments)
        count[0] += 1
        if count[0] == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(saved.FoldFile, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        screenpath.cross_validate("svm", data / "d", **options)
    monkeypatch.undo()
    screenpath.cross_validate("svm", data / "d", resume=True, **options)
    assert (tmp_path / "r" / FOLDS).read_bytes() == (made / FOLDS).read_bytes()
    assert verify_certificate(tmp_path / "r").holds


# -- forgeries ---------------------------------------------------------------------------------------------------------


def rows(folder, name):
    return list(csv.DictReader(io.StringIO((folder / name).read_text())))


def write(folder, name, table):
    lines = [",".join(table[0]), *(",".join(map(str, row.values())) for row in table)]
    (folder / name).write_text("\n".join(lines) + "\n")


def refused(folder):
    """Return what the checker says of a folder whose hashes were made good after an edit."""
    seal(folder)
    try:
        found = verify_certificate(folder)
    except ScreenpathError as error:
        return error.message
    assert found.faults, "a forgery holds"
    return " | ".join(reason for _, reason in found.faults)


def test_unedited_tables_hold(run):
    for name in ("folds.csv", "cv.csv", "bounds.csv", "steps.csv"):
        write(run, name, rows(run, name))
    seal(run)
    assert verify_certificate(run).holds


@pytest.mark.parametrize("name, column, move, words", [
    ("folds.csv", "score", 0.05, "folds.csv says accuracy"),
    ("folds.csv", "C", 0.05, "folds.csv and certificate differ"),
    ("folds.csv", "fold", 1, "other steps than the certificates"), ("cv.csv", "C", 1e-6, "another C than the path"),
    ("cv.csv", "mean", 1e-6, "cv.csv has another mean than folds.csv"),
    ("cv.csv", "se", 1e-6, "cv.csv has another se than folds.csv"), ("cv.csv", "best", 1, "the best step is"),
    ("cv.csv", "one_se", 1, "the one_se step is"),
    ("steps.csv", "cv_accuracy", 1e-6, "the step table has another cv_accuracy"),
    ("bounds.csv", "lower", 0.3, "the bounds are not proven"),
    ("bounds.csv", "upper", -0.3, "the bounds are not proven"),
    ("bounds.csv", "C_to", 0.1, "other ranges than the folds"),
])  # fmt: skip
def test_numbers_of_tables(run, name, column, move, words):
    """Each row of each table in turn."""
    original = rows(run, name)
    for k in range(0, len(original), 3):
        table = [dict(row) for row in original]
        value = float(table[k][column])
        table[k][column] = value + move if column not in ("best", "one_se", "fold") else int(1 - value if move else 0)
        write(run, name, table)
        assert words in refused(run), k


def test_bounds_that_promise_one_row_more(run):
    """Every lower bound is raised by one row, of all ranges at once, as the summary then says, too."""
    table, said = rows(run, "bounds.csv"), json.loads((run / "cv.json").read_text())
    for row in table:
        row["lower"] = float(row["lower"]) + 1.0 / 60.0
    write(run, "bounds.csv", table)
    bound = said["certified"]
    bound["lower_bound"] = min(float(row["lower"]) for row in table)
    bound["difference"] = max(bound["best_error"] - bound["lower_bound"], 0.0)
    (run / "cv.json").write_text(json.dumps(said))
    assert "the bounds are not proven" in refused(run)


@pytest.mark.parametrize("place, value, words", [
    (("best", "step"), 7, "the best step is"), (("best", "mean"), 0.99, "the best step is"),
    (("best", "parameters", "C"), 5.0, "the best step is"), (("one_se", "se"), 0.5, "the one_se step is"),
    (("certified", "difference"), 0.0, "cv.json has another difference"),
    (("certified", "lower_bound"), 0.4, "cv.json has another lower_bound"),
    (("certified", "best_error"), 0.0, "cv.json has another best_error"),
    (("certified", "cmax"), 100.0, "cv.json has another cmax"),
    (("certified", "best_C"), 2.0, "cv.json has another best_C"),
    (("certified", "reached"), True, "cv.json has another target"),
    (("score",), "f1", "folds.csv says f1"),
    (("score",), "x", "another score than the options"), (("higher_is_better",), False, "another score than"),
])  # fmt: skip
def test_entries_of_the_summary(run, place, value, words):
    said = json.loads((run / "cv.json").read_text())
    part = said
    for name in place[:-1]:
        part = part[name]
    assert part[place[-1]] != value
    part[place[-1]] = value
    (run / "cv.json").write_text(json.dumps(said))
    assert words in refused(run)


@pytest.mark.parametrize("place, value, words", [
    (("identity", "folds_sha256"), "0" * 64, "hash of other folds"),
    (("folds_certified",), False, "run.json says otherwise"),
    (("options", "folds"), 2, "not as many as the options ask for|identity"),
    (("options", "score"), "mae", "identity|another score"),
])  # fmt: skip
def test_entries_of_the_record(run, place, value, words):
    record = json.loads((run / "run.json").read_text())
    part = record
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    if place[0] == "options" and place[-1] in record["identity"]:
        record["identity"][place[-1]] = value
    (run / "run.json").write_text(json.dumps(record))
    found = refused(run)
    assert any(word in found for word in words.split("|"))


def test_folds_are_not_checked_without_the_list_of_files(run):
    unsealed(run)
    found = verify_certificate(run)
    assert not found.faults and "cv.csv: all" in found.uncovered


def edited(folder, change):
    """Write ``folds.bin`` again, each frame as ``change(number, kind, fields, arrays)`` leaves it, if not False."""
    parts = []
    for k, (kind, fields, arrays) in enumerate(list(frames(folder / FOLDS, times=LEVERS))):
        arrays = {name: np.array(array) for name, array in arrays.items()}
        if change(k, kind, fields, arrays) is not False:
            parts.append(frame(kind, fields, arrays))
    (folder / FOLDS).write_bytes(MAGIC + b"".join(parts))


def test_frames_written_again_hold(run):
    edited(run, lambda *part: None)
    seal(run)
    assert verify_certificate(run).holds


def test_forged_frames(run, made):
    def shift(k, kind, fields, arrays):
        if kind == FOLD and fields["fold"] == 0:
            arrays["shift"] += 1e-3

    def scale(k, kind, fields, arrays):
        if kind == FOLD and fields["fold"] == 1:
            arrays["scale"] *= 2.0

    def held(k, kind, fields, arrays):  # a row that is held out twice, and one that never is
        if kind == FOLD and fields["fold"] == 0:
            free = np.setdiff1d(np.arange(60), arrays["held_out"])
            arrays["held_out"] = np.sort(np.append(arrays["held_out"][1:], free[0]))

    def order(k, kind, fields, arrays):
        if kind == FOLD and fields["fold"] == 0:
            arrays["held_out"] = arrays["held_out"][::-1]

    def weights(k, kind, fields, arrays):
        if kind == FOLD and fields["fold"] == 2:
            arrays["weights"] = np.full(60 - arrays["held_out"].size, 2.0)

    def point(k, kind, fields, arrays):
        if k == 3:
            arrays["w"] = arrays["w"] + 0.01

    def dual(k, kind, fields, arrays):
        if k == 3:
            arrays["between"] = arrays["between"] * 0.5

    def gap(k, kind, fields, arrays):
        if k == 3:
            fields["gap"] = 0.0

    def status(k, kind, fields, arrays):
        if k == 3:
            fields["status"] = "budget"

    def lost(k, kind, fields, arrays):
        return k != 4

    def fold(k, kind, fields, arrays):
        return kind == END or k < 11

    def problem(k, kind, fields, arrays):
        if kind == HEADER:
            fields["tol"] = 0.1

    for change in (shift, scale, held, order, weights, point, dual, gap, status, lost, fold, problem):
        shutil.copy(made / FOLDS, run / FOLDS)
        edited(run, change)
        assert refused(run), change.__name__
    shutil.copy(made / FOLDS, run / FOLDS)
    content, rng = (run / FOLDS).read_bytes(), np.random.default_rng(0)
    for place in rng.integers(0, len(content), 12).tolist():
        (run / FOLDS).write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        assert refused(run), place
    (run / FOLDS).write_bytes(content)
    seal(run)
    assert verify_certificate(run).holds
    (run / "cv.csv").write_text("")
    assert "cv.csv is not what the run wrote" in " ".join(reason for _, reason in verify_certificate(run).faults)


def test_without_the_folds_nothing_of_them_is_covered(run):
    record = json.loads((run / "run.json").read_text())
    del record["files"][FOLDS]
    (run / "run.json").write_text(json.dumps(record))
    (run / FOLDS).unlink()
    seal(run)
    found = verify_certificate(run)
    assert found.holds and {"folds.csv: all", "cv.json: all", "cv.csv: all", "bounds.csv: all"} <= set(found.uncovered)
    assert not any(name.startswith(("cv.", "folds.", "bounds.")) for name in found.covered)


def test_a_score_cannot_be_hidden_behind_a_step_that_claims_nothing(run):
    """Such a step is allowed, and then the choice is not covered."""
    table = rows(run, "folds.csv")
    table[2]["status"], table[2]["score"] = "budget", 1.0
    write(run, "folds.csv", table)

    def status(k, kind, fields, arrays):
        if k == 4:
            fields["status"] = "budget"
            arrays.clear()
            for name in ("primal", "primal_error", "gap"):
                del fields[name]

    edited(run, status)
    assert "cv.csv has another mean" in refused(run)
    record = json.loads((run / "run.json").read_text())
    record["folds_certified"] = False
    (run / "run.json").write_text(json.dumps(record))
    refused(run)
    assert {"cv.json: best, one_se", "bounds.csv: all"} <= set(verify_certificate(run).uncovered)


def test_forged_levers(data, tmp_path):
    """What is made of rows that are not there is refused; of other rows or with other weights it proves less."""
    options = {**SVM, "grid": 8, "intercept": "free", "certify": True}
    screenpath.cross_validate("svm", data / "d", out=tmp_path / "r", **options)
    whole = (tmp_path / "r" / FOLDS).read_bytes()

    def beyond(arrays):
        arrays["lever_rows"][-1] = 1000

    def below(arrays):
        arrays["lever_rows"][0] = -1

    def negative(arrays):
        arrays["lever_weights"][0] *= -1.0

    def no_number(arrays):
        arrays["lever_weights"][0] = np.nan

    def ends(arrays):
        arrays["lever_ends"][0] = arrays["lever_ends"][-1]

    def short(arrays):
        arrays["lever_rows"] = arrays["lever_rows"][:-1]

    def kind(arrays):
        arrays["lever_rows"] = arrays["lever_rows"].astype(float)

    def lost(arrays):
        del arrays["lever_weights"]

    def none(arrays):
        for name in levers.NAMES:
            arrays[name] = arrays[name][:0]

    def others(arrays):
        arrays["lever_rows"] = (arrays["lever_rows"] + 7) % 40

    def without(arrays):
        for name in levers.NAMES:
            del arrays[name]

    for change in (beyond, below, negative, no_number, ends, short, kind, lost, none, others, without):

        def changed(k, kind, fields, arrays, change=change):
            if kind == STEP:
                change(arrays)

        (tmp_path / "r" / FOLDS).write_bytes(whole)
        edited(tmp_path / "r", changed)
        if change is without:  # as of earlier versions
            seal(tmp_path / "r")
            assert "bounds.csv: all" in verify_certificate(tmp_path / "r").uncovered
        else:
            said = refused(tmp_path / "r")
            assert ("the bounds are not proven" in said) == (change in (none, others)), (change.__name__, said)


# -- the checker's own bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_no_C_between_the_steps_leaves_the_bounds(data, tmp_path, intercept, monkeypatch):
    """The errors of folds solved at other values of C are within what the checker itself proves, not only the run."""
    options = {**SVM, "grid": 8, "certify": True, "intercept": intercept}
    screenpath.cross_validate("svm", data / "d", out=tmp_path / "r", **options)
    found, where = [], levers if intercept == "free" else room
    heaviest = where.heaviest

    def recorded(ends, wrong):
        found.append((ends[0][0].C, ends[0][1].C, wrong, heaviest(ends, wrong)))
        return found[-1][-1]

    monkeypatch.setattr(where, "heaviest", recorded)
    assert verify_certificate(tmp_path / "r", data / "d").holds
    held = [arrays["held_out"] for kind, _, arrays in frames(tmp_path / "r" / FOLDS, times=LEVERS) if kind == FOLD]
    assert len(found) == 14
    for low, high, wrong, share in found:
        grid = np.linspace(low, high, 5)
        errors = np.zeros(5)
        for out in held:
            training = np.setdiff1d(np.arange(60), out)
            options = {"grid": grid, "scale": "standard", "tol": 1e-10, "intercept": intercept}
            path = plain.svm_path(X[training], Y[training], **options)
            forms = X[out] @ path.coefficients.T + path.intercepts
            errors += ((forms > 0.0) != (Y[out] == 2.0)[:, None]).mean(axis=0) / len(held)
        assert np.all(errors >= 1.0 - share - 1e-9) if wrong else np.all(errors <= share + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_a_row_is_sure_outside_of_its_interval(seed):
    rng, m = np.random.default_rng(seed), 200
    size = 10.0 ** rng.uniform(-3, -1)
    a, b = (
        SimpleNamespace(
            C=C, c=rng.normal(size=3) * size, off=0.0, square=size * rng.random() ** 2, loss=loss, spread=0.0,
            p=rng.normal(size=m), e=1e-12 * rng.random(m), norms=1.0 + rng.random(m),
        )
        for C, loss in ((1.0, 3.0), (1.0 + rng.random(), 3.0 - rng.random()))
    )  # fmt: skip
    side = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    b.norms = a.norms
    low, high = room.unsure(a, b, side)
    K = max((b.C - a.C) * (a.loss - b.loss) - np.sum((b.c - a.c) ** 2), 0.0)
    for s in np.linspace(0.0, 1.0, 401):
        p = (1 - s) * (side * a.p - a.e) + s * (side * b.p - b.e)
        radius = np.sqrt((1 - s) * a.square + s * b.square + s * (1 - s) * K)
        outside = (s < low) | (s > high)
        assert np.all(p[outside] > (a.norms * radius)[outside] * (1.0 - 1e-9))
    assert (low > high).any() and (low <= high).any()


@pytest.mark.parametrize("scale", ["standard", "none"])
def test_rows_at_their_bounds_make_no_levers(tmp_path, scale):
    """Small C: all rows of the smaller class are at their bound, up to the rounding of the sum that is to be 0."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(24, 3)) * [1.0, 3.0, 0.2] + [0.0, 5.0, 0.0], 3)
    (tmp_path / "d").write_text(libsvm_text(X, np.where(np.arange(24) % 3 == 0, 1, 2)))
    options = {**SVM, "grid": 3, "folds": 2, "certify": True, "scale": scale, "intercept": "free"}
    screenpath.cross_validate("svm", tmp_path / "d", out=tmp_path / "r", **options)
    assert verify_certificate(tmp_path / "r").faults == []
