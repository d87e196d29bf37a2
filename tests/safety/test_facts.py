"""Every fact of a run folder is compared or named as not covered; true folders are accepted."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pytest

import screenpath
from screenpath.verify import check, verify_certificate
from screenpath.verify.file import END, HEADER, MAGIC, NAME, STEP, frame, frames, read_certificate
from screenpath.verify.problem import Problem
from screenpath.verify.table import open_data
from tests import plain
from tests.run_folders import seal
from tests.safety.facts import attack, forged, make_folders, verdict
from tests.width import wide


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return make_folders(tmp_path_factory.mktemp("facts"))


@pytest.fixture
def copy(folders, tmp_path):
    def copied(k):
        return shutil.copytree(folders[k], tmp_path / f"copy{k}")

    return copied


def test_true_folders_are_accepted_and_only_what_nobody_can_know_is_not_covered(folders):
    for folder in folders:
        found = verify_certificate(folder)
        assert found.holds, found.faults
        names = [name for name in found.uncovered if name.startswith("run.json: ")]
        for fact in ("labels", "data.nnz", "preparation", "options.weights", "options.class_weight", "objective",
                     "totals.certified", "status", "kernel.gamma", "guarantee"):  # fmt: skip
            assert f"run.json: {fact}" not in names
        assert not {f"step table: {name}" for name in ("primal", "dual", "n_R", "nnz_w")} & set(found.uncovered)


def test_every_fact_changed_alone_is_refused_or_named(folders, tmp_path):
    found = attack(folders, tmp_path, wide(24, None))
    assert found["believed"] == []
    assert found["refused"] > 100 and found["refused"] + found["named"] > 200


def test_a_checker_that_compares_nothing_would_be_caught(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("screenpath.verify.differences", lambda *_: ([], [], []))
    found = attack(folders[:1], tmp_path, 20)
    assert len(found["believed"]) > 15


def test_of_a_fact_there_is_one_file(copy):
    folder = copy(0)
    rows = [{"step": 0, "C": 1.0}]
    (folder / "steps.json").write_text(json.dumps({"steps": rows}))
    ((_, fault),) = verify_certificate(folder).faults
    assert "steps.json" in fault
    without = copy(5)  # its options say that there are no coefficients
    (without / "coefficients.csv").write_text("step,feature,value\n0,1,5.0\n")
    ((_, fault),) = verify_certificate(without).faults
    assert "coefficients.csv" in fault
    unlisted = copy(4)
    record = json.loads((unlisted / "run.json").read_text())
    del record["files"]["steps.csv"]
    seal(unlisted, record)
    ((_, fault),) = verify_certificate(unlisted).faults
    assert "no hash of steps.csv" in fault


def test_the_intercept_is_the_sum_to_its_rounding(tmp_path):
    """Columns far from the origin: a move that is small beside the parts of the sum changes the labels."""
    rng = np.random.default_rng(1)
    X = np.round(1e6 + rng.normal(size=(60, 3)), 3)
    y = np.where(X.sum(axis=1) > 3e6, 2, 1)
    lines = [f"{t} " + " ".join(f"{j}:{v}" for j, v in enumerate(row, 1)) for t, row in zip(y, X, strict=True)]
    (tmp_path / "d").write_text("\n".join(lines) + "\n")
    plain.run("svm", tmp_path / "d", scale="standard", certificate=True, c_list=[1.0], out=tmp_path / "r")
    assert verify_certificate(tmp_path / "r").holds
    file = tmp_path / "r" / "coefficients.csv"
    head, row, *rest = file.read_text().splitlines()
    step, feature, value = row.split(",")
    shift = json.loads((tmp_path / "r" / "run.json").read_text())["preparation"]["shift"]
    size = sum(abs(float(line.split(",")[2])) * m for line, m in zip(rest, shift, strict=True))
    for part, good in ((1e-9, False), (1e-12, False), (1e-16, True)):
        file.write_text("\n".join([head, f"{step},{feature},{float(value) + part * size!r}", *rest, ""]))
        seal(tmp_path / "r")
        assert verify_certificate(tmp_path / "r").holds is good


def cut(folder, kept: int) -> None:
    """Cut off all steps but the first of certificate, table, coefficients and totals, consistently."""
    parts = [(kind, fields, arrays) for kind, fields, arrays in frames(folder / NAME) if kind in (HEADER, STEP)]
    parts = [*parts[: kept + 1], (END, {"steps": kept}, {})]
    (folder / NAME).write_bytes(MAGIC + b"".join(frame(*part) for part in parts))
    lines = (folder / "steps.csv").read_text().splitlines()
    (folder / "steps.csv").write_text("\n".join([*lines[: kept + 1], ""]))
    lines = (folder / "coefficients.csv").read_text().splitlines()
    (folder / "coefficients.csv").write_text(
        "\n".join([lines[0], *(line for line in lines[1:] if int(line.split(",")[0]) < kept), ""])
    )
    record = json.loads((folder / "run.json").read_text())
    record["totals"] |= {"n_steps": kept, "steps_done": kept, "certified": kept}
    record["grid"] |= {"points": kept}
    seal(folder, record)


@pytest.mark.parametrize("kept", [0, 2])
def test_steps_that_are_cut_off_are_missed(copy, kept):
    folder = copy(0)
    cut(folder, kept)
    faults = [fault for _, fault in verify_certificate(folder).faults]
    assert any("no step" in fault if kept == 0 else "ask for 4 values" in fault for fault in faults)
    assert screenpath.verify_certificate(folder).holds is False


def test_a_certificate_without_steps_proves_nothing(folders):
    header, _ = read_certificate(folders[0] / NAME)
    assert not check(header, [], folders[0].parent / "two").holds


@pytest.mark.parametrize(
    "given, said, what",
    [
        ({"class_weight": {1: 3.0}}, {"class_weight": []}, "weights"),
        ({"class_weight": {1: 3.0}}, {"class_weight": ["2=3"]}, "weights"),
        ({"positive": 1}, {"positive": None}, "labels"), ({"scale": "maxabs"}, {"scale": "none"}, "scale"),
    ],
)  # fmt: skip
def test_a_true_certificate_of_another_problem_is_refused(folders, tmp_path, given, said, what):
    data = folders[0].parent / "two"
    given = {**given, **({"class_weight": ["1=3"]} if "class_weight" in given else {})}
    plain.run("svm", data, certificate=True, grid=3, out=tmp_path / "r", **given)
    assert verify_certificate(tmp_path / "r").holds
    record = json.loads((tmp_path / "r" / "run.json").read_text())
    record["options"] |= said
    record["identity"] |= said
    if "positive" in said:
        record["labels"]["-1"] = 2.0
    seal(tmp_path / "r", record)
    assert any(what in fault for _, fault in verify_certificate(tmp_path / "r").faults)


def watched(record, header, source) -> Problem:
    """Return the facts of a problem that has seen both passes over its data, and found no fault."""
    problem = Problem(record, header)
    problem.watch(source)
    for indices in (True, False):
        assert sum(block.labels.size for block in source.passed(indices=indices)) == source.n
    assert problem.faults() == []
    return problem


@pytest.mark.parametrize("name", ["scale", "shift"])
@pytest.mark.parametrize("k", [0, 1, 8])
def test_scale_and_shift_are_those_of_the_data(folders, name, k):
    """A certificate could be true for another scaling, as long as run.json has the same: the data have their own."""
    header, _ = read_certificate(folders[k] / NAME)
    record = json.loads((folders[k] / "run.json").read_text())
    source = open_data(record["data"]["path"], header, 7)
    problem = watched(record, header, source)
    for change in (1e-9, -1e-12):
        problem.header = {**header, name: header[name] * (1.0 + change)}
        (fault,) = problem.faults()
        assert f"{name} is not that of the data" in fault


def test_guarantee_of_an_eps_path_is_formed_again(copy):
    folder = copy(3)
    record = json.loads((folder / "run.json").read_text())
    for options in (record["options"], record["identity"]):
        options["eps_path"] = 0.01
    record["guarantee"]["epsilon"] = 0.01
    seal(folder, record)
    assert any("does not serve" in fault for _, fault in verify_certificate(folder).faults)


@pytest.mark.parametrize("name", ["alpha", "alphas", "beta", "betas", "references"])
def test_an_eps_path_of_the_plane_has_no_grid_of_its_own(copy, name):
    folder = copy(9)
    as_if_given(folder, name, 7)
    assert any(f"has the option {name}" in fault for _, fault in verify_certificate(folder).faults)


def test_weights_that_are_lost_are_named(copy):
    folder = copy(7)
    record = json.loads((folder / "run.json").read_text())
    for options in (record["options"], record["identity"]):
        if "weights" in options:
            options["weights"] = "lost"
    seal(folder, record)
    accepted, uncovered = verdict(folder)
    assert accepted and "run.json: options.weights" in uncovered


def test_wide_data_and_resumed_runs_are_accepted(tmp_path):
    rng = np.random.default_rng(2)
    X = np.round(rng.normal(size=(20, 3)), 3)
    y = np.where(np.arange(20) % 2, 1, 2)
    lines = [f"{t} 3:{a} 70:{b} 30000000:{c}" for t, (a, b, c) in zip(y, X, strict=True)]
    (tmp_path / "d").write_text("\n".join(lines) + "\n")
    plain.run("svm", tmp_path / "d", certificate=True, grid=3, scale="maxabs", out=tmp_path / "r")
    assert verify_certificate(tmp_path / "r").holds
    plain.run("svm", tmp_path / "d", certificate=True, grid=3, scale="maxabs", out=tmp_path / "r", resume=True)
    assert verify_certificate(tmp_path / "r").holds


def as_if_given(folder, name, value) -> None:
    """Write another value of an option, and its copy."""
    record = json.loads((folder / "run.json").read_text())
    for options in (record["options"], record["identity"]):
        options[name] = value
    seal(folder, record)


@pytest.mark.parametrize(
    ("given", "texts", "named"),
    [
        (["auto"], True, True), (["auto"], False, True), (["/g/"], True, True), (["g"], True, False),
        (["g,g"], True, False), (["g", "g"], True, False),
    ],
)  # fmt: skip
def test_columns_to_encode_that_nobody_can_know_are_named(tmp_path, given, texts, named):
    """Of auto that found nothing to encode, true folders were refused; of auto and patterns any were believed."""
    cells = "uvu" if texts else "121"
    rows = [f"{'yes' if k % 3 else 'no'},{k % 7},{cells[k % 4 % 3]}" for k in range(12)]
    (tmp_path / "d").write_text("\n".join(["t,a,g", *rows]) + "\n")
    plain.run("svm", tmp_path / "d", target="t", one_hot=given, certificate=True, grid=3, out=tmp_path / "r")
    accepted, uncovered = verdict(tmp_path / "r")
    assert accepted and ("run.json: options.one_hot" in uncovered) is named
    for other in (["a"], [*given, "a"]):  # a column that was not encoded
        as_if_given(tmp_path / "r", "one_hot", other)
        assert verdict(tmp_path / "r")[0] is ("/g/" in other)


def test_pairs_of_labels_mean_nothing_where_there_are_two(copy):
    """Runs with the option and without it have the same certificate, so that it is named; it was believed."""
    folder = copy(0)
    for value in (False, True):
        as_if_given(folder, "one_vs_one", value)
        accepted, uncovered = verdict(folder)
        assert accepted and "run.json: options.one_vs_one" in uncovered


def test_names_of_changes_are_many(folders):
    assert sum(len({name for name, _ in forged(folder)}) for folder in folders) > 1000


def rewritten(folder, change) -> None:
    parts = [
        (kind, {**fields, **(change if kind == HEADER else {})}, arrays)
        for kind, fields, arrays in frames(folder / NAME)
    ]
    (folder / NAME).write_bytes(MAGIC + b"".join(frame(*part) for part in parts))
    record = json.loads((folder / "run.json").read_text())
    seal(folder, record | change)


@pytest.mark.parametrize("form", ["libsvm", "csv"])
def test_labels_are_written_as_the_data_write_them(tmp_path, form):
    values = [("007", 1.5), ("+2", -1.0), ("7.0", 2.0), ("2", -0.5), ("7", 1.0)]
    rows = [f"{label} 1:{x}" if form == "libsvm" else f"{label},{x}" for label, x in values]
    (tmp_path / "d").write_text("\n".join([*([] if form == "libsvm" else ["class,a"]), *rows]) + "\n")
    plain.run("svm", tmp_path / "d", certificate=True, grid=3, out=tmp_path / "r")
    record = json.loads((tmp_path / "r" / "run.json").read_text())
    assert record["labels"] == {"+1": "007", "-1": "+2"}
    found = verify_certificate(tmp_path / "r")
    assert found.holds and not any("labels" in name for name in found.uncovered)
    for labels in (
        {"+1": "7", "-1": "+2"}, {"+1": 7.0, "-1": "+2"}, {"+1": "7.0", "-1": "+2"}, {"+1": "007", "-1": 2.0},
    ):  # fmt: skip
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        rewritten(shutil.copytree(tmp_path / "r", tmp_path / "copy"), {"labels": labels})
        faults = verify_certificate(tmp_path / "copy").faults
        assert faults and all("the certificate has a label" in fault for _, fault in faults), labels


@pytest.mark.parametrize("weights", [["1=3"], ["1=0.1", "2=0.7"], "balanced"])
@pytest.mark.parametrize("of_samples", [False, True])
def test_weights_are_those_of_data_and_options_to_their_last_digits(folders, tmp_path, weights, of_samples):
    """Judged in fractions: a weight is the product of two numbers, of which the class's may be rounded itself."""
    given = {"weights": str(folders[0].parent / "weights")} if of_samples else {}
    data = folders[0].parent / "two"
    plain.run("svm", data, certificate=True, grid=2, class_weight=weights, out=tmp_path / "r", **given)
    assert verify_certificate(tmp_path / "r").holds
    header, _ = read_certificate(tmp_path / "r" / NAME)
    labels = [int(line.split()[0]) for line in data.read_text().splitlines()]
    written = (folders[0].parent / "weights").read_text().split()
    own = [Fraction(text) if of_samples else Fraction(1) for text in written]
    sums = {label: sum(w for w, one in zip(own, labels, strict=True) if one == label) for label in (1, 2)}
    factor = (
        {label: sum(sums.values()) / (2 * s) for label, s in sums.items()}
        if weights == "balanced"
        else {1: Fraction(1), 2: Fraction(1), **{int(w[0]): Fraction(w[2:]) for w in weights}}
    )
    for got, w, label in zip(header["weights"].tolist(), own, labels, strict=True):
        assert abs(Fraction(got) / (w * factor[label]) - 1) <= 4 * Fraction(1, 2**53)
    record = json.loads((tmp_path / "r" / "run.json").read_text())
    source = open_data(data, header, 7)
    problem = watched(record, header, source)
    for change in (2e-15, -2e-15) if weights == "balanced" else (2.0**-52, -(2.0**-52)):
        moved = header["weights"].copy()
        moved[-1] *= 1.0 + change
        problem.header = {**header, "weights": moved}
        assert problem.faults() == ["the certificate's weights are not those of the data and the options"]


