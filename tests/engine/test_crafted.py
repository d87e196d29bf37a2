"""Run folders with entries of the wrong kind, behind hashes that fit: one clear error, or the same numbers."""

import json
import os
import random
import shutil
import zipfile
from copy import copy as copy_of

import numpy as np
import pytest

from tests.cli.conftest import clouds, libsvm_text
from tests.engine.damaged import COMMANDS, READERS, one_error, read, stop_among_folds
from tests.run_folders import reseal, unsealed
from tests.width import wide

SHOW = ("show", "RUN", "--step", "0", "--duals", "-")
STRANGE = (
    None, True, -1, 0, 3.5, 10**400, 2**70, 1e308, -1e-300, "", "x", "\x1b[2J", "../../etc/passwd", "\ud800", [], {},
    [None], ["step"], [1e308] * 3, {"+1": "x", "-1": []}, {"classes": [2, 1]}, {"classes": "ab"}, [[[[]]]],
)  # fmt: skip


def places(value, path=()):
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(min(len(value), 3)):
            yield (*path, key)
            yield from places(value[key], (*path, key))


def put(value, path, new) -> None:
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


@pytest.mark.covering(1)
@pytest.mark.parametrize("kind", ["csv", "kernel", "cv"])
@pytest.mark.parametrize("seals", [True, False])
def test_crafted_records(call, copy, kind, seals):
    """Every entry of run.json takes strange values: one error each, or it is none that is read."""
    rng, folder, refused = random.Random(kind), copy(f"whole-{kind}"), 0
    whole = (folder / "run.json").read_text()
    reseal(folder) if seals else unsealed(folder)
    record = json.loads((folder / "run.json").read_text())
    for path in places(record):
        if path[0] in ("sha256", "identity") or path[:1] == ("files",):
            continue
        for new in rng.sample(STRANGE, 2)[: wide(1, 2)]:
            (folder / "run.json").write_text(whole)
            if not seals:
                unsealed(folder)
                changed = json.loads((folder / "run.json").read_text())
                put(changed, path, new)
                (folder / "run.json").write_text(json.dumps(changed))
            else:
                reseal(folder, lambda record, path=path, new=new: put(record, path, new))
            for result in read(call, "t", [*(READERS[2:3] if kind == "cv" else READERS[:1]), SHOW]):
                assert result.code in (0, 2) or one_error(result), (path, new, result)
                assert "Traceback" not in result.err and "\x1b" not in result.err + result.out
                refused += result.code == 1
    assert refused > 20


@pytest.mark.parametrize(
    "files",
    [
        None, [], "x", {"../../etc/passwd": {"bytes": 1, "sha256": ""}}, {"/etc/passwd": {"bytes": 1, "sha256": ""}},
        {"steps.csv": None}, {"steps.csv": {"bytes": -1, "sha256": 3}}, {"steps.csv": {}}, {},
    ],
)  # fmt: skip
def test_crafted_lists_of_files(call, copy, files):
    folder = copy("whole-csv")
    reseal(folder, lambda record: record.update(files=files))
    for result in read(call, "t"):
        assert one_error(result) and "damaged" in result.err, result


def test_a_record_without_its_hash_is_refused(call, copy):
    """What had hashes when it was written is not read as if it were older."""
    folder = copy("whole-csv")
    record = json.loads((folder / "run.json").read_text())
    for name in ("sha256", "files"):
        (folder / "run.json").write_text(json.dumps({n: v for n, v in record.items() if n != name}))
        assert all(one_error(result) for result in read(call, "t"))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema_version": 2, "a": NaN}', '{"schema_version": true}', "\xff"])
def test_records_that_are_no_json(call, copy, text):
    folder = copy("whole-csv")
    (folder / "run.json").write_bytes(text.encode("latin-1"))
    for result in [*read(call, "t"), call(*COMMANDS["csv"], "-o", "t", "--resume")]:
        assert one_error(result) and "run.json is damaged" in result.err


