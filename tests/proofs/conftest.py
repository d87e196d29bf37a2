"""What is compared with a bound here may be as small as a unit of rounding, to which pytest's 1e-12 is infinity."""

import pytest

plain = pytest.approx


@pytest.fixture(autouse=True)
def relative_alone(monkeypatch):
    """Let ``pytest.approx`` have no absolute tolerance that a test does not ask for."""
    monkeypatch.setattr(
        pytest, "approx", lambda value, rel=None, abs=None: plain(value, rel or (None if abs else 1e-6), abs or 0.0)
    )