@pytest.mark.parametrize(
    ("name", "value"), [("screened_R", 25), ("n_survivors", -1), ("rejection_ratio", 1.5), ("n_features_screened", 9)],
)  # fmt: skip
def test_what_nobody_can_know_is_within_its_range(copy, name, value):
    folder = copy(0)
    head, *rows = [line.split(",") for line in (folder / "steps.csv").read_text().splitlines()]
    rows[-1][head.index(name)] = str(value)
    (folder / "steps.csv").write_text("\n".join(",".join(row) for row in [head, *rows]) + "\n")
    seal(folder)
    ((_, fault),) = verify_certificate(folder).faults
    assert f"{name} {value}: it is from 0 to" in fault


@pytest.mark.parametrize(
    ("options", "roundings"),
    [
        ({"weights": "weights"}, 0), ({"class_weight": ["1=0.3", "2=0.7"]}, 0),
        ({"weights": "weights", "class_weight": ["1=0.3"]}, 1), ({"class_weight": ["balanced"]}, 3),
    ],
)  # fmt: skip
@pytest.mark.parametrize("model", ["svm", "sparse-svm"])
def test_claims_of_earlier_versions_did_not_count_the_rounding_of_weights(folders, tmp_path, model, options, roundings):
    """Weights that are numbers of a file or an option are exact; where they are products, the refusal says so."""
    data = folders[0].parent / "two"
    options = {**options, **({"weights": str(folders[0].parent / "weights")} if "weights" in options else {})}
    grid = {"betas": 2, "alphas": 2} if model == "sparse-svm" else {"grid": 3}
    plain.run(model, data, certificate=True, out=tmp_path / "r", scale="maxabs", **grid, **options)
    assert verify_certificate(tmp_path / "r").holds
    header, steps = read_certificate(tmp_path / "r" / NAME)
    assert Problem(json.loads((tmp_path / "r" / "run.json").read_text()), header).roundings() == roundings
    exact = check(header, steps, data, roundings=0)
    steps = [{**entry, "gap": exact.pairs[entry["step"]].gap} for entry in steps]
    found = check(header, steps, data, roundings=roundings)
    assert found.holds is (roundings == 0)
    assert all("the weights' rounding, which earlier versions did not count" in fault for _, fault in found.faults)