def test_crafted_cross_validations(call, copy):
    """Every entry of cv.json takes strange values."""
    rng, folder, refused = random.Random(1), copy("whole-cv"), 0
    record = json.loads((folder / "cv.json").read_text())
    for path in places(record):
        for new in rng.sample(STRANGE, 5)[: wide(2, 5)]:
            changed = json.loads(json.dumps(record))
            put(changed, path, new)
            (folder / "cv.json").write_text(json.dumps(changed))
            reseal(folder)
            for result in read(call, "t", [("plot", "RUN", "--terminal", "--kind", "cv"), READERS[4]]):
                assert result.code == 0 or one_error(result), (path, new, result)
                refused += result.code
    assert refused > 20


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace("certified", '"certified', 1), lambda t: t.replace("certified", "\x1b[2J", 1),
        lambda t: t.replace("certified", "", 1), lambda t: t.replace("\n0,", "\n0x,", 1), lambda t: t[: len(t) // 2],
        lambda t: t.replace("0.0,", "nan,", 1), lambda t: t.replace("0.0,", "1e999,", 1), lambda t: t + "\0",
        lambda t: "", lambda t: t.replace("\n1,", "\n-1,", 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("seals", [True, False])
def test_crafted_step_tables(call, copy, change, seals):
    folder = copy("whole-csv")
    text = (folder / "steps.csv").read_text()
    assert change(text) != text
    (folder / "steps.csv").write_text(change(text))
    reseal(folder) if seals else unsealed(folder)
    for result in read(call, "t"):
        assert one_error(result) and "steps.csv is damaged" in result.err, result


@pytest.mark.parametrize("cell", [True, "x", [1], {"a": 1}, 1e400, "1"])
def test_crafted_cells_of_json_tables(call, copy, cell):
    folder = copy("whole-npz")
    table = json.loads((folder / "steps.json").read_text())
    table["steps"][1]["primal"] = cell
    (folder / "steps.json").write_text(json.dumps(table))
    reseal(folder)
    found = read(call, "t")
    assert all(one_error(result) for result in found) or cell == "1"


@pytest.mark.parametrize("line", ["0,1,1e999", "0,1", "0,1e300,1", "0,-1,1", "0,1,nan", "1,1,0.5", "0,1,1,1", "a,b,c"])
def test_crafted_coefficients(call, copy, line):
    """Also a line that stands there twice: the two must not be added up."""
    folder = copy("whole-csv")
    with open(folder / "coefficients.csv", "a") as file:
        file.write(line + "\n")
    reseal(folder)
    result = call("predict", "t", "data", "--step", "0")
    assert one_error(result) and "coefficients.csv is damaged" in result.err


@pytest.mark.parametrize(
    ("place", "new"), [("rows_kept", {}), ("rows_kept", 3.5), ("bytes", "x"), ("bytes", -1), ("bytes", None)]
)
def test_what_is_kept_of_a_kernel_matrix(call, copy, place, new):
    folder = copy("whole-kernel")
    reseal(folder, lambda record: put(record, ("kernel", place), new))
    result = call("show", "t")
    assert one_error(result) and f"kernel.{place}" in result.err
    reseal(folder, lambda record: (put(record, ("kernel", place), 5), put(record, ("options", "max_memory"), 10**400)))
    for result in read(call, "t", [*READERS[:1], SHOW]):
        assert result.code == 0, result


class Bomb:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("exploded",)


def crafted_matrices(good: dict):
    big = np.array([0, 10**9, 2, 3, 4, 5, 6], dtype=np.int32)
    for change in (
        {"indptr": big[: good["indptr"].size]}, {"indptr": -good["indptr"]}, {"indptr": good["indptr"][:-1]},
        {"indices": good["indices"] + 10**6}, {"indices": -1 - good["indices"]}, {"data": good["data"][:-1]},
        {"data": good["data"] * np.nan}, {"shape": np.array([10**12, 6])}, {"shape": np.array([6])},
        {"format": np.array(b"dia")}, {"data": good["data"].astype("S8")}, {"indices": good["indices"] * 0},
        {"data": np.array([Bomb()], dtype=object)},
    ):  # fmt: skip
        yield {**good, **change}
    yield {name: value for name, value in good.items() if name != "indptr"}


def test_crafted_npz_coefficients(call, copy):
    folder = copy("whole-npz")
    with np.load(folder / "coefficients.npz") as stored:
        good = {name: stored[name] for name in stored.files}
    for matrix in crafted_matrices(good):
        np.savez_compressed(folder / "coefficients.npz", **matrix)
        reseal(folder)
        result = call("predict", "t", "data", "--step", "0")
        assert one_error(result) and "coefficients.npz is damaged" in result.err, (matrix, result)
    assert not os.path.exists("exploded")


# -- checkpoints and folds -------------------------------------------------------------------------------------------


def crafted(arrays: dict, rng):
    for name, array in arrays.items():
        changes = [array[..., None], array.astype("S3"), array.astype(bool), np.zeros((2, 3)), np.array(np.nan)]
        if array.ndim:
            changes += [array[:-1], np.append(array, array), array[:0]] if array.size else [np.zeros(5)]
        if array.dtype.kind == "f" and array.size:
            changes += [array * np.nan, np.full_like(array, np.inf), -1.0 - np.abs(array), array + 1e300]
        if array.dtype.kind == "i":
            changes += [array - 100, array + 100]
        for new in rng.sample(changes, min(2, len(changes)))[: wide(1, 2)]:
            yield name, {**arrays, name: new}
        yield name, {other: value for other, value in arrays.items() if other != name}


@pytest.mark.parametrize("kind", [kind for kind in COMMANDS])
def test_crafted_checkpoints(call, copy, made, kind):
    """Arrays of another kind or length, lost ones, nan, infinity: one error, or the numbers are the same."""
    from screenpath.store.archive import load_archive, save_archive

    good, refused, tried = load_archive(made / f"cut-{kind}/checkpoint.npz"), 0, 0
    for name, arrays in crafted(good, random.Random(kind)):
        folder = copy(f"cut-{kind}")
        save_archive(folder / "checkpoint.npz", arrays)
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        result = call(*COMMANDS[kind], "-o", "t", "--resume")
        tried += 1
        if result.code == 0:
            continue
        refused += 1
        # Where the place in the certificate is that of another file, it is the file that does not fit.
        other = name.startswith("state-proof_") and "its checkpoint says: the run folder is damaged" in result.err
        assert one_error(result) and ("checkpoint.npz is damaged" in result.err or other), (name, result)
        if kind != "cv":  # which has taken up its folds before
            assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert refused > 0.6 * tried


def test_crafted_folds(call, copy, made):
    from screenpath.store.archive import load_archive, save_archive

    refused, tried = 0, 0
    for fold in ("0-0.npz", "0-1.npz"):  # finished, and under way
        for name, arrays in crafted(load_archive(made / "folds-cv/parts.partial/0" / fold), random.Random(fold)):
            folder = copy("folds-cv")
            save_archive(folder / "parts.partial/0" / fold, arrays)
            result = call(*COMMANDS["cv"], "-o", "t", "--resume")
            tried += 1
            refused += result.code
            assert result.code == 0 or (one_error(result) and f"{fold} is" in result.err), (name, result)
            assert result.code == 0 or "remove it" in result.err
    assert refused > 0.6 * tried


@pytest.mark.parametrize("name", ["checkpoint.npz", "parts.partial/0/0-0.npz"])
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 300, -1])
def test_truncated_archives(call, copy, name, size):
    folder = copy("cut-cv")
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:size])
    result = call(*COMMANDS["cv"], "-o", "t", "--resume")
    assert one_error(result) and f"{name} is damaged" in result.err


