"""The checker's two passes over the data meet the same bytes; and what unfolds is bounded before it is unfolded."""

import bz2
import gzip
import itertools
import json
import lzma
import os
import shutil
import struct
import zipfile
import zlib

import numpy as np
import pytest

import screenpath
from screenpath.errors import DataError, ScreenpathError
from screenpath.verify import check, data, run
from screenpath.verify import file as form
from screenpath.verify.data import Source
from screenpath.verify.table import open_data
from tests import plain
from tests.cli.conftest import call, in_process, libsvm_text  # noqa: F401 (fixtures)
from tests.run_folders import reseal

GRID = ("--intercept", "none", "--grid", "3", "--quiet", "--certificate", "-o", "r")


def rewritten(monkeypatch, path, first: str, then: str) -> list:
    """Have the first pass over ``path`` read one text and every later one another; return the passes begun."""
    begun, lines = [], Source._lines

    def between(self):
        path.write_text(then if begun else first)
        begun.append(1)
        yield from lines(self)

    monkeypatch.setattr(Source, "_lines", between)
    return begun


def forged(text: str, plus: float) -> tuple:
    """Return a certificate that calls wrong weights optimal, and the data with which they would be.

    ``w`` is the sum of ``y_i x_i theta_i`` over the rows of that data, and the losses are those of the right one.
    """
    rows = [line.split() for line in text.splitlines()]
    X = np.array([[float(pair.split(":")[1]) for pair in row[1:]] for row in rows])
    y = np.where([float(row[0]) == plus for row in rows], 1.0, -1.0)
    w = np.array([7.0, -3.0, 2.0])
    t = 1.0 - y * (X @ w)
    theta, fake = t > 0.0, np.full(X.shape, 2.0**-40)
    k = int(np.argmax(theta))
    fake[k] = 0.0
    fake[k] = y[k] * (w - (y[:, None] * fake)[theta].sum(axis=0))
    other = "\n".join(
        " ".join([row[0], *(f"{j}:{v!r}" for j, v in enumerate(values, start=1))])
        for row, values in zip(rows, fake.tolist(), strict=True)
    )
    primal = float(0.5 * w @ w + np.maximum(t, 0.0).sum())
    arrays = {
        "states": form.pack(np.where(theta, form.HIGH, form.LOW).astype(np.uint8)),
        "claims": form.pack(np.zeros(y.size, np.uint8)), "between": np.zeros(0), "w": w,
    }  # fmt: skip
    step = {"step": 0, "status": "certified", "C": 1.0, "primal": primal, "gap": 1e-9 * primal, "primal_error": 1e-9}
    return {**step, **arrays}, other + "\n"


@pytest.fixture
def honest(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    path = tmp_path / "d"
    path.write_text(libsvm_text(X, np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0.0, 1, 2)))
    plain.run("svm", str(path), c_list=[1.0], certificate=True, quiet=True, out=str(tmp_path / "r"))
    header, steps = form.read_certificate(tmp_path / "r" / form.NAME)
    return path, header, steps


@pytest.mark.parametrize("order", ["first", "then"])
def test_data_that_change_between_the_passes_prove_nothing(honest, monkeypatch, order):
    path, header, steps = honest
    text = path.read_text()
    assert check(header, steps, path).holds
    entry, other = forged(text, header["labels"]["+1"])
    assert not check(header, [entry], path).holds
    begun = rewritten(monkeypatch, path, *((other, text) if order == "first" else (text, other)))
    with pytest.raises(DataError, match="changed while it was read"):
        check(header, [entry], path)
    assert len(begun) == 2


def test_only_the_comparison_of_the_passes_refuses_them(honest, monkeypatch):
    """Control: with the fingerprint alone, which takes half of its parts from each pass, the forgery is proven."""
    path, header, _ = honest
    entry, other = forged(path.read_text(), header["labels"]["+1"])
    rewritten(monkeypatch, path, other, path.read_text())
    passed = Source.passed

    class Any:
        def __ne__(self, other):
            return False

    def blind(self, indices):
        self.content = Any()
        yield from passed(self, indices)

    monkeypatch.setattr(Source, "passed", blind)
    assert check(header, [entry], path).holds