def test_a_row_without_weight_has_a_dual_variable_of_0(folders, tmp_path):
    (tmp_path / "weights").write_text("0\n0\n" + "1.5\n" * 22)
    data, weights = folders[0].parent / "two", str(tmp_path / "weights")
    for model in ("l1svm", "svm"):
        plain.run(model, data, certificate=True, grid=2, weights=weights, out=tmp_path / model)
        assert int((tmp_path / model / "steps.csv").read_text().splitlines()[1].split(",")[8]) >= 2
        assert verify_certificate(tmp_path / model).faults == []


def test_a_class_weight_of_a_label_that_is_not_there_is_no_option_of_the_run(folders, tmp_path):
    """It changes no weight; the run would have refused it."""
    weights = str(folders[0].parent / "weights")
    data = folders[0].parent / "two"
    plain.run("svm", data, certificate=True, grid=2, weights=weights, out=tmp_path / "r", class_weight=["1=3"])
    assert verify_certificate(tmp_path / "r").holds
    record = json.loads((tmp_path / "r" / "run.json").read_text())
    for part in ("options", "identity"):
        record[part]["class_weight"] = ["1=3", "7=3"]
    seal(tmp_path / "r", record)
    ((_, fault),) = verify_certificate(tmp_path / "r").faults
    assert fault == "class_weight names a label that the data do not have"
