"""The independent checker: what it accepts, that it shares no code with what it checks, and the files it refuses."""

import ast
import json

import numpy as np
import pytest

import screenpath
from screenpath.errors import ScreenpathError
from screenpath.verify import check
from screenpath.verify.file import NAME, read_certificate
from tests.cli.conftest import call, clouds, data, in_process, libsvm_text  # noqa: F401 (fixtures)
from tests.conftest import ROOT
from tests.run_folders import seal

PACKAGE = ROOT / "screenpath" / "verify"
GRID = ("--grid", "6", "--quiet")
NONE = ("--intercept", "none")
PLAIN = (*GRID, *NONE)
SCALES = ("none", "maxabs", "standard", "l2")


def weights_file(folder, n=120):
    path = folder / "weights.txt"
    path.write_text("\n".join(repr(w) for w in np.random.default_rng(1).uniform(0.0, 2.0, n).tolist()))
    return path


WEIGHED, FREE = ("--weights", "weights.txt"), ("--intercept", "free")
SPARSE_ROWS, PENALISED = (*NONE, "--storage", "sparse", "--coefficients", "npz"), (*WEIGHED, "--bias", "0.7")
BETAS = ("--betas", "2", "--alphas", "3")
HONEST = [
    ("svm", "two", "--class-weight", "balanced", *PENALISED), ("svm", "two", *SPARSE_ROWS),
    ("svm", "two", *WEIGHED, *FREE),
    ("lad", "real", *PENALISED), ("lad", "real", *SPARSE_ROWS),
    ("quantile", "real", "--tau", "0.8", *PENALISED), ("quantile", "real", "--tau", "0.8", *SPARSE_ROWS),
    ("quantile", "real", "--tau", "0.8", *FREE, "--coefficients", "npz"),
    ("svr", "real", "--epsilon", "0.2", *PENALISED), ("svr", "real", "--epsilon", "0.2", *SPARSE_ROWS),
    ("svr", "real", "--epsilon", "0.2", *FREE),
    ("svm", "two", "--kernel", "rbf", *WEIGHED, *FREE), ("svm", "two", "--kernel", "rbf", "--bias", "1"),
    ("svm", "two", "--kernel", "linear", *NONE), ("svm", "two", "--kernel", "poly", "--degree", "2", *NONE),
    ("l1svm", "two", *WEIGHED, "--class-weight", "2=3"), ("l1svm", "two", *SPARSE_ROWS[2:]),
    ("sparse-svm", "two", *BETAS, "--bias", "0.3", *WEIGHED, "--class-weight", "2=3"),
    ("sparse-svm", "two", *BETAS, "--bias", "0.3", *SPARSE_ROWS[2:]),
]  # fmt: skip


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("words", HONEST, ids=" ".join)
def test_what_a_run_claims_holds(call, tmp_path, words, scale):  # noqa: F811
    if scale == "standard" and "sparse" in words:
        pytest.skip("rows that are stored sparse are not centred")
    X, y = clouds(n=60)
    X[np.random.default_rng(2).random(X.shape) < 0.5] = 0.0
    X += 3.0 * ("free" in words)
    (tmp_path / "two").write_text(libsvm_text(X, y))
    (tmp_path / "real").write_text(libsvm_text(X, X @ np.arange(5) + y**2))
    weights_file(tmp_path, 60)
    grid = () if "--betas" in words else ("--grid", "6")
    assert call(*words, *grid, "--scale", scale, "--certificate", "--quiet", "-o", "r").code == 0
    found = call("verify", "r")
    assert (found.code, found.err) == (0, "") and "6 of 6 steps proven" in found.out
    checked = screenpath.verify_certificate("r")
    assert checked.holds and checked.proven == 6 and checked.worst < 1e-6
    assert checked.claims > 60 or "free" in words or words[0] in ("l1svm", "sparse-svm")


@pytest.fixture(scope="module")
def far_from_0(tmp_path_factory):
    """Return a file whose columns have means of 1e7 spreads and more."""
    X, y = clouds(n=60)
    X = X + [1e7, -1e7, 3e7, 1e8, -2e7]
    path = tmp_path_factory.mktemp("far") / "d"
    path.write_text(libsvm_text(X, y))
    return path


