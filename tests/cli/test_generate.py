"""The generate command and the LIBSVM text it writes."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from screenpath.data.files.generate import NAMES, generate


def test_stdout_holds_the_set(call):
    result = call("generate", "wang-toy2", "--seed", 3)
    assert result.code == 0 and result.err == ""
    X, y = load_svmlight_file(io.BytesIO(result.out.encode()))
    expected, labels = generate("wang-toy2", 3)
    np.testing.assert_array_equal(X.toarray(), expected)
    np.testing.assert_array_equal(y, labels)


def test_sizes_and_seed(call):
    one, again, other = (call("generate", "hong-syn1", "--n", 40, "--p", 100, "--seed", s).out for s in (1, 1, 2))
    assert one == again != other
    assert len(one.splitlines()) == 40


@pytest.mark.parametrize(("ending", "unpack"), [("", bytes), (".gz", gzip.decompress), (".bz2", bz2.decompress),
                                                (".xz", lzma.decompress)])  # fmt: skip
def test_files_are_compressed_by_their_name(call, tmp_path, ending, unpack):
    text = call("generate", "ogawa-toy").out
    assert call("generate", "ogawa-toy", "-o", f"new/toy.libsvm{ending}").code == 0
    content = (tmp_path / "new" / f"toy.libsvm{ending}").read_bytes()
    assert unpack(content).decode() == text
    assert call("generate", "ogawa-toy", "-o", f"again.libsvm{ending}").code == 0
    assert (tmp_path / f"again.libsvm{ending}").read_bytes() == content


def test_help_names_every_set(call):
    text = call("generate", "--help").out
    assert all(name in text for name in NAMES)


def test_unknown_name(call):
    result = call("generate", "nothing")
    assert result.code == 2 and "wang-toy1" in result.err and "big" in result.err
