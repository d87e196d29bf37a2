"""A cache of compiled kernels of a test's own."""

import pytest

from screenpath.compile import cache


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """Point this process at an empty cache folder, and back afterwards."""
    monkeypatch.setattr(cache.config, "CACHE_DIR", str(tmp_path))
    cache.cache_folder.cache_clear()
    yield cache.cache_folder()
    cache.cache_folder.cache_clear()