def test_pickles_are_not_opened(call, copy, monkeypatch):
    from screenpath.store import archive

    folder = copy("cut-csv")
    whole, plain = archive.load_archive(folder / "checkpoint.npz"), np.lib.format.write_array
    for name in ("tally", "state-w"):
        with monkeypatch.context() as patch:
            patch.setattr(np.lib.format, "write_array", lambda f, a, allow_pickle: plain(f, a, allow_pickle=True))
            archive.save_archive(folder / "checkpoint.npz", {**whole, name: np.array([Bomb()], dtype=object)})
        result = call(*COMMANDS["csv"], "-o", "t", "--resume")
        assert one_error(result) and "checkpoint.npz is damaged" in result.err
    assert not os.path.exists("exploded")


@pytest.mark.parametrize(
    ("name", "theirs", "file"),
    [
        ("cut-csv", "cut-npz", "checkpoint.npz"), ("cut-csv", "cut-kernel", "checkpoint.npz"),
        ("killed-csv", "killed-chunk", "progress.partial"), ("cut-csv", "killed-csv", "checkpoint.npz"),
    ],
)  # fmt: skip
def test_files_of_other_runs(call, copy, made, name, theirs, file):
    folder = copy(name)
    shutil.copy(made / theirs / file, folder / file)
    if file == "checkpoint.npz":
        assert one_error(call(*COMMANDS["csv"], "-o", "t", "--resume"))
    else:
        assert all(one_error(result) for result in read(call, "t"))


