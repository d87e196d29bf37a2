"""Folds: drawn, read, and refused before anything is computed."""

import numpy as np
import pytest

from screenpath.cv.folds import check_classes, check_count, check_counts, draw_folds, read_fold_file
from screenpath.errors import DataError, UsageError


@pytest.mark.parametrize(("n", "k"), [(10, 2), (23, 5), (7, 7)])
def test_every_sample_is_held_out_once_a_repeat(n, k):
    splits = draw_folds(n, k, 3, 0)
    assert len(splits) == 3 * k
    for repeat in range(3):
        parts = [s.held_out for s in splits if s.repeat == repeat]
        assert sorted(np.concatenate(parts).tolist()) == list(range(n))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        for split in splits:
            assert np.intersect1d(split.training(n), split.held_out).size == 0


def test_the_seed_decides():
    def one(*arguments):
        return [s.held_out.tolist() for s in draw_folds(40, 4, *arguments)]

    assert one(2, 5) == one(2, 5)
    assert one(2, 5) != one(2, 6)
    assert one(1, 5) == one(2, 5)[:4]  # more repeats do not change the first
    assert one(2, 5)[:4] != one(2, 5)[4:]


def test_stratified_folds_share_out_every_class():
    labels = np.repeat([1.0, 2.0, 5.0], [50, 23, 7])
    for split in draw_folds(80, 6, 2, 3, labels):
        for label, count in ((1.0, 50), (2.0, 23), (5.0, 7)):
            assert count // 6 <= np.count_nonzero(labels[split.held_out] == label) <= -(-count // 6)
        assert split.held_out.size in (13, 14)


def test_fold_file(tmp_path):
    path = tmp_path / "folds"
    path.write_text("7\n3\n7\n3\n")
    splits = read_fold_file(path, 4)
    assert [s.held_out.tolist() for s in splits] == [[1, 3], [0, 2]]


@pytest.mark.parametrize(("text", "message"), [
    ("1\ntwo\n1\n", "line 2: the fold is not a whole number: 'two'"), ("1\n2\n", "has 2 lines for 3 samples"),
    ("4\n4\n4\n", "names one fold only"), ("1\n2.5\n1\n", "line 2"), ("", "has 0 lines"),
])  # fmt: skip
def test_bad_fold_files(tmp_path, text, message):
    path = tmp_path / "folds"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_fold_file(path, 3)


def test_a_missing_fold_file(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        read_fold_file(tmp_path / "none", 3)


def test_too_many_folds():
    with pytest.raises(UsageError, match="`folds=11` is more than the 10 samples") as caught:
        check_count(10, 11)
    assert "`folds=10`" in caught.value.hint
    with pytest.raises(DataError, match="class 3 has 4 samples, fewer than the 5 folds") as caught:
        check_counts(np.repeat([1.0, 3.0], [20, 4]), 5)
    assert "`folds=4`" in caught.value.hint
    check_counts(np.repeat([1.0, 3.0], [20, 4]), 4)


def test_a_part_without_a_class():
    labels = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 2.0])
    splits = draw_folds(6, 6, 1, 0)
    check_classes(labels, splits, everywhere=False)
    with pytest.raises(DataError, match="held-out part of fold 0 has no sample of the class") as caught:
        check_classes(labels, splits, everywhere=True)
    assert "`stratify` with `folds" in caught.value.hint
    with pytest.raises(DataError, match="training part of fold"):
        check_classes(np.array([1.0, 1.0, 1.0, 1.0, 1.0, 2.0]), splits, everywhere=False)
