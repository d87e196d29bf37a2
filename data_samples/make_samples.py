"""Make the sample files of this folder again, byte for byte: ``python make_samples.py [FOLDER]``.

Needs scikit-learn, which ships the four real data sets, and screenpath for the synthetic ones.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine

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


def clinic(seed: int, rows: int) -> bytes:
    """Return visits to clinics, all invented, as tables from real life are: identifiers, texts, gaps, a date."""
    rng = random.Random(seed)
    lines = ["visit,patient,site,seen,age,weight_kg,blood,smoker,returned"]
    for k in range(rows):
        patient = rng.randrange(60)
        own = random.Random(patient)  # of the patient, whenever they come
        age, weight = own.gauss(55, 12), own.gauss(78, 14)
        blood, smoker = own.choice(("A", "AB", "B", "0")), own.random()
        back = 0.08 * (age - 55) + 0.04 * (weight - 78) + 2.5 * (smoker < 0.35) - 0.8 + rng.gauss(0, 1.5) > 0
        seen = f"2024-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
        cells = [
            f"V{k:03}", f"P{patient:02}", ["north", "south", "west"][patient % 3], seen,
            "" if rng.random() < 0.06 else f"{age:.0f}",
            "NA" if rng.random() < 0.1 else f"{weight + rng.gauss(0, 1):.1f}",
            blood, "?" if rng.random() < 0.03 else "yes" if smoker < 0.35 else "no", "yes" if back else "no",
        ]  # fmt: skip
        lines.append(",".join(cells))
    return ("\n".join(lines) + "\n").encode()


def wine() -> bytes:
    """Return the wines as a table; `od` is the absorbance of diluted wine, 280 nm by 315 nm."""
    bunch = load_wine()
    names = [name.replace("od280/od315_of_diluted_wines", "od") for name in bunch.feature_names]
    rows = [[*map(number, row), "ABC"[label]] for row, label in zip(bunch.data, bunch.target, strict=True)]
    return "".join(",".join(line) + "\n" for line in ([*names, "cultivar"], *rows)).encode()


def sample_files() -> dict[str, bytes]:
    """Return the content of every sample file by its name."""
    real = {"breast_cancer": load_breast_cancer(), "diabetes": load_diabetes(scaled=False), "digits": load_digits()}
    files = {f"{name}.libsvm": libsvm_text(bunch.data, bunch.target) for name, bunch in real.items()}
    for which in (1, 2, 3):
        files[f"wang_toy{which}.libsvm"] = libsvm_text(*generate(f"wang-toy{which}", SEED))
    files["wine.csv"] = wine()
    files["clinic.csv"], files["clinic_new.csv"] = clinic(SEED, 180), clinic(SEED + 1, 40)
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