def test_folds_of_another_run(call, copy, made, tmp_path):
    """The same folds and grid of other data: their scores would be taken for those of this run."""
    (tmp_path / "other").write_text(libsvm_text(*clouds(n=60, seed=5)))
    assert call(*(word.replace("data", "other") for word in COMMANDS["cv"]), "-o", "o").code == 0
    with pytest.MonkeyPatch.context() as patch:
        stop_among_folds(patch)
        words = [word.replace("data", "other") for word in COMMANDS["cv"]]
        assert call(*words, "-o", "o", "--force").code == 143
    folder = copy("folds-cv")
    shutil.copy(tmp_path / "o/parts.partial/0/0-0.npz", folder / "parts.partial/0/0-0.npz")
    result = call(*COMMANDS["cv"], "-o", "t", "--resume")
    assert one_error(result) and "0-0.npz is that of another run" in result.err


def test_compressed_parts_of_an_archive_are_refused_before_they_unfold(tmp_path):
    """Ours are stored as they are: a small file holds no large array."""
    from screenpath.store.archive import read_npz, save_archive

    save_archive(tmp_path / "ours.npz", {"a": np.zeros(3), "empty": np.zeros(0)})
    assert read_npz(tmp_path / "ours.npz")["a"].tolist() == [0.0, 0.0, 0.0]
    np.savez_compressed(tmp_path / "other.npz", a=np.zeros(1 << 20))
    with pytest.raises(ValueError, match="compressed, as none of ours is"):
        read_npz(tmp_path / "other.npz")


def test_parts_of_an_archive_that_share_their_bytes_are_refused(tmp_path):
    """Many entries of the list may name the same bytes: a small file then holds any number of large parts."""
    from screenpath.store.archive import read_npz

    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        with file.open("a.npy", "w") as member:
            np.save(member, np.zeros(1000))
        for k in range(50):
            file.filelist.append(one := copy_of(file.getinfo("a.npy")))
            one.filename = f"b{k}.npy"
        file._didModify = True
    with pytest.raises(ValueError, match="its parts are more than the file"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize(("part", "how"), [("indptr", zipfile.ZIP_DEFLATED), ("data", zipfile.ZIP_LZMA)])
def test_coefficients_unfold_to_no_more_than_the_steps_have(call, copy, part, how):
    folder, size = copy("whole-npz"), 1 << 21
    with np.load(folder / "coefficients.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays[part] = np.concatenate([arrays[part], np.full(size, arrays[part][-1])])
    arrays["shape"] = np.array([arrays["indptr"].size - 1, arrays["shape"][1]])
    with zipfile.ZipFile(folder / "coefficients.npz", "w", how) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array)
    assert (folder / "coefficients.npz").stat().st_size < size // 8
    reseal(folder)
    result = call("predict", "t", "data", "--step", "0")
    why = "more than the run's steps have" if part == "indptr" else "compressed in a way that runs do not use"
    assert one_error(result) and why in result.err
