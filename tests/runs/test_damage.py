"""Damaged run folders: whoever reads one says so in one clear error, or nothing that it writes differs.

Folders of finished runs, of interrupted ones and of killed ones are damaged at random (bits, bytes, digits, lost ends,
files of other runs), and on purpose: entries of the wrong kind behind hashes that fit.
"""

import json
import os
import random
import shutil
import signal

import numpy as np
import pytest

from screenpath.cli.app import run as screenpath
from screenpath.cv import saved
from screenpath.report.console import Console
from screenpath.runs import folder as folders
from tests.cli.conftest import call, clouds, libsvm_text, without_times  # noqa: F401 (a fixture)
from tests.run_folders import reseal, unsealed

GRID = ("--grid", "6", "--cmax", "1", "--bias", "1", "--quiet")
COMMANDS = {
    "csv": ("svm", "data", *GRID),
    "npz": ("svm", "data", *GRID, "--coefficients", "npz", "--format", "json", "--test", "data"),
    "kernel": ("svm", "data", "--kernel", "rbf", *GRID),
    "l1": ("l1svm", "data", "--grid", "5", "--quiet"),
    "sparse": ("sparse-svm", "data", "--betas", "2", "--alphas", "3", "--quiet"),
    "chunk": ("svm", "data", "--rule", "ssnsv", "--chunk", "3", *GRID),
    "cv": ("cv", "svm", "data", "--grid", "4", "--folds", "3", "--certify", "--quiet"),
    "proof": ("svm", "data", "--certificate", *GRID),
}
READERS = (
    ("predict", "RUN", "data", "--step", "0", "--decision"),
    ("export", "RUN", "--step", "2", "--to", "json", "-o", "-"),
    ("plot", "RUN", "--terminal"),
    ("plot", "RUN", "--terminal", "--kind", "coefficients"),
)
CUT = 2  # step behind which a signal stops a run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the data and, of every command, a run that is whole, a stopped one and a killed one."""
    where, patch = tmp_path_factory.mktemp("damage"), pytest.MonkeyPatch()
    (where / "data").write_text(libsvm_text(*clouds(n=60)))
    patch.chdir(where)
    for module in (folders, saved):
        patch.setattr(module, "EVERY", 0.0)  # a checkpoint a step
    patch.setattr(saved, "SHARE", 1e9)

    def stop(self, done):
        if done.step == CUT:
            signal.raise_signal(signal.SIGTERM)

    for name, command in COMMANDS.items():
        assert screenpath([*command, "-o", f"whole-{name}"]) == 0
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Console, "advance", stop)
            assert screenpath([*command, "-o", f"cut-{name}"]) == 143
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(folders.RunFolder, "finish", lambda self, record, skipped: None)
            assert screenpath([*command, "-o", f"killed-{name}"]) == 0
    with pytest.MonkeyPatch.context() as inner:
        stop_among_folds(inner)
        assert screenpath([*COMMANDS["cv"], "-o", "folds-cv"]) == 143
    yield where
    patch.undo()


def stop_among_folds(patch) -> None:
    """Have a signal sent in the second of the folds."""
    plain, calls = saved.FoldFile.save, []

    def save(self, *arguments):
        plain(self, *arguments)
        calls.append(self)
        if len(calls) == 6:
            signal.raise_signal(signal.SIGTERM)

    patch.setattr(saved.FoldFile, "save", save)


@pytest.fixture
def copy(made, tmp_path, call):  # noqa: F811
    """Return a function that copies a run folder to the name ``t``; the current folder has the data."""
    os.symlink(made / "data", tmp_path / "data")

    def function(name):
        shutil.rmtree(tmp_path / "t", ignore_errors=True)
        shutil.copytree(made / name, tmp_path / "t")
        return tmp_path / "t"

    return function


def read(call, name, commands=READERS):  # noqa: F811
    """Return code, output and messages of the commands that read a run folder."""
    return [call(*(name if word == "RUN" else word for word in words)) for words in commands]


