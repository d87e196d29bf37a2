"""Reading LIBSVM text: speed and peak memory beside scikit-learn and svmloader, in one run, alternating.

Usage: python examples/benchmarks/reading.py [--mb 120] [--digits 6] [--repeats 3]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PER_ROW = 75
READERS = ("screenpath", "svmloader", "scikit-learn")


def write_text(path: Path, megabytes: float, digits: int) -> None:
    """Write random rows of 75 values until the file has the size asked for."""
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        while file.tell() < megabytes * 1e6:
            columns = np.cumsum(rng.integers(1, 400, size=(1000, PER_ROW)), axis=1)
            values = rng.normal(size=columns.shape)
            for k in range(len(columns)):
                pairs = " ".join(f"{j}:{v:.{digits}g}" for j, v in zip(columns[k], values[k], strict=True))
                file.write(f"{1 if k % 2 else -1} {pairs}\n")


def read(reader: str, path: str) -> int:
    """Read the file; return the bytes of the arrays."""
    if reader == "screenpath":
        from screenpath import read_libsvm

        data = read_libsvm(path)
        X, y = data.X, data.y
    elif reader == "svmloader":
        import svmloader

        X, y = svmloader.load_svmfile(path)
    else:
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(path)
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes


def resident() -> int:
    """Return the bytes of resident memory now, and let the peak start from there where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    except OSError:  # elsewhere the growth of the peak is all there is to see
        return peak_resident()


def peak_resident() -> int:
    """Return the bytes of resident memory at its peak."""
    try:
        return _status("VmHWM")
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def child(reader: str, path: str, tiny: str) -> None:
    """Measure one reader in this process: seconds, array bytes, growth of the peak resident memory."""
    read(reader, tiny)  # imports and compilation
    before = resident()
    start, cpu = time.perf_counter(), time.process_time()
    size = read(reader, path)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = peak_resident() - before
    print(wall, cpu, size, peak)


def main() -> None:
    """Run every reader in turn, several times, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=120.0)
    parser.add_argument("--digits", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        path, tiny = Path(folder, "data.libsvm"), Path(folder, "tiny.libsvm")
        write_text(path, options.mb, options.digits)
        tiny.write_text("1 1:0.5 2:1\n-1 1:2\n")
        megabytes = path.stat().st_size / 1e6
        runs = {name: [] for name in READERS}
        for _ in range(options.repeats):
            for name in READERS:
                command = [sys.executable, __file__, "--child", name, str(path), str(tiny)]
                out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
                runs[name].append([float(x) for x in out.split()])
    cpu = {name: statistics.median(r[1] for r in rows) for name, rows in runs.items()}
    print(f"{megabytes:.0f} MB of text, {PER_ROW} values a row, {options.digits} digits, one thread\n")
    print("| reader | MB/s (CPU) | time over screenpath's | arrays, MB | peak memory, MB | peak over arrays |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, rows in runs.items():
        ratio = statistics.median(row[1] / ours[1] for row, ours in zip(rows, runs["screenpath"], strict=True))
        arrays, peak = rows[0][2] / 1e6, statistics.median(row[3] for row in rows) / 1e6
        speed, memory = megabytes / cpu[name], peak / arrays
        print(f"| {name} | {speed:.0f} | {ratio:.2f} | {arrays:.0f} | {peak:.0f} | {memory:.2f} |")


if __name__ == "__main__":
    main()
