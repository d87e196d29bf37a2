"""The independent checker: what it accepts, that it shares no code with what it checks, and the files it refuses."""

import ast
import json
import shutil

import numpy as np
import pytest

import screenpath
from screenpath.errors import ScreenpathError
from screenpath.verify import check
from screenpath.verify.file import NAME, read_certificate
from tests.cli.conftest import call, clouds, data, in_process, libsvm_text  # noqa: F401 (fixtures)
from tests.conftest import ROOT
from tests.safety.facts import seal

PACKAGE = ROOT / "screenpath" / "verify"
GRID = ("--grid", "6", "--quiet")
NONE = ("--intercept", "none")
PLAIN = (*GRID, *NONE)
SCALES = ("none", "maxabs", "standard", "l2")


def weights_file(folder, n=120):
    path = folder / "weights.txt"
    path.write_text("\n".join(repr(w) for w in np.random.default_rng(1).uniform(0.0, 2.0, n).tolist()))
    return path


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("model", ["svm", "lad", "quantile", "svr"])
def test_what_a_run_claims_holds(call, tmp_path, model, scale):  # noqa: F811
    X, y = clouds(n=60)
    X[np.random.default_rng(2).random(X.shape) < 0.5] = 0.0
    options = {"svm": ["--class-weight", "balanced"], "quantile": ["--tau", "0.8"], "svr": ["--epsilon", "0.2"]}
    (tmp_path / "d").write_text(libsvm_text(X, y if model == "svm" else X @ np.arange(5) + y**2))
    more = ["--weights", weights_file(tmp_path, 60), "--bias", "0.7"]
    for k, storage in enumerate(["dense"] if scale == "standard" else ["dense", "sparse"]):
        given = more if k == 0 else ["--intercept", "none"]
        given = [*options.get(model, []), *given, "--scale", scale, "--storage", storage]
        call(model, "d", *GRID, *given, "--certificate", "-o", "r", "--force", "--coefficients", ["csv", "npz"][k])
        found = call("verify", "r")
        assert (found.code, found.err) == (0, "")
        assert "6 of 6 steps proven" in found.out
        checked = screenpath.verify_certificate("r")
        assert checked.holds and checked.proven == 6 and checked.claims > 60 and checked.worst < 1e-6


@pytest.mark.parametrize(
    "kernel", [("rbf", "--bias", "1"), ("linear", *NONE), ("poly", "--coef0", "1", "--degree", "2", *NONE)]
)
def test_kernel_models(call, data, kernel):  # noqa: F811
    options = ("--scale", "standard", "--class-weight", "1=2", "--coefficients", "npz")
    assert call("svm", data, *GRID, "--kernel", *kernel, *options, "--certificate", "-o", "r").code == 0
    found = call("verify", "r")
    assert (found.code, found.err) == (0, "") and "6 of 6 steps proven" in found.out
    assert screenpath.verify_certificate("r").claims > 60


@pytest.mark.parametrize("scale", SCALES)
def test_a_free_intercept(call, tmp_path, scale):  # noqa: F811
    X, y = clouds(n=60)
    (tmp_path / "two").write_text(libsvm_text(X + 3.0, y))
    (tmp_path / "real").write_text(libsvm_text(X + 3.0, X @ np.arange(5) + 40.0 + y**2))
    weights = ("--weights", weights_file(tmp_path, 60))
    runs = (
        ("svm", "two", *weights),
        ("svr", "real", "--epsilon", "0.2"),
        ("quantile", "real", "--tau", "0.8", "--coefficients", "npz"),
        ("svm", "two", "--kernel", "rbf", *weights),
    )
    for model, file, *options in runs:
        given = (*GRID, "--scale", scale, "--intercept", "free", "--certificate", "-o", "r", "--force")
        assert call(model, file, *options, *given).code == 0
        found = call("verify", "r")
        assert (found.code, found.err) == (0, "") and "6 of 6 steps proven, 0 rows fixed" in found.out
    record = json.loads((tmp_path / "r" / "run.json").read_text())
    record["options"]["intercept"] = "none"
    seal(tmp_path / "r", record)
    found = call("verify", "r")
    assert found.code == 1 and "another intercept" in found.out + found.err