def one_error(result) -> bool:
    """Tell whether a call ended with one message that says what to do."""
    lines = result.err.strip().splitlines()
    return result.code == 1 and result.out == "" and result.err.count("error:") == 1 and len(lines) == 2


def content(folder) -> dict:
    """Return what a run has written, without what measures time."""
    found = {}
    for path in (path for path in sorted(folder.rglob("*")) if path.is_file()):
        name = str(path.relative_to(folder))
        if name.startswith(("steps", "folds.")):
            found[name] = without_times(path)
        elif name in ("run.json", "cv.json"):
            record = json.loads(path.read_text())
            names = [n for n in record if n not in ("seconds", "files", "sha256", "totals", "command", "options")]
            found[name] = {n: record[n] for n in names}
        else:
            found[name] = path.read_bytes()
    for record in (found[name] for name in ("run.json",) if name in found):
        record.pop("kernel", None)  # its seconds
    return found


def test_a_changed_byte_of_the_certificate_is_noticed(call, copy):  # noqa: F811
    """Of a finished run by every reader and --resume; of a stopped one by --resume, before it changes anything."""
    rng = random.Random(0)
    for name in ("whole-proof", "cut-proof", "killed-proof"):
        folder = copy(name)
        (file,) = folder.glob("certificate.bin*")
        data = bytearray(file.read_bytes())
        data[rng.randrange(len(data) // 2)] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        found = [call(*COMMANDS["proof"], "-o", "t", "--resume"), call("verify", "t")]
        found += [] if name == "killed-proof" else [*read(call, "t"), call("report", "t", "-o", "report.html")]
        assert name == "killed-proof" or "certificate.bin" in json.loads(before["run.json"])["files"]
        for result in found:
            assert one_error(result) and "certificate.bin" in result.err, (name, result)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / file.name).unlink()
    assert "cannot be continued" in call(*COMMANDS["proof"], "-o", "t", "--resume").err


# -- a changed digit -------------------------------------------------------------------------------------------------


def change_digit(file, rng=random) -> None:
    """Change one digit of a text file to another one."""
    data = bytearray(file.read_bytes())
    at = rng.choice([k for k, byte in enumerate(data) if chr(byte).isdigit() and k > data.find(b"\n")])
    data[at] = ord("0") + (data[at] - ord("0") + rng.randrange(1, 10)) % 10
    file.write_bytes(data)


WHOLE = [("csv", name) for name in ("steps.csv", "coefficients.csv", "run.json")]
WHOLE += [("proof", "steps.csv"), ("proof", "run.json")]
WHOLE += [("cv", name) for name in ("cv.csv", "cv.json", "folds.csv", "bounds.csv")] + [("npz", "steps.json")]


@pytest.mark.parametrize(("kind", "name"), WHOLE)
def test_a_changed_digit_is_noticed(call, copy, kind, name):  # noqa: F811
    """By every command that reads a finished run, and by --resume."""
    rng = random.Random(name)
    for _ in range(3):
        folder = copy(f"whole-{kind}")
        change_digit(folder / name, rng)
        found = [*read(call, "t"), call("report", "t", "-o", "report.html")]
        found.append(call(*COMMANDS[kind], "-o", "t", "--resume"))
        for result in found:
            assert one_error(result), result
            assert name in result.err and "damaged" in result.err and "--force" in result.err
    assert not os.path.exists("report.html")


@pytest.mark.parametrize("name", ["steps.csv.partial", "coefficients.csv.partial", "progress.partial"])
def test_a_changed_digit_of_a_killed_run_is_noticed(call, copy, name):  # noqa: F811
    folder = copy("killed-csv")
    if name.startswith("progress"):  # of which the last line counts
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"\n" + lines[-1])
    change_digit(folder / name, random.Random(name))
    for result in read(call, "t"):
        assert one_error(result) and name in result.err and "damaged" in result.err, result


