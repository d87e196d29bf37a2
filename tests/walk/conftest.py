"""Walks whose compiled calls end where points or rows make them end, never because the machine was busy."""

import math

import pytest

from screenpath.walk import compiled, compiled_faces


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Give a compiled call, and a point of it, all the time there is: how far it comes depends on no clock then."""
    monkeypatch.setattr(compiled, "SLICE", math.inf)
    monkeypatch.setattr(compiled_faces, "SOLVE", math.inf)
