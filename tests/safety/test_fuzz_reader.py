"""A sample of the reader's fuzzing (`make fuzz` has a million inputs), and that it would notice."""

import gzip
import io
import random

import pytest

from screenpath.data.files.libsvm import Parser, read_libsvm
from screenpath.data.safe.memory import MemoryLimit, private_bytes
from screenpath.errors import ResourceError
from tests.safety import fuzz_reader
from tests.width import wide


def test_no_input_is_read_wrongly():
    assert fuzz_reader.fuzz(wide(1500, 4000), seed=5) == []


@pytest.mark.parametrize("seed", range(4))
def test_bombs(seed):
    assert fuzz_reader.check_bomb(random.Random(seed)) is None


def test_a_bomb_takes_no_more_than_the_limit():
    before = private_bytes()
    packed = io.BytesIO(gzip.compress(b"1 1:1 2:1 3:1\n" * 10_000_000, 1))
    with pytest.raises(ResourceError, match="screenpath convert"):
        read_libsvm(packed, limit=MemoryLimit(before + (64 << 20)))
    assert private_bytes() < before + (128 << 20)


def test_a_wrong_reader_is_noticed(monkeypatch):
    right = Parser.feed

    def forgetful(self, text, stop):
        right(self, text, stop)
        self.values.array[: self.values.size][self.values.array[: self.values.size] == 1.0] = 2.0

    monkeypatch.setattr(Parser, "feed", forgetful)
    assert any(fuzz_reader.fuzz(10, seed=seed) for seed in range(0, 300, 10))


def test_a_crash_is_noticed(monkeypatch):
    monkeypatch.setattr(Parser, "feed", lambda *arguments: 1 / 0)
    assert fuzz_reader.fuzz(5)[0][1].startswith("ZeroDivisionError")
