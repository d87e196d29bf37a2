"""Damaged artefacts for everything that reads them: one clear error, or results as if nothing had happened.

Usage: python tests/safety/fuzz_artefacts.py --inputs 10000 [--seed 0] [--kind NAME ...] [--plain]

Each input is an artefact of one kind (see ``artefacts.py``), damaged in one to three places: bits, bytes, blocks and
files changed, swapped, cut short, removed, put in another's place; fields of JSON files given other types and absurd
values. One half of them is sealed afterwards, where a kind has hashes: these are artefacts that somebody made up, and
what is asked of their readers is not to crash. ``--plain`` runs the kernels as Python, where an index beyond the end of
an array is an exception.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

SECONDS = 60  # that the readers of one input may take
ABSURD = [
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, 10**30, 10**400, 1.5, -2.5, 1e308, float("nan"), float("inf"), "",
    "x", "../../../etc/passwd", "/dev/full", "\x1b[31m", "\ud800", "9" * 50, [], {}, [1], [[]], {"x": 1}, [None] * 3,
]  # fmt: skip
VALUES = [0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), 2**31 - 1, -(2**31), 2**62, -1, 6]


# -- damage ------------------------------------------------------------------------------------------------------------


def damage_bytes(rng, file: Path, others: list[Path]) -> None:
    data = bytearray(file.read_bytes())
    at = rng.randrange(len(data)) if data else 0
    kind = rng.randrange(7)
    if kind == 0 and data:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1 and data:
        data[at] = rng.randrange(256)
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        del data[at : at + rng.randint(1, 64)]
    elif kind == 4:
        data[at:at] = bytes(rng.choices(range(256), k=rng.randint(1, 16))) if rng.random() < 0.5 else bytes(16)
    elif kind == 5 and len(data) > 2:  # two blocks change places
        size = rng.randint(1, len(data) // 2)
        one, other = sorted((rng.randrange(len(data) - size + 1), rng.randrange(len(data) - size + 1)))
        if one + size <= other:
            data[one : one + size], data[other : other + size] = data[other : other + size], data[one : one + size]
    else:
        data += bytes(rng.choice([1, 4, 8])) if rng.random() < 0.5 else data[-rng.randint(1, 200) :]
    file.write_bytes(bytes(data))


def damage_file(rng, file: Path, others: list[Path]) -> None:
    """Remove a file, or put another thing in its place."""
    kind, other = rng.randrange(5), rng.choice(others)
    content = file.read_bytes()
    if kind == 0:
        file.unlink()
    elif kind == 1:
        file.write_bytes(b"")
    elif kind == 2:
        file.write_bytes(other.read_bytes())
        other.write_bytes(content)
    elif kind == 3:
        file.write_bytes(other.read_bytes())
    else:
        file.unlink()
        file.mkdir()


def damage_field(rng, file: Path, others: list[Path]) -> None:
    data = file.read_bytes()
    lines = [data] if file.suffix == ".json" else data.splitlines()
    line = rng.randrange(len(lines)) if lines else 0
    try:
        content = json.loads(lines[line])
    except (ValueError, IndexError):  # damaged already
        return damage_bytes(rng, file, others)
    places = list(_places(content))
    if not places:
        return damage_bytes(rng, file, others)
    holder, key = rng.choice(places)
    kind = rng.randrange(4)
    if kind == 0 and isinstance(holder, dict):
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[rng.choice(["../x", "", "n", key + "x"])] = holder.pop(key)
    elif kind == 2 and isinstance(holder[key], int):
        holder[key] += rng.choice([-1, 1, 10, -(10**6), 10**12])
    else:
        holder[key] = rng.choice(ABSURD)
    sys.set_int_max_str_digits(0)
    lines[line] = json.dumps(content).encode()
    sys.set_int_max_str_digits(4300)
    return file.write_bytes(b"\n".join(lines) + b"\n")


def _places(content):
    """Yield (holder, key) for all values in nested lists and dicts."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in items:
        yield content, key
        yield from _places(value)


