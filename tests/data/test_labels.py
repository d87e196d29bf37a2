"""From labels to numbers and signs, and back to their names."""

import json
import pickle

import numpy as np
import pytest

from screenpath.data.words.labels import binary_labels, label_cells, label_number, label_text, named, recoded
from screenpath.data.words.tables import dump_json
from screenpath.errors import DataError, UsageError


def test_labels():
    signs, mapping = binary_labels(np.array([2.0, 1.0, 2.0]))
    assert signs.tolist() == [1, -1, 1] and mapping == {"+1": "2", "-1": "1"}
    signs, mapping = binary_labels(np.array([0.0, 1.0, 2.0]), positive=1.0)
    assert signs.tolist() == [-1, 1, -1] and mapping == {"+1": "1", "-1": "rest"}
    assert binary_labels(np.array([0.0, 1.0]), positive=0.0)[1] == {"+1": "0", "-1": "1"}
    with pytest.raises(DataError, match=r"only one label: 3 \(2 samples\)"):
        binary_labels(np.array([3.0, 3.0]))
    with pytest.raises(DataError, match="two labels are needed, these are 3") as caught:
        binary_labels(np.arange(3.0))
    assert caught.value.message == "two labels are needed, these are 3: 0 (1 sample), 1 (1 sample), 2 (1 sample)"
    assert "y == LABEL" in caught.value.hint and "sparse_svm_path" in caught.value.hint
    with pytest.raises(DataError, match="`positive=.*sparse-svm"):
        binary_labels(np.arange(3.0), source="data.libsvm")
    with pytest.raises(DataError, match="no sample has the label 9"):
        binary_labels(np.arange(3.0), positive=9.0)


def test_messages_name_the_data():
    for y, positive in ((np.ones(2), None), (np.arange(3.0), None), (np.arange(2.0), 7.0)):
        with pytest.raises(DataError, match=r"^data\.libsvm: ") as caught:
            binary_labels(y, positive, source="data.libsvm")
        assert caught.value.hint


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
        (("a", "b,c", 'd"e', "f\ng"), ["a", '"b,c"', '"d""e"', "f\\ng"]),
        (("f\ng", "f\\ng"), ["0.0", "1.0"]),
        (("1.0", "x"), ["0.0", "1.0"]),
    ):
        labels = named(list(np.arange(float(len(names)))), names)
        assert label_cells(labels) == cells
