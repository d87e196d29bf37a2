"""``--penalty`` leads to the model with an elastic net, in every command and in Python; no forged certificate holds."""

import pytest

import screenpath
from screenpath.errors import DataError, UsageError
from screenpath.verify.file import NAME, read_certificate
from tests.cli.conftest import clouds, libsvm_text, read_csv
from tests.cli.test_sparse_models import targets

OWN = {"svm": (), "lad": (), "quantile": ("--tau", 0.3), "svr": ("--epsilon", 0.2)}
GRID = ("--scale", "standard", "--quiet", "--certificate")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("penalty")
    X, y = targets()
    (folder / "targets").write_text(libsvm_text(X, y))
    (folder / "labels").write_text(libsvm_text(*clouds(60, 4, seed=5)))
    return folder


@pytest.mark.parametrize("model", OWN)
def test_it_is_the_model_with_an_elastic_net(data, call, model):
    file, words = data / ("labels" if model == "svm" else "targets"), (*GRID, *OWN[model], "--betas", 2)
    for penalty, same in (("elastic-net", ("--alphas", 3)), ("l1", ("--alpha", 0))):
        asked = ("--alphas", 3) if penalty == "elastic-net" else ()
        one = call(model, file, *words, *asked, "--penalty", penalty, "--audit", "-o", "one", "--force")
        other = call(f"sparse-{model}", file, *words, *same, "-o", "other", "--force")
        assert one.code == other.code == 0, one.err + other.err
        first, second = read_csv("one/steps.csv"), read_csv("other/steps.csv")
        assert [row["primal"] for row in first] == [row["primal"] for row in second]
        assert all(row["unsafe"] == "0" for row in first)
        for command in (("verify",), ("show", "--step", 1), ("report", "-o", "page.html"), ("plot", "-o", "p.svg")):
            done = call(command[0], "one", *command[1:], *(("--force",) if "-o" in command else ()))
            assert done.code == 0, done.err
        assert call("predict", "one", file, "-o", "-", "--step", 1).code == 0
        assert call("export", "one", "--to", "json", "-o", "-", "--step", 1).code == 0
    cv = call("cv", model, file, *words[:2], *words[3:], "--penalty=l1", "--folds", 3, "-o", "folds")
    assert cv.code == 0 and call("verify", "folds").code == 0, cv.err
    rules = ("none", "ifs", "sifs+gap")
    compared = screenpath.compare(model, str(file), penalty="l1", betas=2, rules=list(rules), repeats=1)
    assert [row["rule"] for row in compared] == list(rules)


def test_the_l2_norm_alone(data, call):
    """Half the squares of a mean of losses: C is 1 / (n alpha)."""
    found = screenpath.run("sparse-lad", data / "targets", penalty="l2", alpha=[0.1], tol=1e-9, out=data / "l2")
    (row,), (n, _) = found.table(), targets()[0].shape
    lad = screenpath.run("lad", data / "targets", c_list=[1.0 / (0.1 * n)], tol=1e-9, out=data / "lad")
    assert row["beta"] == 0.0 and row["primal"] == pytest.approx(lad.table()[0]["primal"] * 0.1, rel=1e-8)
    with pytest.raises(UsageError, match="leaves beta out"):
        screenpath.run("huber", data / "targets", penalty="l2", betas=3, out=data / "none")
    for words, said in (
        (("lad", "--penalty", "l3"), "'l3' is not one of 'l2', 'l1', 'elastic-net'"),
        (("lad", "--penalty", "l1", "--c-list", 1), "has --beta or --betas, --alpha or --alphas in its place"),
        (("huber", "--penalty", "l1", "--alpha", 0.1), "leave out --alpha, or --penalty l1"),
        (("huber", "--alpha", "0,1", "--beta", "0,1"), "there is no penalty"),
    ):  # fmt: skip
        result = call(words[0], data / "targets", *words[1:])
        assert result.code == 2 and said in result.err, result.err


def test_a_forged_certificate_is_refused(data, call):
    """Of another loss, another penalty, another width."""
    file = data / "targets"
    call("svr", file, *GRID, "--betas", 2, "--alphas", 3, "--epsilon", 0.2, "--penalty", "elastic-net", "-o", "run")
    header, steps = read_certificate(screenpath.load_run("run").folder / NAME)
    assert not screenpath.verify.check(header, steps, file).faults
    for forged in ({"epsilon": 0.1}, {"smoothing": 0.3}, {"model": "svr"}, {"model": "sparse-lad"}):
        try:
            assert screenpath.verify.check({**header, **forged}, steps, file).faults, forged
        except (DataError, KeyError):
            assert "model" in forged
    steps[3]["beta"] *= 0.5
    assert screenpath.verify.check(header, steps, file).faults


def test_signs_of_an_l1svm(data, call):
    file = data / "labels"
    done = call("l1svm", file, "--nonnegative", *GRID, "--grid", 5, "--audit", "-o", "l1")
    assert done.code == 0 and call("verify", "l1").code == 0, done.err
    assert min(float(row["value"]) for row in read_csv("l1/coefficients.csv") if row["feature"] != "0") >= 0.0
    assert all(row["unsafe"] == "0" for row in read_csv("l1/steps.csv"))
    header, steps = read_certificate(screenpath.load_run("l1").folder / NAME)
    with pytest.raises(DataError, match="another sign than the certificate asks for"):
        screenpath.verify.check({**header, "signs": -header["signs"]}, steps, file)
    assert call("cv", "l1svm", file, "--nonnegative", *GRID, "--grid", 5, "--folds", 3, "-o", "l1cv").code == 0
    assert call("verify", "l1cv").code == 0


def test_each_penalty_has_a_default_folder_of_its_own(data, call, tmp_path):
    for penalty, folder in (("elastic-net", "sparse-lad"), ("l1", "sparse-lad-l1"), ("l2", "lad")):
        words = ("--grid", 2) if penalty == "l2" else ("--betas", 1)
        found = call("lad", data / "targets", "--penalty", penalty, *words, "--scale", "standard", "--quiet")
        assert found.code == 0 and (tmp_path / "runs" / f"{folder}-targets" / "run.json").exists(), found.err


@pytest.mark.parametrize("model", ["huber", "sparse-lad", "sparse-quantile"])
@pytest.mark.parametrize("value, intercept", [(3, "free"), (0, "none")])
def test_targets_that_are_all_the_same_are_one_error(call, tmp_path, model, value, intercept):
    """The size of the targets, beside the best intercept, divides the grid's ends."""
    (tmp_path / "same").write_text("".join(f"{value} 1:{k % 7} 2:{k % 3}\n" for k in range(20)))
    for grid in (("--alpha", 0.1, "--beta", 0.1), ("--betas", 2)):
        done = call(model, "same", "--intercept", intercept, *grid, "-q")
        assert (done.code, done.out) == (1, "") and "all targets are the same" in done.err
