"""Make the sample files of this folder again, byte for byte: ``python make_samples.py [FOLDER]``.

Needs scikit-learn, which ships the three real data sets, and screenpath for the synthetic ones.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from screenpath.data.files.generate import generate

SEED = 0


def number(value: float) -> str:
    """Return the shortest text that reads back as the same double; whole numbers without a point."""
    return repr(int(value)) if value == int(value) else repr(float(value))


def libsvm_text(X: np.ndarray, y: np.ndarray) -> bytes:
    """Return dense rows as LIBSVM text: 1-based indices, zeros left out.

    Kept apart from screenpath's own writer, so that the tests of reading and writing have files from elsewhere.
    """
    lines = []
    for row, label in zip(X, y, strict=True):
        entries = (f"{j + 1}:{number(row[j])}" for j in np.flatnonzero(row))
        lines.append(" ".join([number(label), *entries]))
    return ("\n".join(lines) + "\n").encode()


def gzip_without_time(text: bytes) -> bytes:
    """Compress with neither time nor file name in the header, which would differ from one run to the next."""
    stream = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as file:
        file.write(text)
    return stream.getvalue()


def sample_files() -> dict[str, bytes]:
    """Return the content of every sample file by its name."""
    real = {"breast_cancer": load_breast_cancer(), "diabetes": load_diabetes(scaled=False), "digits": load_digits()}
    files = {f"{name}.libsvm": libsvm_text(bunch.data, bunch.target) for name, bunch in real.items()}
    for which in (1, 2, 3):
        files[f"wang_toy{which}.libsvm"] = libsvm_text(*generate(f"wang-toy{which}", SEED))
    plain = files["breast_cancer.libsvm"]
    files["breast_cancer.libsvm.gz"] = gzip_without_time(plain)
    files["breast_cancer.libsvm.bz2"] = bz2.compress(plain)
    files["breast_cancer.libsvm.xz"] = lzma.compress(plain)
    return files


def main(arguments: list[str]) -> None:
    """Write all files to the folder named, or beside this script."""
    folder = Path(arguments[0]) if arguments else Path(__file__).resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in sample_files().items():
        (folder / name).write_bytes(content)
        print(f"{folder / name}: {len(content)} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
