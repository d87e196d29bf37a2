"""Workers of this machine listen to nobody but the process that started them."""

import contextlib
import os
import socket
import stat
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="dask.distributed is not installed")

import distributed
import psutil  # which it needs
from distributed.security import Security

from screenpath.errors import ResourceError
from screenpath.rows.dask_cluster import close, connect
from tests.conftest import HANGS


@pytest.fixture(scope="module")
def started():
    """A client and its cluster of one worker."""
    client, cluster = connect(local=1)
    yield client, cluster
    close(client, cluster)


def listening() -> list:
    """Return the addresses at which this process and its children listen."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return [c.laddr for p in processes for c in p.net_connections("inet") if c.status == psutil.CONN_LISTEN]


def test_loopback_only_and_no_web_server(started):
    """Scheduler, nanny and worker listen at one address each."""
    client, _ = started
    addresses = listening()
    assert {address.ip for address in addresses} == {"127.0.0.1"}
    info = client.scheduler_info()
    named = {info["address"], *info["workers"], *(worker["nanny"] for worker in info["workers"].values())}
    assert named == {f"tls://127.0.0.1:{address.port}" for address in addresses} and len(named) == 3
    assert info["services"] == {} and all(worker["services"] == {} for worker in info["workers"].values())


def test_strangers_are_turned_away(started):
    """Without encryption, without a certificate, and with one of their own making."""
    client, _ = started
    address = client.scheduler_info()["address"]
    for scheme, security in (("tcp", None), ("tls", Security.temporary())):
        with pytest.raises((OSError, TimeoutError)):
            distributed.Client(address.replace("tls", scheme), security=security, timeout=2, set_as_default=False)
    host, port = address.removeprefix("tls://").split(":")
    with socket.create_connection((host, int(port)), timeout=HANGS) as plain:
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
        with contextlib.suppress(ConnectionError):  # hung up on
            assert b"HTTP" not in plain.recv(1000)
    assert client.submit(os.getpid, pure=False).result() != os.getpid()


def test_what_workers_have_on_disk_is_private_and_goes_with_them():
    umask = os.umask(0)
    try:
        client, cluster = connect(local=1)
    finally:
        os.umask(umask)
    folder = Path(cluster.folder.name)
    places = set(client.run(lambda dask_worker: dask_worker.local_directory).values())
    assert places and all(folder in Path(place).parents for place in places)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and folder.stat().st_uid == os.getuid()
    worker = next(iter(client.run(os.getpid).values()))
    close(client, cluster)
    assert not folder.exists()
    deadline = time.monotonic() + HANGS
    while psutil.pid_exists(worker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not psutil.pid_exists(worker)


def test_without_cryptography(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ResourceError, match="needs cryptography") as caught:
        connect(local=1)
    assert "screenpath[cluster]" in caught.value.hint