def damage_values(rng, file: Path, others: list[Path]) -> None:
    """Change values of an array, which leaves its header as it is."""
    import numpy as np

    try:
        array = np.load(file, allow_pickle=False)
    except Exception:  # damaged already, in one of the many ways in which numpy says so
        return damage_bytes(rng, file, others)
    if not _changed(rng, array):
        return damage_bytes(rng, file, others)
    return np.save(file, array)


def _changed(rng, array) -> bool:
    import numpy as np

    flat = array.reshape(-1)
    if not flat.size or array.dtype.kind not in "iuf":
        return False
    for _ in range(rng.randint(1, 3)):
        at, kind = rng.randrange(flat.size), rng.randrange(3)
        if kind == 0:
            other = rng.randrange(flat.size)
            flat[at], flat[other] = flat[other], flat[at]
        elif kind == 1:
            with np.errstate(over="ignore"):
                flat[at] += np.array(rng.choice([-1, 1, 2])).astype(array.dtype)
        else:
            value = rng.choice(VALUES)
            if array.dtype.kind in "iu":
                limits = np.iinfo(array.dtype)
                value = int(min(max(value, limits.min), limits.max)) if value == value and abs(value) < 1e300 else 3
            flat[at] = value
    return True


def damage_archive(rng, file: Path, others: list[Path]) -> None:
    """Change values of an array of an archive, which loses its hash."""
    import numpy as np

    from screenpath.store.archive import FAULTS, read_npz

    try:
        arrays = {name: np.array(value) for name, value in read_npz(file).items()}
    except FAULTS:  # damaged already
        return damage_bytes(rng, file, others)
    name = rng.choice(sorted(arrays))
    if rng.random() < 0.2:
        del arrays[name]
    elif not _changed(rng, arrays[name]):
        return damage_bytes(rng, file, others)
    return np.savez(file, **arrays)


def damage_frames(rng, file: Path, others: list[Path]) -> None:
    import numpy as np

    from screenpath.verify.file import MAGIC, frame, frames

    try:
        parts = [[kind, fields, {n: a.copy() for n, a in arrays.items()}] for kind, fields, arrays in frames(file)]
        _, fields, arrays = rng.choice(parts)
    except Exception:  # damaged already
        return damage_bytes(rng, file, others)
    places, kind = list(_places(fields)), rng.randrange(4)
    if kind == 0 and arrays:
        name = rng.choice(sorted(arrays))
        arrays[name] = np.delete(arrays[name], 0) if arrays[name].size and rng.random() < 0.3 else arrays[name]
        if not _changed(rng, arrays[name]):
            return damage_bytes(rng, file, others)
    elif kind == 1:
        rng.shuffle(parts)
    elif kind == 2 and arrays:
        del arrays[rng.choice(sorted(arrays))]
    else:
        holder, key = rng.choice(places)
        holder[key] = rng.choice(ABSURD)
    sys.set_int_max_str_digits(0)
    file.write_bytes(MAGIC + b"".join(frame(*part) for part in parts))
    return sys.set_int_max_str_digits(4300)


def damage(rng, artefact: Path) -> str:
    """Damage one of the files of an artefact; return what was done."""
    files = sorted(file for file in artefact.rglob("*") if file.is_file())
    if not files:
        return "nothing"
    file, chance = rng.choice(files), rng.random()
    if chance < 0.3:
        texts = [file for file in files if file.suffix in (".json", ".jsonl")]
        file = rng.choice(texts) if texts else file
        how = damage_field if texts else damage_bytes
    elif chance < 0.6 and file.suffix == ".npy":
        how = damage_values
    elif chance < 0.6 and file.suffix == ".npz":
        how = damage_archive
    elif chance < 0.6 and file.name.startswith("certificate.bin"):
        how = damage_frames
    elif chance < 0.7:
        how = damage_file
    else:
        how = damage_bytes
    how(rng, file, files)
    return f"{how.__name__} of {file.name}"


# -- judgement ---------------------------------------------------------------------------------------------------------


