"""``screenpath inspect``."""

import shlex
import shutil

import numpy as np
import pytest

from screenpath.cli.app import run
from tests import shard_folders


def test_a_good_file(samples, capsys):
    assert run(["inspect", str(samples / "breast_cancer.libsvm")]) == 0
    out = capsys.readouterr().out
    assert "569" in out and "30" in out and "2 (0: 212, 1: 357)" in out and "column 24" in out


def test_regression_targets(samples, capsys):
    assert run(["inspect", str(samples / "diabetes.libsvm")]) == 0
    out = capsys.readouterr().out
    assert "regression: min 25, median 140.5, max 346" in out and "labels" not in out


def test_all_faults_are_shown_and_exit_code_is_1(samples, capsys):
    path = str(samples / "malformed" / "several.libsvm")
    assert run(["inspect", path]) == 1
    out = capsys.readouterr().out
    assert [f"line {k}:" in out for k in (2, 3, 4, 5, 6)] == [True, False, True, True, False]
    assert run(["inspect", path, "--max-faults", "1"]) == 1
    assert "stopped at 1 faults" in capsys.readouterr().out


def test_numbering_follows_the_file(tmp_path, capsys):
    path = tmp_path / "zero.libsvm"
    path.write_text("1 0:5\n-1 1:-7\n")
    assert run(["inspect", str(path), "--zero-based"]) == 0
    assert "column 1" in (out := capsys.readouterr().out) and "column 0" in out and "column 2" not in out


def test_nothing_readable(samples, capsys):
    assert run(["inspect", str(samples / "malformed" / "numbers.csv")]) == 1
    assert "no sample without fault" in capsys.readouterr().out
    assert run(["inspect", "absent.libsvm"]) == 1
    assert "no such file" in capsys.readouterr().err


def test_huge_and_empty_columns(tmp_path, capsys):
    path = tmp_path / "wide.libsvm"
    path.write_text("1 3:1e308 800000000000:5\n-1 3:-1e308\n")
    assert run(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "799,999,999,998 (799,999,999,998 without a value)" in out and "column 800000000000" in out
    path.write_text("1\n-1\n")
    assert run(["inspect", str(path)]) == 0
    assert "1 (1 without a value)" in capsys.readouterr().out


@pytest.fixture
def shards(samples, tmp_path, monkeypatch, capsys):
    """A folder of many shards."""
    monkeypatch.setattr("screenpath.data.shards.convert.BLOCK", 1 << 11)
    from screenpath.data.shards.convert import convert

    return convert([samples / "breast_cancer.libsvm"], tmp_path / "shards", block_mb=16 / 1024).path


@pytest.mark.parametrize("name", ["breast_cancer.libsvm", "diabetes.libsvm"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_shard_folder_has_the_facts_of_its_text(samples, tmp_path, monkeypatch, capsys, name, storage):
    monkeypatch.setattr("screenpath.data.shards.convert.BLOCK", 1 << 11)
    assert run(["convert", str(samples / name), str(tmp_path / "s"), "--storage", storage, "--quiet"]) == 0
    assert run(["inspect", str(samples / name)]) == 0
    text = capsys.readouterr().out.split("\n", 1)[1]
    assert run(["inspect", str(tmp_path / "s")]) == 0
    assert capsys.readouterr().out.split("\n", 1)[1] == text


def test_every_fault_of_a_shard_folder_is_shown(shards, capsys):
    shard_folders.flip(shards / "000001-dense.npy", 500)
    (shards / "000002-targets.npy").unlink()
    shard_folders.edit(shards, 3, "targets", lambda array: array + np.inf)
    assert run(["inspect", str(shards)]) == 1
    out = capsys.readouterr().out
    for words in (
        "000001-dense.npy is missing or damaged: its content is not what was written",
        "000002-targets.npy is missing or damaged: No such file",
        "000003-targets.npy is missing or damaged: its content is not what was written",
        "000003-targets.npy is missing or damaged: it holds nan or infinity",
    ):
        assert words in out
    assert out.count("fault:") == 4 and "convert the text again, with --force" in out
    rows = 569 - sum(shard_folders.read(shards)["shards"][k]["rows"] for k in (1, 2, 3))
    assert f"samples           {rows}" in out
    assert run(["inspect", str(shards), "--max-faults", "2"]) == 1
    assert "stopped at 2 faults" in capsys.readouterr().out


def test_faults_of_meta_json_are_shown(shards, capsys):
    meta = shard_folders.read(shards)
    shard_folders.write(shards, {**meta, "n": 5, "dtype": "x", "notices": 3}, crc=False)
    assert run(["inspect", str(shards)]) == 1
    out = capsys.readouterr().out
    assert all(words in out for words in ("CRC-32", "'dtype' is missing or no value", "'notices' is missing"))
    shard_folders.write(shards, {**meta, "labels": {"0": 569}})
    assert run(["inspect", str(shards)]) == 1
    assert "the counts of the labels are not those of the rows" in capsys.readouterr().out
    shutil.copy(shards / "000000-dense.npy", shards / "meta.json")
    assert run(["inspect", str(shards)]) == 1
    assert "meta.json is damaged" in capsys.readouterr().err


def test_shard_folders_and_indices(shards, capsys):
    assert run(["inspect", str(shards), "--zero-based"]) == 2
    assert "converted with indices from 1" in capsys.readouterr().err
    assert run(["inspect", str(shards.parent)]) == 1
    assert "not one of shards" in capsys.readouterr().err


def test_wide_shards_have_no_dense_vectors(tmp_path, capsys):
    (tmp_path / "a").write_text("1 3:1e308 800000000000:5\n-1 3:-1e308\n")
    (tmp_path / "b").write_text("1 3:1 5:0\n-1\n")
    assert run(["convert", str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "s"), "--quiet"]) == 0
    assert run(["inspect", str(tmp_path / "s")]) == 0
    out = capsys.readouterr().out
    assert "799,999,999,998 (799,999,999,997 without a value)" in out and "column 800000000000 0 to 5" in out
    assert "-1e+308 to 1e+308" in out and "inf" not in out


def test_a_narrow_terminal_gets_shorter_ranges_and_a_folded_command(call, tmp_path, monkeypatch):
    kinds = ["a rather long value", "another long value", "the longest value of them all"]
    rows = "".join(f"{k},{kinds[k % 3]},{'yn'[k % 2]}\n" for k in range(40))
    (tmp_path / "t.csv").write_text(f"number,kind_of_the_thing,bought\n{rows}")
    wide = call("inspect", "t.csv").out
    assert "the target is a guess" in wide and "\\\n" not in wide
    monkeypatch.setattr("screenpath.cli.files._width", lambda: 80)
    narrow = call("inspect", "t.csv").out
    assert max(map(len, narrow[narrow.index("\ncolumn ") :].splitlines())) <= 80 and "..." in narrow
    command = narrow.partition("type\n")[2]
    assert "\\\n" in command and shlex.split(command.replace("\\\n", "")) == shlex.split(wide.splitlines()[-1])
    assert "the target is a guess" not in call("inspect", "t.csv", "--target", "bought").out