@pytest.mark.parametrize("scale", SCALES)
def test_models_with_few_weights(call, data, scale):  # noqa: F811
    for k, storage in enumerate(["dense"] if scale == "standard" else ["dense", "sparse"]):
        options = ("--scale", scale, "--storage", storage, "--certificate", "-o", "r", "--force", "--quiet")
        options += ("--coefficients", ["csv", "npz"][k])
        assert call("l1svm", data, "--grid", "6", *options).code == 0
        assert call("verify", "r").out.startswith("r: 6 of 6 steps proven")
        assert call("sparse-svm", data, "--betas", "2", "--alphas", "4", "--bias", "0.3", *options).code == 0
        assert call("verify", "r").out.startswith("r: 8 of 8 steps proven")


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


def test_weights_of_models_with_few_weights(call, data, tmp_path):  # noqa: F811
    options = ("--weights", weights_file(tmp_path), "--class-weight", "2=3", "--certificate", "--force", "--quiet")
    for scale in ("none", "standard"):
        for command in (("l1svm", "--grid", "6"), ("sparse-svm", "--betas", "2", "--alphas", "3", "--bias", "0.3")):
            assert call(command[0], data, *command[1:], "--scale", scale, *options, "-o", "r").code == 0
            assert call("verify", "r").out.startswith("r: 6 of 6 steps proven")
            header, steps = read_certificate(tmp_path / "r" / NAME)
            header["weights"] = np.roll(header["weights"], 1)  # those of other samples
            assert not check(header, steps, data).holds


def test_processes_write_the_same_certificate(call, data, tmp_path):  # noqa: F811
    grid = ("--betas", "2", "--alphas", "3", "--quiet", "--certificate")
    for jobs in ("1", "2"):
        assert call("sparse-svm", data, *grid, "--jobs", jobs, "-o", jobs).code == 0
    assert (tmp_path / "1" / NAME).read_bytes() == (tmp_path / "2" / NAME).read_bytes()


@pytest.mark.parametrize("model", ["svm", "sparse-svm", "l1svm"])
def test_words_for_labels(call, data, tmp_path, model):  # noqa: F811
    grid = ("--betas", "2", "--alphas", "3") if model == "sparse-svm" else ("--grid", "4")
    text = data.read_text().replace("\n2 ", "\nspam ").replace("\n1 ", "\nham ")
    data.write_text(("spam " if text[0] == "2" else "ham ") + text[2:])
    assert call(model, data, *grid, "--certificate", "--quiet", "-o", "r").code == 0
    assert call("verify", "r").code == 0
    data.write_text(data.read_text().replace("spam ", "other ", 1))
    assert "is not the data of the certificate" in call("verify", "r").err


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
    call(
        "svm",
        sample,
        "--eps-path",
        "0.1",
        "--cmax",
        "0.1",
        "--quiet",
        "--scale",
        "standard",
        "--certificate",
        "-o",
        "r",
    )
    for ending in ("", ".gz", ".bz2", ".xz"):
        assert call("verify", "r", f"{sample}{ending}").code == 0


def test_it_uses_numpy_and_nothing_of_the_solver(call, data, tmp_path):  # noqa: F811
    allowed = {
        "__future__", "bz2", "contextlib", "copy", "csv", "dataclasses", "decimal", "functools", "gzip", "hashlib",
        "io", "itertools", "json", "lzma", "math", "numpy", "os", "pathlib", "pyarrow.parquet", "struct", "typing",
        "zipfile", "zlib", "screenpath.errors", "screenpath.verify",
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
        text.replace("1 1:", "1 1:1", 1),
        text.replace("\n2 ", "\n1 ", 1),
        text[: text.rindex("\n2")],
        "1 x\n",
    ):
        data.write_text(changed)
        found = call("verify", "r")
        assert found.code == 1 and found.err.startswith("error: ") and "Traceback" not in found.err
    data.write_text("# the same\n" + text.replace("\n", "  \n\n"))
    assert call("verify", "r").code == 0
    assert "no such file" in call("verify", "r", "elsewhere").err
    assert "not one of shards" in call("verify", "r", tmp_path).err