@pytest.mark.parametrize("options", [
    ("--solver", "cd"), ("--storage", "sparse", "--class-weight", "2=3"), ("--scale", "maxabs"),
    ("--scale", "l2", "--storage", "sparse"),
], ids=str)  # fmt: skip
def test_columns_far_from_0(call, far_from_0, tmp_path, options):  # noqa: F811
    assert call("l1svm", far_from_0, "--grid", "6", *options, "--certificate", "--quiet", "-o", "r").code == 0
    found = call("verify", "r")
    assert found.out.startswith("r: 6 of 6 steps proven"), found.out
    header, steps = read_certificate(tmp_path / "r" / NAME)
    assert ("shift" in header) == ("l2" not in options)
    other_bias = [{**entry, "b": entry["b"] * (1.0 + 1e-3)} for entry in steps]
    for wrong in (other_bias, [{**entry, "b_off": 10.0} for entry in steps]):  # the latter: a dual point of another
        assert check(header, wrong, far_from_0).proven < 6
    with pytest.raises(ScreenpathError, match="do not fit"):
        check(header, [{**steps[-1], "b_off": float("inf")}], far_from_0)


def test_processes_write_the_same_certificate(call, data, tmp_path):  # noqa: F811
    grid = ("--betas", "2", "--alphas", "3", "--quiet", "--certificate")
    for jobs in ("1", "2"):
        assert call("sparse-svm", data, *grid, "--jobs", jobs, "-o", jobs).code == 0
    assert (tmp_path / "1" / NAME).read_bytes() == (tmp_path / "2" / NAME).read_bytes()


