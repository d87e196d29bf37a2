"""runs: runs side by side on the terminal."""


def test_side_by_side(call, data):
    for name, model in (("a", "svm"), ("b", "l1svm")):
        assert call("cv", model, data, "--grid", 4, "--folds", 3, "-o", name, "-q").code == 0
    found = call("runs", "a", "b")
    assert found.code == 0 and found.err == ""
    assert "2 runs on the same 3 folds" in found.out and "+-" in found.out
    again = call("runs", "a", "b", "--step", "one-se", "--test", data)
    assert again.code == 0 and "the same 120 rows" in again.out


def test_refusals(call, data):
    assert call("svm", data, "--c", 1, "-o", "a", "-q").code == 0
    assert call("svm", data, "--c", 2, "-o", "b", "-q").code == 0
    assert call("runs").code == 2 and call("runs", "a").code == 2
    found = call("runs", "a", "b", "--step", 0)
    assert found.code == 2 and "nothing in common" in found.err and "--test FILE" in found.err and found.out == ""
    assert call("runs", "a", "nothing").code == 1
    assert "without --test" in call("runs", "a", "b").err
    assert call("runs", "a", "b", "--step", 0, "--test", "gone").code == 1
