"""Random files for the reader: no crash, no hang, and the same rows and faults as a slow, obviously correct parser.

Usage: python tests/safety/fuzz_reader.py --inputs 1000000 [--seed 0]

Each input is text made of legal and illegal pieces, a legal file with bytes changed, noise, or a damaged archive. It is
read in blocks of a random size, and shard-wise as ``convert`` does. An archive must give the original rows or an error.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import lzma
import random
import signal
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from screenpath.data.files.libsvm import Parser, parse_stream
from screenpath.data.files.source import open_source
from screenpath.data.safe.memory import MemoryLimit
from screenpath.errors import DataError, ScreenpathError
from tests.data import reference_parser

SECONDS = 20  # that one input may take
LABELS = [
    b"1", b"-1", b"+1", b"0", b"2.5", b"-0.0", b"1e3", b"1E-300",  # legal so far
    b"1e400", b"nan", b"inf", b"", b".", b"1,2", b"a",
]  # fmt: skip
INDICES = [
    b"1", b"2", b"3", b"7", b"10", b"999999", b"0", b"-1", b"-0", b"+4", b"007", b"2147483647", b"2147483648",
    b"9223372036854775807", b"9223372036854775808", b"999999999999999999", b"1000000000000000000", b"x", b"", b"1.5",
]  # fmt: skip
VALUES = [
    b"1", b"-1.5", b".5", b"5.", b"+2", b"1e-3", b"1E+5", b"0", b"-0", b"1e308", b"1.7976931348623159e308", b"1e309",
    b"4.9e-324", b"2e-324", b"123456789012345678901234567890", b"0.1000000000000000055511151231257827021181583404541",
    b"9007199254740993", b"1e", b"1e+", b"--1", b"1..2", b"", b"nan", b"-inf", b"0x10", b"1_000",
    b"1e99999999999999999999",
]  # fmt: skip
BLANKS = [b" ", b" ", b" ", b"  ", b"\t", b"\r", b"\x0b", b"\x0c"]
ENDS = [b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b"#x\n", b" # 1:1 \xff\n", b"\x00\n"]
BYTES = b"0123456789:.+-eE#qid \n\r\t\x00\x01\x0b\x1f,n\xff\xef\xbb\xbf"
BOM = b"\xef\xbb\xbf"
PACK = (gzip.compress, bz2.compress, lzma.compress)


def legal_text(rng) -> bytes:
    lines = []
    for _ in range(rng.randint(1, 5)):
        columns = sorted(rng.sample(range(1, 60), rng.randint(0, 5)))
        cells = [b"%d:%r" % (j, rng.gauss(0.0, 1.0)) for j in columns]
        lines.append(b" ".join([rng.choice(LABELS[:8]), *cells]))
    return b"\n".join(lines) + rng.choice([b"", b"\n"])


def pieces(rng) -> bytes:
    out = []
    for _ in range(rng.randint(1, 4)):
        out.append(rng.choice(LABELS) if rng.random() < 0.2 else rng.choice(LABELS[:8]))
        rising = 0
        for _ in range(rng.randint(0, 4)):
            rising += rng.randint(1, 8)
            index = rng.choice(INDICES) if rng.random() < 0.15 else str(rising).encode()
            value = rng.choice(VALUES)
            colon = b":" if rng.random() < 0.97 else b""
            token = b"qid:" + value if rng.random() < 0.03 else index + colon + value
            out += [rng.choice(BLANKS), token]
        out.append(rng.choice(ENDS))
    return b"".join(out)


def changed(rng, text: bytes) -> bytes:
    """Return text with a few bytes replaced, inserted, removed or doubled, or cut short."""
    data = bytearray(text)
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(data))
        kind = rng.randrange(5)
        if kind == 0 and at < len(data):
            data[at] = rng.choice(BYTES)
        elif kind == 1:
            data[at:at] = bytes([rng.choice(BYTES)])
        elif kind == 2:
            del data[at : at + rng.randint(1, 3)]
        elif kind == 3:
            data[at:at] = data[at : at + rng.randint(1, 29)]
        else:
            del data[at:]
    return bytes(data)


def compare(text: bytes, zero_based: bool, block: int) -> str | None:
    """Return what the reader does otherwise than the slow parser; None where they agree."""
    rows, faults = reference_parser.parse(text.removeprefix(BOM), zero_based)
    parser = Parser("text", zero_based, max_faults=1000)
    parse_stream(io.BytesIO(text), parser, block)
    if [fault.line for fault in parser.faults] != faults:
        return f"faults in the lines {[fault.line for fault in parser.faults]}, not {faults}"
    labels, values, counts = (part.finish() for part in (parser.labels, parser.values, parser.counts))
    if parser.words.texts:
        if [parser.words.names[int(code)] for code in labels] != [label for label, _ in rows]:
            return f"labels {labels}, {parser.words.names}"
    elif labels.tobytes() != np.array([label for label, _ in rows], dtype=np.float64).tobytes():
        return f"labels {labels}"
    if counts.tolist() != [len(pairs) for _, pairs in rows]:
        return f"entries {counts}"
    if parser.indices.finish().tolist() != [index for _, pairs in rows for index, _ in pairs]:
        return "other indices"
    if values.tobytes() != np.array([value for _, pairs in rows for _, value in pairs], dtype=np.float64).tobytes():
        return f"values {values}"
    return None


def check_archive(rng, text: bytes) -> str | None:
    """Damage a compressed file: it must give the original rows, an error, or be no archive any more."""
    packed = bytearray(rng.choice(PACK)(text))
    at = rng.randrange(len(packed))
    if rng.random() < 0.3:
        del packed[at:]
    else:
        packed[at] ^= 1 << rng.randrange(8)
    original, parser = Parser("text", False), Parser("archive", False)
    parse_stream(io.BytesIO(text), original)
    try:
        with open_source(io.BytesIO(bytes(packed))) as (stream, _):
            parse_stream(stream, parser)
    except DataError:
        return None
    if parser.faults or packed[:2] not in (b"\x1f\x8b", b"BZ", b"\xfd7"):
        return None
    same = parser.values.finish().tobytes() == original.values.finish().tobytes()
    return None if same else "a damaged archive was read as other data"


def check_bomb(rng) -> str | None:
    """Read an archive of many more bytes than its own under a limit: an error, and no memory taken."""
    line = rng.choice([b"1 1:1\n", b"1 " + b"1", b"1 1:0.5 "])
    packed = rng.choice(PACK)(line * 2_000_000)
    try:
        with open_source(io.BytesIO(packed)) as (stream, _):
            parse_stream(stream, Parser("bomb", False, limit=MemoryLimit(1 << 20)))
    except ScreenpathError:
        return None
    return "a bomb was read beyond the limit"


def check(seed: int) -> tuple[str | None, bytes]:
    """Return what is wrong with one input (None for nothing) and the input."""
    rng = random.Random(seed)
    kind = rng.random()
    if kind < 0.02:
        text = legal_text(rng)
        return check_archive(rng, text), text
    if kind < 0.45:
        text = pieces(rng)
    elif kind < 0.85:
        text = changed(rng, legal_text(rng))
    else:
        text = bytes(rng.choices(BYTES, k=rng.randrange(40)))
    if rng.random() < 0.05:
        text = BOM + text
    return compare(text, rng.random() < 0.3, rng.choice([3, 16, 64, 4096])), text


def too_slow(*_):
    raise TimeoutError(f"more than {SECONDS} s")


def fuzz(inputs: int, seed: int = 0, report=None) -> list:
    """Check so many inputs; return (seed, what is wrong, input) for those that fail."""
    failures = []
    previous = signal.signal(signal.SIGALRM, too_slow)
    try:
        for number in range(seed, seed + inputs):
            signal.alarm(SECONDS)
            try:
                wrong, text = check(number)
            except Exception as error:  # whatever it is: the reader must not raise it
                wrong, text = f"{type(error).__name__}: {error}", b"(see the seed)"
            if wrong:
                failures.append((number, wrong, text))
            if report and (number - seed + 1) % 50_000 == 0:
                report(f"{number - seed + 1} inputs, {len(failures)} failures")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    failures = fuzz(arguments.inputs, arguments.seed, lambda text: print(text, file=sys.stderr, flush=True))
    bomb = check_bomb(random.Random(arguments.seed))
    for number, wrong, text in failures[:20]:
        print(f"seed {number}: {wrong}\n  {text!r}")
    print(f"{arguments.inputs} inputs, {len(failures)} failures{'; ' + bomb if bomb else ''}")
    return 1 if failures or bomb else 0


if __name__ == "__main__":
    sys.exit(main())
