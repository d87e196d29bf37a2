"""``screenpath inspect``."""

from screenpath.cli.app import run


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