def test_blanks_and_order_of_the_record_do_not_matter(call, copy):  # noqa: F811
    folder = copy("whole-csv")
    expected = read(call, "t")
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(dict(reversed(record.items())), indent=3))
    assert read(call, "t") == expected


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("state", ["whole", "cut", "killed"])
def test_folders_without_hashes_are_read(call, copy, kind, state):  # noqa: F811
    """Version 0.1.0 wrote none: what it left is read as it was then."""
    folder = copy(f"{state}-{kind}")
    expected = read(call, "t")
    assert all(result.code == 0 for result, words in zip(expected, READERS, strict=True) if words[0] != "export")
    for name in ("progress.partial", "checkpoint.npz"):
        (folder / name).unlink(missing_ok=True)
    unsealed(folder)
    assert read(call, "t") == expected
    result = call(*COMMANDS[kind], "-o", "t", "--resume")
    assert result.code == 1 and "schema version 1" in result.err and "--force" in result.err


# -- damage at random ------------------------------------------------------------------------------------------------


def mutate(rng, folder, others) -> str:
    """Damage one file of a folder; return what was done."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = rng.choice(files)
    data, how = (
        bytearray(file.read_bytes()),
        rng.choice(("bit", "byte", "digit", "end", "more", "swap", "other", "lost")),
    )
    at = rng.randrange(len(data))
    if how == "bit":
        data[at] ^= 1 << rng.randrange(8)
    elif how == "byte":
        data[at] = rng.randrange(256)
    elif how == "digit" and any(chr(byte).isdigit() for byte in data):
        at = rng.choice([k for k, byte in enumerate(data) if chr(byte).isdigit()])
        data[at] = ord("0") + (data[at] - ord("0") + rng.randrange(1, 10)) % 10
    elif how == "end":
        del data[at:]
    elif how == "more":
        data += rng.randbytes(rng.randrange(1, 40))
    elif how == "swap":
        data = rng.choice(files).read_bytes()
    elif how == "other":
        theirs = rng.choice(others) / file.relative_to(folder)
        data = theirs.read_bytes() if theirs.is_file() else data
    file.write_bytes(data)
    if how == "lost":
        file.unlink()
    return f"{how} {file.name}"


def fewer(how: str, result) -> bool:
    """Tell whether an unfinished run has lost the ends of what it had, and is read up to there."""
    return "progress.partial" in how and ("unfinished run" in result.err or "no solution of step" in result.err)


@pytest.mark.parametrize("seed", range(4))
def test_damage_at_random_is_noticed_or_harmless(call, copy, made, seed):  # noqa: F811
    """Some 200 damaged folders: predict, export and plot end with one error, or write what they wrote before."""
    rng, expected = random.Random(seed), {}
    names = sorted(path.name for path in made.iterdir() if path.is_dir())
    noticed = 0
    for _ in range(50):
        name = rng.choice(names)
        folder = copy(name)
        if name not in expected:
            expected[name] = [(result.code, result.out) for result in read(call, "t")]
        how = mutate(rng, folder, [made / other for other in names])
        for result, before in zip(read(call, "t"), expected[name], strict=True):
            lost = "lost" in how and result.code == 2 and "error:" in result.err
            assert one_error(result) or (result.code, result.out) == before or fewer(how, result) or lost, (
                name, how, result,
            )  # fmt: skip
            noticed += result.code == 1
    assert noticed > 50


@pytest.mark.parametrize("seed", range(4))
def test_resume_of_damaged_folders(call, copy, made, seed):  # noqa: F811
    """Some 80 damaged folders: --resume ends with one error, or with the numbers of a run that was left alone."""
    rng, codes = random.Random(100 + seed), []
    names = sorted(path.name for path in made.iterdir() if path.is_dir() and not path.name.startswith("whole"))
    for _ in range(20):
        name = rng.choice(names)
        kind = name.split("-")[1]
        folder = copy(name)
        how = mutate(rng, folder, [made / other for other in names])
        result = call(*COMMANDS[kind], "-o", "t", "--resume")
        assert one_error(result) or (result.code == 0 and content(folder) == content(made / f"whole-{kind}")), (
            name, how, result,
        )  # fmt: skip
        codes.append(result.code)
    assert len(set(codes)) == 2


def test_resume_takes_up_what_was_not_damaged(call, copy, made):  # noqa: F811
    """The other side of the tests above: every folder is continued to the same files."""
    for name in (path.name for path in made.iterdir() if path.is_dir()):
        kind = name.split("-")[1]
        folder = copy(name)
        result = call(*COMMANDS[kind], "-o", "t", "--resume")
        assert result.code == 0 and content(folder) == content(made / f"whole-{kind}"), (name, result)


# -- entries of the wrong kind, behind hashes that fit ---------------------------------------------------------------

STRANGE = (
    None, True, -1, 0, 3.5, 10**400, 2**70, 1e308, -1e-300, "", "x", "\x1b[2J", "../../etc/passwd", "\ud800", [], {},
    [None], ["step"], [1e308] * 3, {"+1": "x", "-1": []}, {"classes": [2, 1]}, {"classes": "ab"}, [[[[]]]],
)  # fmt: skip


def places(value, path=()):
    """Yield where a JSON value has entries."""
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(min(len(value), 3)):
            yield (*path, key)
            yield from places(value[key], (*path, key))


def put(value, path, new) -> None:
    """Change an entry of a JSON value."""
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = new


@pytest.mark.parametrize("kind", ["csv", "kernel", "cv"])
@pytest.mark.parametrize("seals", [True, False])
def test_crafted_records(call, copy, kind, seals):  # noqa: F811
    """Every entry of run.json takes strange values: one error each, or it is none that is read."""
    rng, folder, refused = random.Random(kind), copy(f"whole-{kind}"), 0
    whole = (folder / "run.json").read_text()
    reseal(folder) if seals else unsealed(folder)
    record = json.loads((folder / "run.json").read_text())
    for path in places(record):
        if path[0] in ("sha256", "identity") or path[:1] == ("files",):
            continue
        for new in rng.sample(STRANGE, 2):
            (folder / "run.json").write_text(whole)
            if not seals:
                unsealed(folder)
                changed = json.loads((folder / "run.json").read_text())
                put(changed, path, new)
                (folder / "run.json").write_text(json.dumps(changed))
            else:
                reseal(folder, lambda record, path=path, new=new: put(record, path, new))
            for result in read(call, "t", READERS[2:3] if kind == "cv" else READERS[:1]):
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
def test_crafted_lists_of_files(call, copy, files):  # noqa: F811
    folder = copy("whole-csv")
    reseal(folder, lambda record: record.update(files=files))
    for result in read(call, "t"):
        assert one_error(result) and "damaged" in result.err, result


def test_a_record_without_its_hash_is_refused(call, copy):  # noqa: F811
    """What had hashes when it was written is not read as if it were older."""
    folder = copy("whole-csv")
    record = json.loads((folder / "run.json").read_text())
    for name in ("sha256", "files"):
        (folder / "run.json").write_text(json.dumps({n: v for n, v in record.items() if n != name}))
        assert all(one_error(result) for result in read(call, "t"))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schema_version": 2, "a": NaN}', '{"schema_version": true}', "\xff"])
def test_records_that_are_no_json(call, copy, text):  # noqa: F811
    folder = copy("whole-csv")
    (folder / "run.json").write_bytes(text.encode("latin-1"))
    for result in [*read(call, "t"), call(*COMMANDS["csv"], "-o", "t", "--resume")]:
        assert one_error(result) and "run.json is damaged" in result.err


def test_crafted_cross_validations(call, copy):  # noqa: F811
    """Every entry of cv.json takes strange values."""
    rng, folder, refused = random.Random(1), copy("whole-cv"), 0
    record = json.loads((folder / "cv.json").read_text())
    for path in places(record):
        for new in rng.sample(STRANGE, 5):
            changed = json.loads(json.dumps(record))
            put(changed, path, new)
            (folder / "cv.json").write_text(json.dumps(changed))
            reseal(folder)
            (result,) = read(call, "t", [("plot", "RUN", "--terminal", "--kind", "cv")])
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
def test_crafted_step_tables(call, copy, change, seals):  # noqa: F811
    folder = copy("whole-csv")
    text = (folder / "steps.csv").read_text()
    assert change(text) != text
    (folder / "steps.csv").write_text(change(text))
    reseal(folder) if seals else unsealed(folder)
    for result in read(call, "t"):
        assert one_error(result) and "steps.csv is damaged" in result.err, result


@pytest.mark.parametrize("cell", [True, "x", [1], {"a": 1}, 1e400, "1"])
def test_crafted_cells_of_json_tables(call, copy, cell):  # noqa: F811
    folder = copy("whole-npz")
    table = json.loads((folder / "steps.json").read_text())
    table["steps"][1]["primal"] = cell
    (folder / "steps.json").write_text(json.dumps(table))
    reseal(folder)
    found = read(call, "t")
    assert all(one_error(result) for result in found) or cell == "1"


@pytest.mark.parametrize("line", ["0,1,1e999", "0,1", "0,1e300,1", "0,-1,1", "0,1,nan", "1,1,0.5", "0,1,1,1", "a,b,c"])
def test_crafted_coefficients(call, copy, line):  # noqa: F811
    """Also a line that stands there twice: the two must not be added up."""
    folder = copy("whole-csv")
    with open(folder / "coefficients.csv", "a") as file:
        file.write(line + "\n")
    reseal(folder)
    result = call("predict", "t", "data", "--step", "0")
    assert one_error(result) and "coefficients.csv is damaged" in result.err


class Bomb:
    """Makes a file when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("exploded",)