def test_a_run_folder_that_says_something_else_is_noticed(call, data, tmp_path):  # noqa: F811
    call("svm", data, *PLAIN, "--certificate", "-o", "r")
    for name, old, new in (
        ("steps.csv", "certified", "budget"),
        ("steps.csv", "\n3,", "\n3,1"),
        ("coefficients.csv", "\n2,1,", "\n2,1,1"),
        ("coefficients.csv", "\n2,1,", "\n1,1,"),
        ("run.json", '"tol": 1e-06', '"tol": 1e-07'),
        ("run.json", '"-1": 1.0', '"-1": 3.0'),
    ):
        shutil.copytree("r", "changed", dirs_exist_ok=True)
        file = tmp_path / "changed" / name
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
        found = call("verify", "changed")
        assert found.code == 1 and found.err, name
        assert not screenpath.verify_certificate("changed").holds


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


def test_damaged_certificates_are_one_error(call, data, tmp_path):  # noqa: F811
    call("svm", data, *PLAIN, "--certificate", "-o", "r")
    file, rng = tmp_path / "r" / NAME, np.random.default_rng(0)
    whole = file.read_bytes()
    for k in range(120):
        bad = bytearray(whole)
        if k % 2:
            bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
        else:
            del bad[rng.integers(len(bad)) :]
        file.write_bytes(bad)
        with pytest.raises(ScreenpathError) as caught:
            screenpath.verify_certificate(tmp_path / "r")
        assert NAME in str(caught.value)
    file.write_bytes(whole)
    assert screenpath.verify_certificate(tmp_path / "r").holds
    file.unlink()
    assert "--certificate" in call("verify", "r").err


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
    "command",
    [
        ("svm", "--grid", "9", "--rule", "it"),
        ("svm", "--grid", "9", "--kernel", "rbf"),
        ("l1svm", "--grid", "9"),
        ("sparse-svm", "--betas", "3", "--alphas", "3"),
    ],
)
def test_a_resumed_run_has_the_same_certificate(call, tmp_path, monkeypatch, command):  # noqa: F811
    from screenpath.store.folder import RunFolder

    (tmp_path / "d").write_text(libsvm_text(*clouds()))
    arguments = (command[0], "d", *command[1:], "--quiet", "--certificate")
    assert call(*arguments, "-o", "whole").code == 0
    monkeypatch.setattr(RunFolder, "due", lambda folder: True)
    for stop in (1, 4, 8):
        add = RunFolder.add

        def stopping(folder, row, coefficients=None, stop=stop, add=add):
            if row["step"] == stop:
                raise OSError(28, "No space left on device")
            add(folder, row, coefficients)

        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "add", stopping)
            assert call(*arguments, "-o", f"stopped{stop}").code == 1
        assert not (tmp_path / f"stopped{stop}" / NAME).exists()
        assert "is not finished" in call("verify", f"stopped{stop}").err
        assert call(*arguments, "-o", f"stopped{stop}", "--resume").code == 0
        assert (tmp_path / f"stopped{stop}" / NAME).read_bytes() == (tmp_path / "whole" / NAME).read_bytes()
    call(*arguments[:-1], "-o", "whole", "--force")
    assert not (tmp_path / "whole" / NAME).exists()


@pytest.mark.parametrize(
    "options, word",
    [
        (("--one-vs-rest",), "--one-vs-rest"),
        (("--dtype", "float32"), "float32"),
        (("-o", "-"), "run folder"),
    ],
)
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
