"""From labels to numbers and signs, and back to their names."""

import json
import pickle

import numpy as np
import pytest

from screenpath.data.words.labels import binary_labels, label_cells, label_number, label_text, named, recoded
from screenpath.data.words.numerals import Spelled
from screenpath.data.words.tables import dump_json
from screenpath.errors import DataError, UsageError


def test_labels():
    assert binary_labels(np.array([2.0, 1.0, 2.0])).tolist() == [1, -1, 1]
    with pytest.raises(DataError, match=r"only one label: 3 \(2 samples\)"):
        binary_labels(np.array([3.0, 3.0]))
    with pytest.raises(DataError, match="two labels are needed, these are 3") as caught:
        binary_labels(np.arange(3.0))
    assert caught.value.message == "two labels are needed, these are 3: 0 (1 sample), 1 (1 sample), 2 (1 sample)"
    assert "y == LABEL" in caught.value.hint and "sparse_svm_path" in caught.value.hint
    with pytest.raises(DataError, match="`positive=.*sparse-svm"):
        binary_labels(np.arange(3.0), source="data.libsvm")


def test_labels_that_are_texts_are_numbers_with_a_name():
    low, high = named([0.0, 1.0], ("no", "yes"))
    assert low == 0.0 and float(high) == 1.0 and (label_text(low), f"{high:g}", label_text(2.0)) == ("no", "yes", "2")
    assert pickle.loads(pickle.dumps(high)).name == "yes"
    assert json.loads(dump_json({"a": [low, high], "b": 1.0})) == {"a": ["no", "yes"], "b": 1.0}
    assert named({"+1": 1.0, "-1": "rest"}, ("no", "yes"))["-1"] == "rest" and named(None, ("no",)) is None
    assert label_number("yes", ("no", "yes"), "positive") == 1.0 and label_number("2", None, "positive") == 2.0
    for label, names in (("maybe", ("no", "yes")), (1.0, ("no", "yes")), ("yes", None)):
        with pytest.raises(UsageError, match="positive="):
            label_number(label, names, "positive")


def test_new_labels_get_the_numbers_of_the_training_data():
    y = np.array([1.0, 0.0, np.nan, 2.0])
    assert recoded(y, None, None, "f") is y
    found = recoded(y, ("c", "a", "b"), ("a", "b", "c"), "f")
    assert found[[0, 1, 3]].tolist() == [0.0, 2.0, 1.0] and np.isnan(found[2])
    assert np.isnan(recoded(np.array([0.0]), None, ("a", "b"), "f")[0])  # what files without labels have there
    assert recoded(np.array([7.0]), None, ("7", "x"), "f").tolist() == [0.0]
    with pytest.raises(DataError, match="f has the label d; the labels of the training data are a, b"):
        recoded(np.array([0.0]), ("d",), ("a", "b"), "f")
    with pytest.raises(DataError, match="are numbers"):
        recoded(np.array([0.0]), ("d",), None, "f")


def test_true_and_false_are_found_however_they_are_written():
    y, names = np.array([1.0, 0.0, np.nan]), ("FALSE", "TRUE")
    for known in (None, names, ("false", "true")):  # None: of a run from before they had names
        assert recoded(y, ("False", "True"), known, "new").tolist()[:2] == [1.0, 0.0]
    assert recoded(y, None, names, "new").tolist()[:2] == [1.0, 0.0]
    with pytest.raises(DataError, match="has the label False"):
        recoded(y, ("False", "True"), ("no", "yes"), "new")


def test_cells_of_labels():
    assert label_cells([0.0, 1.5]) == ["0.0", "1.5"]
    for names, cells in (
        (("a", "b,c", 'd"e', "f\ng"), ["a", '"b,c"', '"d""e"', "f\\ng"]), (("f\ng", "f\\ng"), ["0.0", "1.0"]),
        (("1.0", "x"), ["0.0", "1.0"]),
    ):  # fmt: skip
        labels = named(list(np.arange(float(len(names)))), names)
        assert label_cells(labels) == cells


BIG, NEXT = "9007199254740992", "9007199254740993"  # one number in float64


def test_a_label_is_asked_for_as_the_file_writes_it():
    spelled = Spelled({float(NEXT): NEXT})
    for label in (NEXT, f"+{NEXT}.0", int(NEXT)):
        assert label_number(label, spelled, "positive") == float(NEXT)
    for label in (BIG, int(BIG), float(BIG), "9.007199254740992e15"):
        with pytest.raises(UsageError, match=f"is not among the labels.*{NEXT}"):
            label_number(label, spelled, "positive")
    assert label_number("0.10", None, "positive") == 0.1 and label_number(7, None, "positive") == 7.0
    with pytest.raises(UsageError, match="nearest number"):
        label_number("0.1000000000000000055", None, "positive")


@pytest.mark.parametrize(
    "of_run,of_data,same", [(NEXT, BIG, False), (BIG, NEXT, False), (NEXT, NEXT, True), ("007", "7", True)]
)
def test_labels_of_new_data_are_the_runs_only_if_they_are_the_same_number(of_run, of_data, same):
    value = float(of_run)
    known, y = [named(value, Spelled({value: of_run})), 5.0], np.array([5.0, value, np.nan])
    spelled = Spelled({value: of_data}) if of_data == NEXT else None
    mixed = np.array([1.0, 0.0, np.nan]), (of_data, "5")  # a column in which others are texts
    if same:
        assert recoded(y, None, None, "f", spelled, known) is y
        assert np.array_equal(recoded(*mixed, None, "f", None, known), y, equal_nan=True)
        return
    with pytest.raises(DataError, match=f"f has the label {of_data}.*training data are {of_run}, 5"):
        recoded(y, None, None, "f", spelled, known)
    with pytest.raises(DataError, match=f"f has the label {of_data}.*training data are {of_run}, 5"):
        recoded(*mixed, None, "f", None, known)


def test_new_data_whose_labels_float64_merges_are_refused():
    both = Spelled({float(NEXT): NEXT}, f"the labels {NEXT} and {BIG} are one number in float64")
    with pytest.raises(DataError, match="one number in float64"):
        recoded(np.array([float(NEXT)] * 2), None, None, "f", both, [named(float(NEXT), both), 5.0])
    y = np.array([float(NEXT)] * 2)
    assert recoded(y, None, None, "f", both) is y  # targets of a regression