class Subject:
    """An artefact in a folder of its own, its readers, and what they find while it is whole."""

    def __init__(self, kind, base: Path):
        self.kind, self.base = kind, base
        base.mkdir()
        kind.make(base)
        copy = shutil.copytree(base / "artefact", base / "copy")
        self.whole = {name: reader(base, copy) for name, reader in kind.readers.items()}
        self.noticed = self.harmless = self.sealed = 0

    def check(self, rng) -> list[str]:
        """Return what is wrong with how one damaged copy is read."""
        from screenpath.errors import ScreenpathError

        copy = self.base / "copy"
        shutil.rmtree(copy)
        shutil.copytree(self.base / "artefact", copy)
        done = [damage(rng, copy) for _ in range(rng.choice([1, 1, 2, 3]))]
        made_up = self.kind.seal is not None and rng.random() < 0.5
        if made_up:
            self._seal(copy)
        wrong, refused = [], False
        for name in rng.sample(sorted(self.kind.readers), k=min(2, len(self.kind.readers))):
            what = f"{self.kind.name}, {name}, after {', '.join(done)}{' and sealing' if made_up else ''}"
            try:
                found = self.kind.readers[name](self.base, copy)
            except ScreenpathError as error:
                refused = True
                if self.kind.mends and not made_up:
                    wrong.append(f"{what}: refused: {error}")
                continue
            except Exception as error:  # whatever it is: nobody may see it
                wrong.append(f"{what}: {type(error).__name__}: {error}")
                continue
            if found != self.whole[name] and not made_up and self.kind.hashed:
                wrong.append(f"{what}: other results")
        self.sealed += made_up
        self.noticed += refused
        self.harmless += not refused and not made_up
        return wrong

    def _seal(self, copy: Path) -> None:
        try:
            self.kind.seal(copy)
        except (ValueError, OSError, RecursionError, KeyError, TypeError):
            return  # nothing to be sealed is left


def too_slow(*_):
    """End a check that hangs."""
    raise TimeoutError(f"more than {SECONDS} s")


def fuzz(inputs: int, seed: int = 0, kinds=None, report=None, enough=lambda wrong: False) -> tuple[list, dict]:
    """Check so many inputs, or until there is ``enough`` in what is wrong with one: a control looks for one alone.

    Returns (seed, what is wrong) of failures, and how many inputs of each kind were refused, harmless, sealed.
    """
    from tests.safety.artefacts import KINDS

    failures = []
    previous = signal.signal(signal.SIGALRM, too_slow)
    with tempfile.TemporaryDirectory() as folder:
        subjects = [
            Subject(kind, Path(folder) / str(number))
            for number, kind in enumerate(KINDS)
            if not kinds or kind.name in kinds
        ]
        try:
            for number in range(seed, seed + inputs):
                rng = random.Random(number)
                signal.alarm(SECONDS)
                found = rng.choice(subjects).check(rng)
                failures += [(number, wrong) for wrong in found]
                if any(enough(wrong) for wrong in found):
                    break
                if report and (number - seed + 1) % 1000 == 0:
                    report(f"{number - seed + 1} inputs, {len(failures)} failures")
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, previous)
    return failures, {s.kind.name: (s.noticed, s.harmless, s.sealed) for s in subjects}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", help="Only this kind; may be repeated.")
    parser.add_argument("--plain", action="store_true", help="Kernels as Python, with bounds.")
    arguments = parser.parse_args()
    if arguments.plain and not os.environ.get("NUMBA_DISABLE_JIT"):
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    failures, tally = fuzz(
        arguments.inputs, arguments.seed, arguments.kind, lambda text: print(text, file=sys.stderr, flush=True)
    )
    for number, wrong in failures[:20]:
        print(f"seed {number}: {wrong}")
    for name, (noticed, harmless, sealed) in tally.items():
        print(f"{name}: {noticed} refused, {harmless} harmless, {sealed} sealed")
    print(f"{arguments.inputs} inputs, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
