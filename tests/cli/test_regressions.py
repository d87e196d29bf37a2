"""The commands lad, quantile and svr, and weights on the command line."""

from screenpath.cli.app import run

GRID = ["--grid", "4", "--scale", "standard", "--quiet", "-o", "-"]


def test_bad_weights_are_named(samples, tmp_path, capsys):
    data = str(samples / "breast_cancer.libsvm")
    path = tmp_path / "weights.txt"

    def message(*extra):
        code = run(["svm", data, *GRID, *extra])
        return code, capsys.readouterr().err

    assert message("--weights", str(tmp_path / "absent"))[0] == 1
    path.write_text("1\nx\n")
    code, text = message("--weights", str(path))
    assert code == 1 and "line 2" in text and "'x'" in text
    path.write_text("1\n2\n")
    code, text = message("--weights", str(path))
    assert code == 1 and f"{path}: 2 weights for 569 samples" in text
    for given in ("1", "1=x", "=1"):
        code, text = message("--class-weight", given)
        assert code == 2 and "not LABEL=WEIGHT" in text
    assert "twice" in message("--class-weight", "1=2", "--class-weight", "1=3")[1]
    code, text = message("--class-weight", "9=1")
    assert code == 2 and "no sample has the label 9; the labels are 0, 1\n  name one of these" in text
    code, text = message("--class-weight", "yes=3")
    assert code == 2 and "--class-weight yes: the labels of the data are numbers\n  name one of them" in text
    code, text = message("--class-weight", "0=-3")
    assert code == 2 and "the weight of label 0 must be from 0 to 1e+100, not -3.0\n  1 leaves" in text


def test_bad_levels_are_usage_errors(samples, capsys):
    data = str(samples / "diabetes.libsvm")
    assert run(["quantile", data, "--tau", "1.2", *GRID]) == 2
    assert "between 0 and 1" in capsys.readouterr().err
    assert run(["svr", data, "--epsilon", "-1", *GRID]) == 2
    assert "at least 0" in capsys.readouterr().err
