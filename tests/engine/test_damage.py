"""Damaged run folders: whoever reads one says so in one clear error, or nothing that it writes differs.

Folders of finished runs, of interrupted ones and of killed ones are damaged at random: bits, bytes, digits, lost ends,
files of other runs.
"""

import contextlib
import json
import os
import random

import pytest

from tests.engine.damaged import COMMANDS, READERS, content, one_error, read
from tests.run_folders import reseal, unsealed
from tests.safety.fuzz_artefacts import damage
from tests.width import wide


def test_a_changed_byte_of_the_certificate_is_noticed(call, copy):
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
    """Change one digit of a text file to another one, and with it what the file says.

    Another seventeenth digit of a number may be the same number.
    """
    data = file.read_bytes()
    at = [k for k, byte in enumerate(data) if chr(byte).isdigit() and k > data.find(b"\n")]
    while said(file) == said(file, data):
        changed, k = bytearray(data), rng.choice(at)
        changed[k] = ord("0") + (data[k] - ord("0") + rng.randrange(1, 10)) % 10
        file.write_bytes(changed)


def said(file, data=None):
    """Return what the bytes of a file say: the values of a JSON file, else the bytes."""
    data = file.read_bytes() if data is None else data
    try:
        return json.loads(data) if file.suffix == ".json" else data
    except ValueError:  # a number with a zero in front
        return data


WHOLE = [("csv", name) for name in ("steps.csv", "coefficients.csv", "run.json")]
WHOLE += [("proof", "steps.csv"), ("proof", "run.json")]
WHOLE += [("cv", name) for name in ("cv.csv", "cv.json", "folds.csv", "bounds.csv")] + [("npz", "steps.json")]


@pytest.mark.parametrize(("kind", "name"), WHOLE)
def test_a_changed_digit_is_noticed(call, copy, kind, name):
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
def test_a_changed_digit_of_a_killed_run_is_noticed(call, copy, name):
    folder = copy("killed-csv")
    if name.startswith("progress"):  # of which the last line counts
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"\n" + lines[-1])
    change_digit(folder / name, random.Random(name))
    for result in read(call, "t"):
        assert one_error(result) and name in result.err and "damaged" in result.err, result


def test_blanks_and_order_of_the_record_do_not_matter(call, copy):
    folder = copy("whole-csv")
    expected = read(call, "t")
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(dict(reversed(record.items())), indent=3))
    assert read(call, "t") == expected


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("state", ["whole", "cut", "killed"])
def test_folders_without_hashes_are_read(call, copy, kind, state):
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


def fewer(how: str, result) -> bool:
    """Tell whether an unfinished run has lost the ends of what it had, and is read up to there."""
    return how.endswith(("progress.partial", "run.json")) and (
        "unfinished run" in result.err or "no solution of step" in result.err
    )


@pytest.mark.parametrize("name", ["folds.csv", "cv.json"])
def test_a_table_of_the_folds_that_is_lost_is_said_first(call, copy, name):
    """Also of an unfinished run, of which there is something else to be said."""
    for kind in ("cut-cv", "whole-cv"):
        (copy(kind) / name).unlink()
        result = call("show", "t")
        assert one_error(result) and f"there is no {name}" in result.err, (kind, result)


@pytest.mark.parametrize("seed", range(4))
def test_damage_at_random_is_noticed_or_harmless(call, copy, made, seed):
    """Many damaged folders: predict, export and plot end with one error, or write what they wrote before."""
    rng, expected = random.Random(seed), {}
    names = sorted(path.name for path in made.iterdir() if path.is_dir())
    noticed, count = 0, wide(10, 500)
    for _ in range(count):
        name = rng.choice(names)
        folder = copy(name)
        if name not in expected:
            expected[name] = [(result.code, result.out) for result in read(call, "t")]
        how = damage(rng, folder)
        for result, before in zip(read(call, "t"), expected[name], strict=True):
            lost = "damage_file" in how and result.code == 2 and "error:" in result.err
            lost = lost or (result.code == 0 and "has lost its coefficients" in result.err)
            assert one_error(result) or (result.code, result.out) == before or fewer(how, result) or lost, (
                name, how, result,
            )  # fmt: skip
            noticed += result.code == 1
    assert noticed > count


def test_what_somebody_made_up_crashes_no_reader(call, copy, made):
    """Damage behind hashes that fit: results may differ, and each command ends in its own words."""
    rng, names = random.Random(7), sorted(path.name for path in made.iterdir() if path.is_dir())
    for _ in range(wide(20, 1000)):
        folder = copy(rng.choice(names))
        how = damage(rng, folder)
        with contextlib.suppress(ValueError, OSError, RecursionError, KeyError, TypeError):
            reseal(folder)
        for result in read(call, "t"):
            assert result.code in (0, 1, 2) and (result.code == 0 or "error: " in result.err), (how, result)


@pytest.mark.parametrize("seed", range(4))
def test_resume_of_damaged_folders(call, copy, made, seed):
    """Many damaged folders: --resume ends with one error, or with the numbers of a run that was left alone."""
    rng, codes = random.Random(100 + seed), []
    names = sorted(path.name for path in made.iterdir() if path.is_dir() and not path.name.startswith("whole"))
    for _ in range(wide(10, 200)):
        name = rng.choice(names)
        kind = name.split("-")[1]
        folder = copy(name)
        how = damage(rng, folder)
        if any(path.is_dir() and path.name != "parts.partial" for path in folder.iterdir()):
            continue  # a folder in the place of a file
        result = call(*COMMANDS[kind], "-o", "t", "--resume")
        assert one_error(result) or (result.code == 0 and content(folder) == content(made / f"whole-{kind}")), (
            name, how, result,
        )  # fmt: skip
        codes.append(result.code)
    assert len(set(codes)) == 2


def test_resume_takes_up_what_was_not_damaged(call, copy, made):
    """The other side of the tests above: every folder is continued to the same files."""
    for name in (path.name for path in made.iterdir() if path.is_dir()):
        kind = name.split("-")[1]
        folder = copy(name)
        result = call(*COMMANDS[kind], "-o", "t", "--resume")
        assert result.code == 0 and content(folder) == content(made / f"whole-{kind}"), (name, result)


def test_a_report_says_that_coefficients_are_gone(call, copy):
    """A large table may be removed: what can do without it does, and says so."""
    (copy("whole-csv") / "coefficients.csv").unlink()
    result = call("report", "t", "-o", "-")
    assert result.code == 0 and all("t has lost its coefficients.csv" in text for text in (result.out, result.err))
    assert one_error(call("export", "t", "--step", "2", "--to", "json", "-o", "-"))
