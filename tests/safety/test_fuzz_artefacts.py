"""A sample of the fuzzing of artefacts (`make fuzz` has ten thousand inputs), and that it would notice."""

import pytest

from screenpath.data.shards import checks
from screenpath.data.shards.checks import Mapped
from tests.safety import fuzz_artefacts
from tests.safety.artefacts import KINDS
from tests.width import wide


def test_no_damage_is_believed():
    failures, tally = fuzz_artefacts.fuzz(wide(50, 160), seed=7)
    assert failures == []
    assert set(tally) == {kind.name for kind in KINDS}
    for name, (noticed, harmless, sealed) in tally.items():
        assert noticed + harmless + sealed > wide(2, 10) and (noticed > 0 or name == "cache entry")


class Fits:
    """A hash that equals all others."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = None


def test_hashes_that_are_not_compared_are_noticed(monkeypatch):
    monkeypatch.setattr(Mapped, "crc32", lambda self: Fits())
    monkeypatch.setattr(checks, "record_crc", lambda record: Fits())
    failures, _ = fuzz_artefacts.fuzz(
        150, seed=7, kinds=["shard folder", "cache entry"], enough=lambda wrong: "other results" in wrong
    )
    assert any("other results" in wrong for _, wrong in failures)


@pytest.mark.parametrize("exception", [IndexError, RecursionError, MemoryError])
def test_a_crash_is_noticed(monkeypatch, exception):
    damage, damaged, right = fuzz_artefacts.damage, [], checks.part_fault

    def count(*arguments):
        damaged.append(True)
        return damage(*arguments)

    def crash(*arguments):
        if damaged:
            raise exception("beyond the end")
        return right(*arguments)

    monkeypatch.setattr(fuzz_artefacts, "damage", count)
    monkeypatch.setattr(checks, "part_fault", crash)
    # A lack of memory is put into words by the commands.
    words = (exception.__name__, "read into memory" if exception is MemoryError else "")
    failures, _ = fuzz_artefacts.fuzz(
        20, seed=0, kinds=["shard folder of 0.1.0"], enough=lambda wrong: all(word in wrong for word in words)
    )
    assert failures and all(word in failures[-1][1] for word in words)
