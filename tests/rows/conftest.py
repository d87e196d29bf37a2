"""A cluster on this machine."""

import pytest


@pytest.fixture(scope="module")
def client():
    """A client of two worker processes."""
    from screenpath.rows.dask_cluster import close, connect

    client, cluster = connect(local=2)
    yield client
    close(client, cluster)
