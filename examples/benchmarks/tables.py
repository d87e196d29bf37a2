"""Converting Parquet and CSV to shards: megabytes of the file a second of processor time, and peak private memory.

Usage: python examples/benchmarks/tables.py [--mb 500] [--columns 40] [--kind parquet] [--folder DIR]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from reading import peak_resident, resident

GROUP = 1 << 17  # rows of a row group


def write_parquet(path: Path, megabytes: float, columns: int) -> None:
    """Write random columns and a target with two labels as texts, row group by row group, until the size is reached."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    while writer is None or path.stat().st_size < megabytes * 1e6:
        X = rng.normal(size=(columns, GROUP))
        labels = np.where(X[0] + X[1] > 0.0, "yes", "no")
        table = pa.table({**{f"x{j}": column for j, column in enumerate(X)}, "label": labels})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def write_csv(path: Path, megabytes: float, columns: int) -> None:
    """Write the like as CSV of six digits."""
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        file.write(",".join([*(f"x{j}" for j in range(columns)), "label"]) + "\n")
        while file.tell() < megabytes * 1e6:
            for row in rng.normal(size=(1000, columns)).tolist():
                file.write(",".join(f"{v:.6g}" for v in row) + (",yes\n" if row[0] + row[1] > 0.0 else ",no\n"))


def measure(path: str, tiny: str, out: str) -> None:
    """Convert one file in this process and print wall and processor seconds, peak memory and rows."""
    from screenpath.data.shards.convert import convert

    convert([tiny], out + "-tiny")  # imports and compilation
    before = resident()
    start, cpu = time.perf_counter(), time.process_time()
    folder = convert([path], out)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(wall, cpu, peak_resident() - before, folder.n)


def main() -> None:
    """Write the file, convert it in a process of its own, and print a line of the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, default=500.0)
    parser.add_argument("--columns", type=int, default=40)
    parser.add_argument("--kind", choices=("parquet", "csv"), default="parquet")
    parser.add_argument("--folder", help="where the files go for the time being")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        measure(*options.child)
        return
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        path, tiny = folder / "data", folder / "tiny"
        write = write_parquet if options.kind == "parquet" else write_csv
        write(path, options.mb, options.columns)
        write(tiny, 0.001, options.columns)
        command = [sys.executable, __file__, "--child", str(path), str(tiny), str(folder / "shards")]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        wall, cpu, peak, rows = map(float, out.split())
        megabytes = path.stat().st_size / 1e6
    finally:
        shutil.rmtree(folder)
    print("| file | MB | rows | MB/s of a core | MB/s | peak memory, MB |")
    print("|---|---:|---:|---:|---:|---:|")
    name, speeds = f"{options.kind}, {options.columns} columns", f"{megabytes / cpu:.0f} | {megabytes / wall:.0f}"
    print(f"| {name} | {megabytes:.0f} | {rows:,.0f} | {speeds} | {peak / 1e6:.0f} |")


if __name__ == "__main__":
    main()