def test_a_table_that_changes_between_the_passes_proves_nothing(call, tmp_path, monkeypatch):  # noqa: F811
    rng = np.random.default_rng(0)
    rows = [f"{a!r},{b!r},{'yes' if a > b else 'no'}" for a, b in rng.normal(size=(30, 2)).tolist()]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a,b,class", *rows]) + "\n")
    assert call("svm", path, *GRID).code == 0 and call("verify", "r").code == 0
    text = path.read_text()
    rewritten(monkeypatch, path, text, text.replace(rows[4], rows[5]))
    assert "changed while it was read" in call("verify", "r").err


@pytest.mark.parametrize("form_of_data", ["libsvm", "csv"])
def test_a_pipe_is_refused_and_does_not_hang(call, tmp_path, form_of_data):  # noqa: F811
    text = "1 1:1\n2 1:-1\n" if form_of_data == "libsvm" else "a,class\n1,1\n-1,2\n"
    (tmp_path / "d").write_text(text)
    assert call("svm", "d", *GRID).code == 0
    os.mkfifo(tmp_path / "pipe")
    found = call("verify", "r", "pipe")
    assert found.code == 1 and "is a pipe or a device" in found.err and "write the data to a file" in found.err


# -- what unfolds ----------------------------------------------------------------------------------------------------


def frame_of(kind: bytes, text: bytes, zeros: int) -> bytes:
    """Return a part whose arrays are so many zero bytes, made without holding them."""
    stream, parts = zlib.compressobj(9), []
    parts.append(stream.compress(text))
    for _ in range(zeros >> 20):
        parts.append(stream.compress(bytes(1 << 20)))
    content = b"".join([*parts, stream.flush()])
    return kind + struct.pack("<QI", len(content), zlib.crc32(kind + content)) + content


