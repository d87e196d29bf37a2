"""Workers of this machine that nobody else can talk to: temporary credentials, the loopback interface, no web pages.

Whoever can reach an open scheduler or worker of Dask can run code as its user, so that other users of the machine must
be kept out. Every connection is encrypted and both of its ends show a certificate that is made here, exists in memory
only, and is handed to the workers through the pipe that starts them. This module imports Dask.
"""

from __future__ import annotations

import tempfile

from dask import config
from distributed import Nanny, Scheduler, SpecCluster, Worker
from distributed.security import Security

from screenpath.data.safe.processes import SAFE_PATH, without_current_folder
from screenpath.errors import ResourceError

LOOPBACK = "127.0.0.1"
QUIET = 50  # level of the log: nothing below critical


class NoPages:
    """A server without the web server that Dask opens beside each of them, dashboard or not."""

    def start_http_server(self, *arguments, **options):
        """Open nothing."""


class LocalScheduler(NoPages, Scheduler):
    """The scheduler, in this process."""


class LocalWorker(NoPages, Worker):
    """A worker process."""


class LocalCluster(SpecCluster):
    """Worker processes of this machine.

    Raises
    ------
    ResourceError
        If credentials cannot be made because ``cryptography`` is not installed.
    """

    def __init__(self, n_workers: int):
        try:
            security = Security.temporary()
        except ImportError:
            raise ResourceError(
                "a local cluster needs cryptography, which is not installed", "pip install 'screenpath[cluster]'"
            ) from None
        self.folder = tempfile.TemporaryDirectory(prefix="screenpath-")  # private to this user
        where = {"host": LOOPBACK, "protocol": "tls://", "security": security}
        # No limit: mapped shards count as a worker's memory, and Dask would stop it for them.
        options = {"nthreads": 1, "memory_limit": 0, "silence_logs": QUIET, "worker_class": LocalWorker}
        worker = {"cls": Nanny, "options": {**where, **options, "local_directory": self.folder.name}}
        scheduler = {"cls": LocalScheduler, "options": {**where, "port": 0, "dashboard": False}}
        try:
            # The setting holds for workers that are started again, too.
            with without_current_folder(), config.set({f"distributed.nanny.pre-spawn-environ.{SAFE_PATH}": "1"}):
                super().__init__(
                    dict.fromkeys(range(n_workers), worker),
                    scheduler,
                    worker,
                    security=security,
                    silence_logs=QUIET,
                )
        except BaseException:
            self.folder.cleanup()
            raise

    def close(self, timeout=None):
        """End the workers and remove what they had on disk."""
        ended = super().close(timeout)
        if not self.asynchronous:
            self.folder.cleanup()
        return ended
