"""A cluster on this machine."""

import pytest


@pytest.fixture(scope="package")
def client():
    """A client of two worker processes."""
    from distributed import LocalCluster

    from screenpath.rows.cluster import connect

    with LocalCluster(
        2, threads_per_worker=1, memory_limit=0, dashboard_address=":0", silence_logs=50, host="127.0.0.1"
    ) as cluster:
        client = connect(cluster.scheduler_address)
        yield client
        client.close()