@pytest.mark.parametrize("model", ["svm", "lad"])
def test_tables(call, tmp_path, model):  # noqa: F811
    """CSV with quotes, texts, missing ends and one column in hot values; and the same as Parquet."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(3)
    X, colour = rng.normal(size=(60, 2)).round(2), rng.choice(["red", "light blue", "3.5"], 60)
    y = X @ [1.0, -2.0] + (colour == "red")
    class_ = np.where(y > 0, "spam; or", "ham") if model == "svm" else y.round(3)
    rows = [
        f'{a};"{c}";{"true" if a > 0 else "false"};{b};"{t}"' for (a, b), c, t in zip(X, colour, class_, strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(['"a b";colour;flag;n;class', "", *rows]) + "\n")
    table = {"a b": X[:, 0], "colour": colour, "flag": X[:, 0] > 0, "n": X[:, 1], "class": class_}
    parquet.write_table(pyarrow.table(table), tmp_path / "t.parquet", row_group_size=7)
    for name in ("t.csv", "t.parquet"):
        how = ("--one-hot", "colour", "--certificate", "--quiet", "--scale", "maxabs")
        assert call(model, tmp_path / name, *GRID, *how, "-o", name[2:]).code == 0
        for other in ("t.csv", "t.parquet"):
            found = call("verify", name[2:], tmp_path / other)
            assert found.code == 0, found.err
    (tmp_path / "t.csv").write_text((tmp_path / "t.csv").read_text().replace(rows[3], rows[4]))
    assert "is not the data of the certificate" in call("verify", "csv").err


def test_compressed_data_and_eps_paths(call, tmp_path):  # noqa: F811
    sample = ROOT / "data_samples" / "breast_cancer.libsvm"
    how = ("--eps-path", "0.1", "--cmax", "0.1", "--quiet", "--scale", "standard", "--certificate")
    call("svm", sample, *how, "-o", "r")
    for ending in ("", ".gz", ".bz2", ".xz"):
        assert call("verify", "r", f"{sample}{ending}").code == 0


def test_it_uses_numpy_and_nothing_of_the_solver(call, data, tmp_path):  # noqa: F811
    allowed = {
        "__future__", "abc", "bz2", "collections.abc", "contextlib", "copy", "csv", "dataclasses", "decimal",
        "functools", "gzip", "hashlib", "io", "itertools", "json", "lzma", "math", "numpy", "os", "pathlib",
        "pyarrow.parquet", "struct", "typing", "zipfile", "zlib", "screenpath.errors", "screenpath.verify",
    }  # fmt: skip
    for file in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name in allowed or name.startswith("screenpath.verify."), f"{file.name} imports {name}"
    call("svm", data, *PLAIN, "--certificate", "-o", "r")
    script = (
        "import sys\n"
        "class Gone:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('numba', 'scipy') or name.startswith('screenpath.') and name not in\\\n"
        "                ('screenpath.errors', 'screenpath.verify') and not name.startswith('screenpath.verify.'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Gone())\n"
        "import screenpath\n"
        "print(screenpath.verify_certificate(sys.argv[1]).holds)\n"
    )
    done = in_process(script, tmp_path / "r", cwd=tmp_path)
    assert done.stdout == "True\n", done.stderr


def test_data_that_has_changed_is_refused(call, data, tmp_path):  # noqa: F811
    call("svm", data, *PLAIN, "--certificate", "-o", "r")
    text = data.read_text()
    for changed in (
        text.replace("1 1:", "1 1:1", 1), text.replace("\n2 ", "\n1 ", 1), text[: text.rindex("\n2")], "1 x\n",
    ):  # fmt: skip
        data.write_text(changed)
        found = call("verify", "r")
        assert found.code == 1 and found.err.startswith("error: ") and "Traceback" not in found.err
    data.write_text("# the same\n" + text.replace("\n", "  \n\n"))
    assert call("verify", "r").code == 0
    assert "no such file" in call("verify", "r", "elsewhere").err
    assert "not one of shards" in call("verify", "r", tmp_path).err


@pytest.mark.parametrize("name", ["run.json", "steps.csv", "coefficients.csv"])
def test_missing_and_damaged_parts(call, data, tmp_path, name):  # noqa: F811
    call("svm", data, *PLAIN, "--certificate", "-o", "r")
    (tmp_path / "r" / name).write_text("{")
    assert call("verify", "r").err.count("error: ") == 1 or screenpath.verify_certificate("r").faults
    (tmp_path / "r" / name).unlink()
    found = call("verify", "r")
    assert found.code == 1 and found.err.startswith("error: ")
    assert f"r has lost its {name}" in found.err and "Errno" not in found.err


def test_another_kind_of_data_has_a_next_step(call, data, tmp_path):  # noqa: F811
    call("svm", data, *PLAIN, "--certificate", "-o", "r")
    (tmp_path / "t.csv").write_text("age,class\n1,2\n")
    found = call("verify", "r", "t.csv")
    assert found.code == 1 and "this is not LIBSVM text\n  name the LIBSVM text that" in found.err
    (tmp_path / "other").write_text("7 1:1\n8 1:2\n")
    told = call("verify", "r", "other")
    assert told.code == 1 and "a label that the certificate lacks\n  name the data of the run" in told.err


def test_steps_that_are_not_certified_claim_nothing(call, data, tmp_path):  # noqa: F811
    assert call("svm", data, *PLAIN, "--tol", "1e-9", "--max-epochs", "1", "--certificate", "-o", "r").code == 3
    found = call("verify", "r")
    assert found.code == 3 and "claim nothing" in found.out
    statuses = [line.split(",")[2] for line in (tmp_path / "r" / "steps.csv").read_text().splitlines()[1:]]
    assert screenpath.verify_certificate("r").unclaimed == [k for k, s in enumerate(statuses) if s != "certified"]
    # None is proven: there is no gap to speak of.
    assert set(statuses) == {"budget"} and ": 0 of 6 steps proven, 0 rows fixed (tol" in found.out
    assert screenpath.verify_certificate("r").worst is None


@pytest.mark.parametrize(
    "options, word",
    [
        (("--one-vs-rest",), "--one-vs-rest"), (("--dtype", "float32"), "float32"), (("-o", "-"), "run folder"),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_refused(call, data, options, word):  # noqa: F811
    found = call("svm", data, "--certificate", *options)
    assert found.code == 2 and word in found.err


def test_folders_are_refused(call, tmp_path):  # noqa: F811
    assert "is a folder" in call("lad", tmp_path, "--certificate", "-o", "r").err


def test_standard_input_has_to_be_named(call, data, monkeypatch):  # noqa: F811
    import io
    import sys

    class Stdin:
        buffer = io.BytesIO(data.read_bytes())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert call("svm", "-", *GRID, "--certificate", "-o", "r").code == 0
    assert "name the data file behind the run folder" in call("verify", "r").err
    assert call("verify", "r", data).code == 0


def test_the_header_says_what_was_computed(call, data, tmp_path):  # noqa: F811
    call("svm", data, *GRID, "--certificate", "-o", "r", "--scale", "standard", "--bias", "2")
    header, steps = read_certificate(tmp_path / "r" / NAME)
    record = json.loads((tmp_path / "r" / "run.json").read_text())
    assert header["data"]["sha256"] == record["data"]["sha256"] and header["labels"] == record["labels"]
    assert header["scale"].tolist() == record["preparation"]["scale"]
    assert header["shift"].tolist() == record["preparation"]["shift"]
    assert [entry["step"] for entry in steps] == list(range(6))


@pytest.mark.parametrize("kernel", [("poly", "--degree", "2"), ("linear",)])
def test_kernel_sums_that_were_formed_again_are_checked_in_decimal_numbers(call, kernel):  # noqa: F811
    """Raw values of up to 4000: the longest binary numbers prove less than the run does."""
    grid = ["--c-list", "1e-3,1", "--tol", "1e-8"]
    done = call(
        "svm", ROOT / "data_samples" / "breast_cancer.libsvm", "--kernel", *kernel, *grid, "--certificate", "-o", "r"
    )
    checked = call("verify", "r")
    assert checked.code == done.code in (0, 3), checked.out + checked.err  # 3: a step that claims nothing
    assert "claimed" not in checked.out and "not proven" not in checked.out


@pytest.mark.parametrize("model, option, count", [("svm", "weights", 60), ("l1svm", "penalty_weights", 5)])
def test_files_of_weights_are_found_from_other_folders(call, tmp_path, monkeypatch, model, option, count):  # noqa: F811
    """They are those of the run if their numbers are: others of the same name, on the way to them, are not taken."""
    X, y = clouds(n=60)
    (tmp_path / "sub" / "away").mkdir(parents=True)
    (tmp_path / "sub" / "two").write_text(libsvm_text(X, y))
    right, other = weights_file(tmp_path, count), weights_file(tmp_path / "sub", count)
    other.write_text(right.read_text().replace("1.", "0."))
    text = f"--{option.replace('_', '-')}"
    assert call(model, "sub/two", *GRID, text, "weights.txt", "--certificate", "-o", "r").code == 0
    monkeypatch.chdir(tmp_path / "sub" / "away")
    unknown = f"run.json: options.{option}"

    def checked():
        found = screenpath.verify_certificate(tmp_path / "r", tmp_path / "sub" / "two")
        assert found.holds
        return found.uncovered

    assert unknown not in checked()
    right.unlink()
    assert unknown in checked()


def test_what_was_found_as_json(call, data, tmp_path):  # noqa: F811
    """The object has what the words have, and all that was compared and was not, each once."""
    assert call("svm", data, *PLAIN, "--certificate", "-o", "r").code == 0
    words, found = call("verify", "r").out, json.loads(call("verify", "r", "--format", "json").out)
    assert (found["holds"], found["steps"], found["proven"], found["faults"]) == (True, 6, 6, [])
    assert f"{found['rows_fixed']} rows fixed" in words and found["worst_rel_gap"] <= found["tol"]
    covered, rest = found["covered"], found["not_covered"]
    assert len({*covered, *rest}) == len(covered) + len(rest)
    assert {"run.json: options.tol", "step table: gap", "coefficients: every value"} <= set(covered)
    assert {"run.json: machine", "step table: solve_s"} <= set(rest) and "covered: " in words
    record = json.loads((tmp_path / "r" / "run.json").read_text())
    seal(tmp_path / "r", {**record, "objective": "another"})
    done = call("verify", "r", "--format", "json")
    assert done.code == 1 and "objective" in json.loads(done.out)["faults"][0]["reason"]


@pytest.mark.parametrize("words", [("svm",), ("svm", *NONE), ("l1svm", "--lambda-list", "5,2,1")])
def test_a_class_against_the_rest_has_a_certificate_of_its_own(call, tmp_path, words):  # noqa: F811
    """It is that of the run with ``--positive``, whose numbers are those of the class to the last digit."""
    X, _ = clouds(n=60)
    (tmp_path / "d").write_text(libsvm_text(X, np.arange(60) % 3))
    words = (*words, "d", "--quiet", *(() if "l1svm" in words else ("--grid", "3")))
    assert call(*words, "--one-vs-rest", "-o", "all").code == 0
    lines = [line.split(",") for line in (tmp_path / "all" / "coefficients.csv").read_text().splitlines()[1:]]
    for label in range(3):
        assert call(*words, "--positive", label, "-o", f"p{label}", "--certificate").code == 0
        assert call("verify", f"p{label}", "d").code == 0
        own = (tmp_path / f"p{label}" / "coefficients.csv").read_text().splitlines()[1:]
        assert [",".join([step, *rest]) for step, one, *rest in lines if float(one) == label] == own
