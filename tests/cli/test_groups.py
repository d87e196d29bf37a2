"""Groups of features in commands: both forms of the file, certificates and their forgery, folds, refusals."""

import itertools

import numpy as np
import pytest

from screenpath import sparse_svm_path
from screenpath.errors import UsageError
from screenpath.verify import file as form
from tests.cli.conftest import libsvm_text, read_csv, without_times

D = 12
GRID = "--betas", 2, "--alphas", 4
CSV = "feature,group,weight\n" + "".join(f"{j + 1},{'abcd'[j // 3]},{1 + j // 3}\n" for j in reversed(range(D)))


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, D)).round(4)
    return X, np.where(X[:, :3].sum(axis=1) + 0.5 * rng.normal(size=80) > 0.2, 1.0, -1.0)


@pytest.fixture
def data(tmp_path, points):
    """Return data with four groups of three features; files of the groups are beside it."""
    (tmp_path / "g.txt").write_text("\n".join("aaabbbcccddd") + "\n")
    (tmp_path / "g.csv").write_text(CSV)
    path = tmp_path / "a.libsvm"
    path.write_text(libsvm_text(*points))
    return path


@pytest.mark.parametrize(
    "options",
    [
        ("--groups", "g.txt", "--intercept", "none"),
        ("--groups", "g.txt", "--l1-share", 0.4, "--penalty", "l1", "--betas", 4),
        ("--groups", "g.csv", "--loss", "squared-hinge", "--l1-share", 0.4, "--class-weight", "1=3"),
        ("--groups", "g.csv", "--intercept", "penalised", "--scale", "standard"),
    ],
)
def test_a_path_is_certified_and_a_forged_coefficient_refused(call, data, points, options):
    grid = GRID if "l1" not in options else ()
    done = call("sparse-svm", data, *options, *grid, "--audit", "--certificate", "-o", "run")
    assert done.code == 0, done.err
    steps = read_csv("run/steps.csv")
    assert all(row["status"] == "certified" and row["unsafe"] == "0" for row in steps)
    assert any(int(row["n_groups_screened"]) for row in steps) or "l1" in options
    given = read_csv("run/steps.csv")[-1]
    assert int(given["nnz_groups"]) > 0
    assert call("verify", "run").code == 0
    assert len(call("predict", "run", data, "--step", len(steps) - 1).out.split()) > len(points[1])
    frames = list(form.frames("run/certificate.bin"))
    kind, fields, arrays = frames[len(steps)]  # of the last step
    values = arrays["values"].copy()
    values[0] *= 1.01
    frames[len(steps)] = kind, fields, {**arrays, "values": values}
    with open("run/certificate.bin", "wb") as file:
        file.write(form.MAGIC + b"".join(form.frame(*frame) for frame in frames))
    forged = call("verify", "run")
    assert forged.code == 1 and f"step {len(steps) - 1}" in forged.out + forged.err


def test_other_groups_than_those_of_the_options_are_refused(call, data):
    assert call("sparse-svm", data, "--groups", "g.txt", *GRID, "--certificate", "-o", "run").code == 0
    with open("g.txt", "w") as file:
        file.write("a a a b b b c c c d d a")
    found = call("verify", "run")
    assert found.code == 1 and "the certificate's groups are not those of the options" in found.out + found.err


def test_both_forms_are_one_problem_and_python_has_it_too(call, data, points):
    with open("g.csv", "w") as file:
        file.write("feature,group\n" + "".join(f"{j + 1},{'abcd'[j // 3]}\n" for j in range(D)))
    for name in ("g.txt", "g.csv"):
        assert call("sparse-svm", data, "--groups", name, *GRID, "-o", name[-3:]).code == 0
    one, other = (without_times(f"{name}/steps.csv") for name in ("txt", "csv"))
    path = sparse_svm_path(*points, groups=list("aaabbbcccddd"), betas=2, alphas=4)
    assert one == other
    assert [float(row["primal"]) for row in read_csv("txt/steps.csv")] == [step.primal for step in path.steps]
    plain = sparse_svm_path(*points, groups=np.arange(D), betas=2, alphas=4)  # of one feature: the L1 norm
    net = sparse_svm_path(*points, betas=[s.beta for s in plain.steps][::4], alphas=[s.alpha for s in plain.steps][:4])
    for step, same in itertools.islice(zip(plain.steps, net.steps, strict=True), 4):
        assert abs(step.primal - same.primal) <= 2e-6 * same.primal
    with pytest.raises(UsageError, match="groups of shape"):
        sparse_svm_path(*points, groups=[1, 2])


@pytest.mark.parametrize("jobs", [1, 2])
def test_folds_are_certified(call, data, jobs):
    given = "--groups", "g.csv", "--l1-share", 0.3, *GRID, "--folds", 3, "--jobs", jobs
    assert call("cv", "sparse-svm", data, *given, "--certificate", "-o", "cv").code == 0
    assert call("verify", "cv").code == 0


@pytest.mark.parametrize(
    "text, said",
    [
        ("1 1 2\n2 3", "g, line 2: it ends after 5 of 12 features"), ("1 " * 12 + "\n7", "g, line 2: '7' is label 13"),
        ("1,2,3", "g, line 1: '1,2,3' is neither"),
        ("feature,group\n1,a\n1,b", "g, line 3: feature '1' has a group already"),
        ("feature,group\n99,a", "g, line 2: there is no feature '99'"),
        ("feature,group\n1,a,2", "g, line 2: '1,a,2' is not feature,group"),
        ("feature,group\n1,a", "g: feature 2 has no group"),
        ("feature,group,weight\n1,a,1\n2,a,2", "g, line 3: '2' is no weight of the group 'a'"),
        ("feature,group,weight\n1,a,0", "g, line 2: '0' is no weight"),
    ],
)  # fmt: skip
def test_a_file_that_says_no_groups_is_refused(call, data, text, said):
    with open("g", "w") as file:
        file.write(text)
    found = call("sparse-svm", data, "--groups", "g", "-o", "run")
    assert found.code == 1 and said in found.err and found.err.count("\n") == 2


@pytest.mark.parametrize(
    "options",
    [("--nonnegative",), ("--smoothing", 0), ("--eps-path", 0.1), ("--penalty", "l2"), ("--jobs", 2),
     ("--first", "samples")],
)  # fmt: skip
def test_what_groups_do_not_go_with_is_refused(call, data, options):
    found = call("sparse-svm", data, "--groups", "g.txt", *options, "-o", "run")
    assert found.code == 2 and found.err.startswith(f"error: --groups does not support {options[0]}")


def test_names_of_rules_and_solvers_and_a_share_without_groups(call, data):
    groups = "--groups", "g.txt"
    for options in ((*groups, "--rule", "dvi"), (*groups, "--solver", "cd"), ("--l1-share", 0.5)):
        assert call("sparse-svm", data, *options, "-o", "run").code == 2


def test_a_table_that_csv_cannot_read_is_refused(call, data):
    (data.parent / "wide.csv").write_text(f"feature,group\n1,{'y' * 200_000}\n")
    found = call("sparse-svm", data, "--groups", "wide.csv", *GRID, "-o", "run")
    assert found.code == 1 and "wide.csv: the table cannot be read" in found.err