def crafted_matrices(good: dict):
    """Yield matrices that are none."""
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


def test_crafted_npz_coefficients(call, copy):  # noqa: F811
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
    """Yield the arrays of an archive with one of them changed."""
    for name, array in arrays.items():
        changes = [array[..., None], array.astype("S3"), array.astype(bool), np.zeros((2, 3)), np.array(np.nan)]
        if array.ndim:
            changes += [array[:-1], np.append(array, array), array[:0]] if array.size else [np.zeros(5)]
        if array.dtype.kind == "f" and array.size:
            changes += [array * np.nan, np.full_like(array, np.inf), -1.0 - np.abs(array), array + 1e300]
        if array.dtype.kind == "i":
            changes += [array - 100, array + 100]
        for new in rng.sample(changes, min(2, len(changes))):
            yield name, {**arrays, name: new}
        yield name, {other: value for other, value in arrays.items() if other != name}


@pytest.mark.parametrize("kind", [kind for kind in COMMANDS])
def test_crafted_checkpoints(call, copy, made, kind):  # noqa: F811
    """Arrays of another kind or length, lost ones, nan, infinity: one error, or the numbers are the same."""
    from screenpath.runs.archive import load_archive, save_archive

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


def test_crafted_folds(call, copy, made):  # noqa: F811
    from screenpath.runs.archive import load_archive, save_archive

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
def test_truncated_archives(call, copy, name, size):  # noqa: F811
    folder = copy("cut-cv")
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:size])
    result = call(*COMMANDS["cv"], "-o", "t", "--resume")
    assert one_error(result) and f"{name} is damaged" in result.err


def test_pickles_are_not_opened(call, copy, monkeypatch):  # noqa: F811
    from screenpath.runs import archive

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
def test_files_of_other_runs(call, copy, made, name, theirs, file):  # noqa: F811
    folder = copy(name)
    shutil.copy(made / theirs / file, folder / file)
    if file == "checkpoint.npz":
        assert one_error(call(*COMMANDS["csv"], "-o", "t", "--resume"))
    else:
        assert all(one_error(result) for result in read(call, "t"))


def test_folds_of_another_run(call, copy, made, tmp_path):  # noqa: F811
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


def test_a_report_says_that_coefficients_are_gone(call, copy):  # noqa: F811
    """A large table may be removed: what can do without it does, and says so."""
    (copy("whole-csv") / "coefficients.csv").unlink()
    result = call("report", "t", "-o", "-")
    assert result.code == 0 and all("t has lost its coefficients.csv" in text for text in (result.out, result.err))
    assert one_error(call("export", "t", "--step", "2", "--to", "json", "-o", "-"))