def peak_of(script: str, *arguments, cwd) -> tuple[str, int]:
    """Return what a script prints in a process of its own, and how many bytes it took more than before."""
    before = "import resource, sys\nimport screenpath.verify\nfrom screenpath.errors import ScreenpathError\n"
    peak = "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
    script = f"{before}begin = {peak}\n{script}\nprint({peak} - begin)\n"
    done = in_process(script, *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    *said, peak = done.stdout.splitlines()
    return "\n".join(said), int(peak) * 1024


READ = (
    "try:\n"
    "    screenpath.verify.verify_certificate(*sys.argv[1:])\n"
    "except ScreenpathError as error:\n"
    "    print(error)\n"
)
# Several folders, one process for all: a line for each of what is said, and the most that any of them took.
EACH = (
    "for folder in sys.argv[1:]:\n"
    "    try:\n"
    "        print(screenpath.verify.verify_certificate(folder).faults)\n"
    "    except ScreenpathError as error:\n"
    "        print(str(error).splitlines()[0])\n"
)
BIG = 1 << 25


def header_text(**more) -> dict:
    about = {"n_samples": 10, "n_features": 3, "sha256": "0" * 64, "zero_based": False, **more}
    return {"model": "svm", "tol": 1e-6, "labels": None, "scaling": "none", "bias": 0.0, "data": about}


def test_no_part_of_a_certificate_unfolds_beyond_its_promise(tmp_path):
    small = form.frame(form.HEADER, header_text(), {})
    step = {"step": 0, "status": "certified"}
    line = json.dumps({**step, "arrays": [["states", "u1", BIG]]}).encode() + b"\n"
    short = json.dumps({**step, "arrays": [["states", "u1", 3]]}).encode() + b"\n"
    top = json.dumps({**header_text(), "arrays": [["weights", "f8", BIG // 8]]}).encode() + b"\n"
    most = json.dumps({**header_text(n_samples=1 << 60), "arrays": [["weights", "f8", 1 << 60]]}).encode() + b"\n"
    contents = {
        "header": frame_of(form.HEADER, top, BIG), "step": small + frame_of(form.STEP, line, BIG),
        "text": frame_of(form.HEADER, b" ", BIG), "step says more": small + frame_of(form.STEP, short, BIG),
        "sizes beyond the machine": frame_of(form.HEADER, most, BIG),
    }  # fmt: skip
    for where, content in contents.items():
        assert len(content) < 1 << 21
        (tmp_path / where).mkdir()
        (tmp_path / where / form.NAME).write_bytes(form.MAGIC + content)
    said, taken = peak_of(EACH, *(tmp_path / where for where in contents), cwd=tmp_path)
    assert [text for text in said.splitlines() if "certificate.bin is damaged" not in text] == []
    assert len(said.splitlines()) == len(contents) and taken < BIG // 2


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_a_line_without_an_end_is_refused(call, tmp_path, pack):  # noqa: F811
    (tmp_path / "d").write_text("1 1:1\n2 1:-1\n")
    assert call("svm", "d", *GRID).code == 0
    (tmp_path / "long").write_bytes(pack(b"1 1:1" + bytes(1) * (BIG >> 2)))
    said, taken = peak_of(READ, tmp_path / "r", tmp_path / "long", cwd=tmp_path)
    assert "has a line of" in said and taken < BIG >> 2


def test_a_row_of_many_quoted_lines_is_refused(call, tmp_path):  # noqa: F811
    (tmp_path / "d").write_text("a,class\n1,1\n-1,2\n")
    assert call("svm", "d", *GRID).code == 0
    with gzip.open(tmp_path / "long.gz", "wb") as file:
        file.write(b'a,class\n"')
        for _ in range(1 << 5):
            file.write(b'","\n' * (1 << 16))
    with pytest.raises(ScreenpathError, match="a row of"):
        screenpath.verify_certificate(tmp_path / "r", tmp_path / "long.gz")


def test_long_texts_of_parquet_are_unfolded_once(call, tmp_path):  # noqa: F811
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    n = 1 << 12
    values = pyarrow.array(["x" * (1 << 16), "y" * (1 << 16)])
    codes = np.arange(n) % 2
    text = pyarrow.DictionaryArray.from_arrays(codes, values)
    table = {"a": np.arange(n, dtype=float), "kind": text, "class": codes}
    parquet.write_table(pyarrow.table(table), tmp_path / "t.parquet", store_schema=False)
    assert (tmp_path / "t.parquet").stat().st_size < 1 << 19  # of what would be 256 MB
    header = header_text(
        n_samples=n, n_features=3, table={"target": "class", "columns": ["a", "kind"], "one_hot": {"kind": ["x", "y"]}}
    )
    script = (
        "import json\n"
        "try:\n"
        "    screenpath.verify.check(json.loads(sys.argv[2]), [], sys.argv[1])\n"
        "except ScreenpathError as error:\n"
        "    print(error)\n"
    )
    said, taken = peak_of(script, tmp_path / "t.parquet", json.dumps(header), cwd=tmp_path)
    assert "is not the data of the certificate" in said and taken < 1 << 27


def test_stated_sizes_of_texts_of_parquet_are_bounded(tmp_path, monkeypatch):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a": [1.0, 2.0], "kind": ["x" * 5000, "y"], "class": [1, 2]})
    columns = {"target": "class", "columns": ["a", "kind"], "one_hot": {"kind": ["x" * 5000, "y"]}}
    header = header_text(n_samples=2, n_features=3, table=columns)
    parquet.write_table(table, tmp_path / "p", use_dictionary=False)
    monkeypatch.setattr("screenpath.verify.table.memory", lambda: 4000)
    with pytest.raises(ScreenpathError, match="texts of 5,.* bytes, more than this machine can hold"):
        list(open_data(tmp_path / "p", header, 10)._rows())
    monkeypatch.setattr("screenpath.verify.table.memory", lambda: 6000)
    assert len(list(open_data(tmp_path / "p", header, 10)._rows())) == 2
    shared = {"kind": "DELTA_BYTE_ARRAY", "a": "PLAIN", "class": "PLAIN"}
    parquet.write_table(table, tmp_path / "p", use_dictionary=False, column_encoding=shared)
    with pytest.raises(ScreenpathError, match="cannot be read"):
        list(open_data(tmp_path / "p", header, 10)._rows())


@pytest.fixture
def small_run(call, tmp_path):  # noqa: F811
    (tmp_path / "d").write_text("1 1:1\n2 1:-1\n1 1:2\n")
    assert call("svm", "d", *GRID, "--coefficients", "npz").code == 0
    return tmp_path / "r"


def test_no_member_of_the_coefficients_unfolds_beyond_the_steps(small_run, tmp_path):
    members, kinds = ("indptr", "indices", "data"), (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(small_run / "coefficients.npz") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    folders = []
    for member, how in itertools.product(members, kinds):
        folders.append(tmp_path / f"{member}{how}")
        shutil.copytree(small_run, folders[-1])
        file = folders[-1] / "coefficients.npz"
        with zipfile.ZipFile(file, "w", how) as archive:
            for name, content in parts.items():
                archive.writestr(name, content + bytes(BIG if name == f"{member}.npy" else 0))
        assert file.stat().st_size < 1 << 20
        reseal(folders[-1])
    said, taken = peak_of(EACH, *folders, cwd=tmp_path)
    assert [text for text in said.splitlines() if "coefficients.npz is damaged" not in text] == []
    assert len(said.splitlines()) == len(folders) and taken < BIG // 2


def test_the_dictionary_of_an_xz_file_is_bounded_by_the_machine(small_run, tmp_path, monkeypatch):
    text = (tmp_path / "d").read_bytes()
    packed = [lzma.compress(text[:6]), bytes(8), lzma.compress(text[6:]), bytes(4)]
    (tmp_path / "d.xz").write_bytes(b"".join(packed))
    assert screenpath.verify.verify_certificate(small_run, tmp_path / "d.xz").holds
    chain = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28}]
    (tmp_path / "d.xz").write_bytes(lzma.compress(text, filters=chain))
    assert screenpath.verify.verify_certificate(small_run, tmp_path / "d.xz").holds
    monkeypatch.setattr(data, "memory", lambda: 1 << 27)
    with pytest.raises(DataError, match="Memory usage limit exceeded"):
        screenpath.verify.verify_certificate(small_run, tmp_path / "d.xz")


def test_the_step_table_as_parquet_unfolds_to_no_more_than_the_other_one(call, tmp_path):  # noqa: F811
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "d").write_text("1 1:1\n2 1:-1\n1 1:2\n")
    assert call("svm", "d", *GRID, "--format", "parquet").code == 0
    assert screenpath.verify.verify_certificate(tmp_path / "r").holds
    honest = parquet.read_table(tmp_path / "r" / "steps.parquet")
    n, at = honest.num_rows, honest.column_names.index("reason")
    zeros = pa.array(np.zeros(BIG // 8))
    columns = {
        "text": lambda: pa.array(["x" * BIG] * n),
        "texts": lambda: pa.array([letter * (BIG // n) for letter in "xyz"[:n]]),
        "list": lambda: pa.ListArray.from_arrays(pa.array([0] * n + [BIG // 8], pa.int32()), zeros),
        "fixed": lambda: pa.array([bytes(BIG)] * n, pa.binary(BIG)), "rows": None,
    }  # fmt: skip
    for kind, column in columns.items():
        file = shutil.copytree(tmp_path / "r", tmp_path / kind) / "steps.parquet"
        table = pa.table({name: zeros for name in honest.column_names})
        table = table if column is None else honest.set_column(at, "reason", column())
        parquet.write_table(table, file, compression="zstd", store_schema=False)
        assert file.stat().st_size < 1 << 22
        reseal(file.parent)
    said, taken = peak_of(f"import pyarrow.parquet\n{EACH}", *(tmp_path / kind for kind in columns), cwd=tmp_path)
    assert [text for text in said.splitlines() if "steps.parquet is not the table of steps.csv" not in text] == []
    assert len(said.splitlines()) == len(columns) and taken < BIG // 2


# -- what is hashed is what is read ------------------------------------------------------------------------------------


def test_files_of_the_folder_are_read_once(small_run, monkeypatch):
    """What a file holds after it was hashed has no say."""
    changed = run._changed

    def rewriting(*arguments):
        found = changed(*arguments)
        for name in ("steps.csv", "coefficients.npz"):
            (small_run / name).write_bytes(b"no longer")
        return found

    assert screenpath.verify.verify_certificate(small_run).holds
    monkeypatch.setattr(run, "_changed", rewriting)
    assert screenpath.verify.verify_certificate(small_run).holds
    assert (small_run / "steps.csv").read_bytes() == b"no longer"


def test_the_certificate_that_was_read_is_the_one_that_is_hashed(small_run, monkeypatch):
    file = small_run / form.NAME
    honest, read = file.read_bytes(), form.read_pairs
    parts = [(kind, {**fields, "note": 1}, arrays) for kind, fields, arrays in form.frames(file)]

    def swapped(*arguments):
        file.write_bytes(form.MAGIC + b"".join(form.frame(*part) for part in parts))
        found = read(*arguments)
        file.write_bytes(honest)
        return found

    monkeypatch.setattr(form, "read_pairs", swapped)
    found = screenpath.verify.verify_certificate(small_run)
    assert [fault for _, fault in found.faults] == ["certificate.bin is not what the run wrote (its hash differs)"]
