"""Run a command and measure its private memory, and the time to read a shard folder once.

Usage: python examples/scaling/measure.py [--read FOLDER] -- screenpath svm FOLDER --grid 20 ...

Prints one JSON line: seconds, seconds of processor time, exit code, the largest private memory seen (resident size
minus pages of files, from /proc/PID/smaps_rollup), the largest resident size; with --read also two sequential readings
of the folder's files, before the command (disk or page cache, as it is found) and after it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

EVERY = 0.25  # seconds between two looks
BUFFER = 1 << 23


def look(pid: int) -> tuple[int, int]:
    """Return private and resident bytes of a process; zeros once it has gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines[1:] if line.endswith("kB")}
    shared_memory = sizes.get("Pss_Shmem", 0)
    return sizes.get("Anonymous", 0) + shared_memory, sizes.get("Rss", 0)


def read_once(folder: Path) -> dict:
    """Read the rows of all shards, file by file; return bytes, seconds and seconds of processor time."""
    buffer, total = bytearray(BUFFER), 0
    began, used = time.perf_counter(), time.process_time()
    for path in sorted(folder.glob("*.npy")):
        if path.stem.split("-")[1] in ("dense", "data", "indices", "indptr"):
            with open(path, "rb", buffering=0) as file:
                while got := file.readinto(buffer):
                    total += got
    return {"bytes": total, "seconds": time.perf_counter() - began, "processor_s": time.process_time() - used}


def main() -> int:
    """Return the command's exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--read", type=Path, metavar="FOLDER")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    found = {}
    if arguments.read:
        found["read_before"] = read_once(arguments.read)
    began = time.perf_counter()
    process = subprocess.Popen(arguments.command)
    private = resident = 0
    while process.poll() is None:
        now = look(process.pid)
        private, resident = max(private, now[0]), max(resident, now[1])
        time.sleep(EVERY)
    found |= {"seconds": time.perf_counter() - began, "code": process.returncode}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found["processor_s"] = used.ru_utime + used.ru_stime
    found |= {"private_bytes": private, "resident_bytes": resident}
    if arguments.read:
        found["read_after"] = read_once(arguments.read)
    print(json.dumps(found))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
