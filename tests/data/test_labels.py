"""From label numbers to signs."""

import numpy as np
import pytest

from screenpath.data.labels import binary_labels
from screenpath.errors import DataError


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
    assert caught.value.message == "two labels are needed, these are 3: 0 (1 samples), 1 (1 samples), 2 (1 samples)"
    assert "`positive=" in caught.value.hint and "sparse-svm" in caught.value.hint
    with pytest.raises(DataError, match="no sample has the label 9"):
        binary_labels(np.arange(3.0), positive=9.0)


def test_messages_name_the_data():
    for y, positive in ((np.ones(2), None), (np.arange(3.0), None), (np.arange(2.0), 7.0)):
        with pytest.raises(DataError, match=r"^data\.libsvm: ") as caught:
            binary_labels(y, positive, source="data.libsvm")
        assert caught.value.hint
