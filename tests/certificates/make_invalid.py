"""Make the invalid half of the corpus: each a run of the valid half that breaks one restriction of the page.

Usage: python tests/certificates/make_invalid.py [VALID [FOLDER]]      (default: the folders valid and invalid here)

Hashes are made good again where they are not what is broken: each file has one fault.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from operator import itemgetter
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.certificates.mutants import MAGIC, Frames, framed, packed  # noqa: E402
from tests.run_folders import seal  # noqa: E402


def changing(part):
    """Return what makes changes of the entries of a part of the problem."""

    def made(**changes):
        return lambda frames, folder: part(frames.header[1]).update(changes)

    return made


header, about, kernel = changing(lambda problem: problem), changing(itemgetter("data")), changing(itemgetter("kernel"))


def arrays(step: int | None, **changes):
    """Change arrays of a step (None: of the problem) by functions of them, or to others."""

    def change(frames: Frames, folder: Path) -> None:
        arrays = (frames.header if step is None else frames.steps[step])[2]
        for name, value in changes.items():
            found = value(arrays[name].copy()) if callable(value) else np.asarray(value)
            arrays[name] = arrays[name] if found is None else found

    return change


def entries(step: int, **changes):
    """Change entries of a step: by a function of the number, or to another one."""

    def change(frames: Frames, folder: Path) -> None:
        found = frames.steps[step][1]
        found.update({name: value(found[name]) if callable(value) else value for name, value in changes.items()})

    return change


def frames_as(order):
    """Put the frames in another order, which a function makes of their list."""

    def change(frames: Frames, folder: Path) -> None:
        frames.found = order(frames.found)

    return change


def whole(content):
    """Return bytes that are a function of those of the file."""
    return lambda frames, folder: content(frames.packed())


def data(edit, hashed: bool = True):
    """Change the text of the data; with ``hashed``, the certificate has the hash of what is there then."""

    def change(frames: Frames, folder: Path) -> None:
        file = folder / "data.libsvm"
        file.write_text(edit(file.read_text()))
        if hashed:
            frames.header[1]["data"]["sha256"] = digest(file.read_text(), frames.header[1]["data"])

    return change


def digest(text: str, about: dict) -> str:
    """Return the hash of LIBSVM text, whatever it is that makes it none."""
    rows = [line.replace(":", " ").split() for line in text.splitlines()]
    index = [int(float(token)) - 1 for row in rows for token in row[1::2]]
    values = [float(token) for row in rows for token in row[2::2]]
    edges = np.cumsum([0, *(len(row) // 2 for row in rows)])
    found = hashlib.sha256(repr((about["n_samples"], about["n_features"])).encode())
    for part, kind in ((index, "<i8"), (edges, "<i8"), (values, "<f8"), ([float(row[0]) for row in rows], "<f8")):
        found.update(np.array(part, kind).tobytes())
    return found.hexdigest()


def text_of(name: str, old: str, new: str, sealed: bool = True):
    """Change a file of the folder; with ``sealed``, run.json has its new hash."""

    def change(frames: Frames, folder: Path) -> str:
        file = folder / name
        assert old in (text := file.read_text())
        file.write_text(text.replace(old, new))
        return "" if sealed else UNSEALED

    return change


def ends_of(codes: np.ndarray, k: int, code: int) -> np.ndarray:
    """Set a code of two bits."""
    codes[k // 4] = int(codes[k // 4]) & ~(3 << 2 * (k % 4)) | code << 2 * (k % 4)
    return codes


def code(name: str, k: int, value: int):
    return {name: lambda codes: ends_of(codes, k, value)}


def claimed(step: int, own: bool, between: bool = False):
    """Claim that this step or the one before proves what it says of the rows at an end (``between``: of the others)."""

    def change(frames: Frames, folder: Path) -> None:
        found = frames.steps[step][2]
        for k in range(4 * found["states"].size):
            if (found["states"][k // 4] >> 2 * (k % 4) & 3 == 2) == between:
                found["claims"] = ends_of(found["claims"].copy(), k, 1 if own else 2)

    return change


def claimed_behind(step: int, k: int, value: int):
    """Let the frame N about a step claim something of a row."""

    def change(frames: Frames, folder: Path) -> None:
        (found,) = (arrays for kind, entries, arrays in frames.found if (kind, entries.get("step")) == (b"N", step))
        found["claims"] = ends_of(found["claims"].copy(), k, value)

    return change


def raw(entries_of: dict, listed: list, content: bytes):
    """Put a frame in the place of the first step's."""

    def change(frames: Frames, folder: Path) -> bytes:
        kind, fields, _ = frames.found[1]
        frame = packed(kind, {**fields, **entries_of}, {}, listed, content)
        return MAGIC + b"".join(packed(*part) if k != 1 else frame for k, part in enumerate(frames.found))

    return change


def longer(frames: Frames, folder: Path) -> bytes:
    """Put bytes after the end of what zlib unfolds."""
    kind, fields, found = frames.found[1]
    content = packed(kind, fields, found)[13:] + b"more"
    return MAGIC + b"".join(packed(*p) if k != 1 else framed(kind, content) for k, p in enumerate(frames.found))


UNSEALED = "unsealed"  # run.json has the hashes of what was there before
# name: run of the valid half, change
CASES = {
    # section 4: the bytes
    "bytes-first-line": ("svm", whole(lambda b: b.replace(b"certificate 1", b"certificate 2"))),
    "bytes-crc": ("svm", whole(lambda b: b[:60] + bytes([b[60] ^ 1]) + b[61:])),
    "bytes-cut-short": ("svm", whole(lambda b: b[:-3])),
    "bytes-no-end": ("svm", frames_as(lambda found: found[:-1])),
    "bytes-after-the-end": ("svm", frames_as(lambda found: [*found, found[1]])),
    "bytes-no-problem": ("svm", frames_as(lambda found: found[1:])),
    "bytes-two-problems": ("svm", frames_as(lambda found: [found[0], *found])),
    "bytes-unknown-frame": ("svm", frames_as(lambda found: [*found[:-1], [b"X", {}, {}], found[-1]])),
    "bytes-steps-swapped": ("svm-free", frames_as(lambda found: [found[0], found[2], found[1], *found[3:]])),
    "bytes-step-missing": ("svm-free", frames_as(lambda found: [found[0], *found[2:]])),
    "bytes-no-step": ("svm", frames_as(lambda found: [found[0], [b"E", {"steps": 0}, {}]])),
    "bytes-other-count-of-steps": ("svm", frames_as(lambda found: [*found[:-1], [b"E", {"steps": 2}, {}]])),
    "bytes-next-of-another-step": ("svm", frames_as(lambda f: [*f[:3], [b"N", {"step": 1}, f[3][2]], *f[4:]])),
    "bytes-not-zlib": ("svm", lambda frames, folder: MAGIC + framed(b"H", b"{}")),
    "bytes-after-zlib": ("svm", longer),
    "bytes-fewer-than-arrays": ("svm", raw({}, [["w", "f8", 3]], b"\0" * 23)),
    "bytes-more-than-arrays": ("svm", raw({}, [["w", "f8", 3]], b"\0" * 25)),
    "bytes-unknown-type": ("svm", raw({}, [["w", "f4", 3]], b"\0" * 12)),
    "bytes-two-arrays-of-one-name": ("svm", raw({}, [["w", "f8", 1], ["w", "f8", 1]], b"\0" * 16)),
    "bytes-two-frames-N": ("claims-next", frames_as(lambda found: [*found[:3], found[3], *found[3:]])),
    "bytes-array-named-as-an-entry": ("svm", raw({}, [["C", "f8", 1]], b"\0" * 8)),
    # section 2 and 3: the problem
    "problem-unknown-model": ("svm", header(model="ridge")),
    "problem-unknown-scaling": ("svm", header(scaling="rank")),
    "problem-unknown-loss": ("sparse", header(loss="logistic")),
    "problem-unknown-kernel": ("svm-linear-kernel", kernel(kernel="sigmoid")),
    "problem-tolerance-0": ("svm", header(tol=0.0)),
    "problem-tau-1": ("quantile", header(tau=1.0)),
    "problem-epsilon-negative": ("svr", header(epsilon=-0.3)),
    "problem-smoothing-1": ("sparse", header(smoothing=1.0)),
    "problem-smoothing-0": ("huber", header(smoothing=0.0)),
    "problem-smoothing-without-a-kernel": ("lad", header(smoothing=0.5)),
    "problem-sign-2": ("huber-nonnegative", arrays(None, signs=lambda signs: 2.0 * signs)),
    "problem-bias-infinite": ("svm-bias", header(bias=float("inf"))),
    "problem-bias-of-a-free-intercept": ("svm-free", header(bias=2.0)),
    "problem-bias-beside-a-kernel": ("svm-linear-kernel", header(bias=1.0)),
    "problem-kernel-of-a-sparse-model": ("sparse", header(kernel={"kernel": "linear", "constant": 0.0})),
    "problem-rbf-gamma-negative": ("svm-rbf", kernel(gamma=-0.3)),
    "problem-poly-coef0-negative": ("svm-poly", kernel(coef0=-1.0)),
    "problem-poly-degree-0": ("svm-poly", kernel(degree=0)),
    "problem-kernel-constant-negative": ("svm-rbf", kernel(constant=-0.25)),
    "problem-classes-not-rising": ("sparse-classes", header(labels={"classes": [1.0, 0.0, 2.0]})),
    "problem-two-classes": ("sparse", header(labels={"classes": [-1.0, 1.0]})),
    "problem-classes-of-another-model": ("svm", header(labels={"classes": [-1.0, 0.0, 1.0]})),
    "problem-label-not-in-the-map": ("svm", header(labels={"+1": 1.0, "-1": 0.0})),
    "problem-label-named-twice": ("svm-words", about(label_names=["no", "yes", "no"])),
    "problem-weight-negative": ("svm-sample-weights", arrays(None, weights=lambda w: -w)),
    "problem-weights-of-another-size": ("l1svm-l2", arrays(None, weights=lambda w: np.append(w, 1.0))),
    "problem-weights-of-another-type": ("svm-class-weights", arrays(None, weights=lambda w: w.astype(np.int64))),
    "problem-scale-negative": ("svm-maxabs", arrays(None, scale=lambda s: -s)),
    "problem-scale-of-another-size": ("svm-maxabs", arrays(None, scale=lambda s: np.append(s, 1.0))),
    "problem-scale-missing": ("svm-standard", lambda f, _: f.header[2].pop("scale") is None),
    "problem-shift-without-a-free-intercept": ("svm", lambda f, _: f.header[2].update(shift=np.zeros(3))),
    "problem-scale-beside-l2": ("svm-l2", lambda f, _: f.header[2].update(scale=np.ones(3))),
    "problem-shift-beside-l2": ("svr-free", lambda f, _: f.header[2].update(shift=np.zeros(3))),
    "problem-columns-not-rising": ("svm-few-columns", arrays(None, columns=lambda c: c[::-1].copy())),
    "problem-columns-of-another-type": ("svm-few-columns", arrays(None, columns=lambda c: c.astype(float))),
    "problem-column-missing": ("svm-few-columns", arrays(None, columns=[0, 68, 29999999])),
    # section 3: the data
    "data-another-value": ("svm", data(lambda text: text.replace("1:0.5", "1:0.25"), hashed=False)),
    "data-row-missing": ("svm", data(lambda text: text[text.index("\n") + 1 :], hashed=False)),
    "data-row-more": ("svm", data(lambda text: text + "1 1:3\n", hashed=False)),
    "data-rows-swapped": ("svm-free", data(lambda text: "".join(sorted(text.splitlines(True))), hashed=False)),
    "data-other-number-of-features": ("svm", about(n_features=4)),
    "data-index-twice": ("svm", data(lambda text: text.replace("1:0.5 2:-1.25", "1:0.5 1:0 2:-1.25"))),
    "data-indices-not-rising": ("svm", data(lambda text: text.replace("1:0.5 2:-1.25", "2:-1.25 1:0.5"))),
    "data-index-no-integer": ("svm", data(lambda text: text.replace("1:0.5", "1.5:0.5"))),
    "data-value-no-number": ("svm", data(lambda text: text.replace("1:0.5", "1:nan"))),
    # section 5: a step
    "step-theta-above-its-interval": ("svm", arrays(2, between=lambda b: b + 1.0)),
    "step-theta-negative": ("svr", arrays(2, between=lambda b: np.append(-b[:1], b[1:]))),
    "step-theta-below-its-interval": ("huber", arrays(2, between=lambda b: np.append(-1.5, b[1:]))),
    "step-theta-no-number": ("svm", arrays(2, between=lambda b: b * np.nan)),
    "step-state-3": ("svm", arrays(1, **code("states", 0, 3))),
    "step-theta-in-its-own-class": ("sparse-classes", arrays(0, **code("states", 0, 1))),
    "step-between-too-few": ("svm", arrays(2, between=lambda b: b[:-1])),
    "step-between-too-many": ("svm", arrays(2, between=lambda b: np.append(b, 0.5))),
    "step-w-too-short": ("svm", arrays(1, w=lambda w: w[:-1])),
    "step-w-infinite": ("svm", arrays(1, w=lambda w: np.append(w[:-1], np.inf))),
    "step-index-not-rising": ("sparse", arrays(3, index=lambda index: index[::-1].copy())),
    "step-index-too-large": ("sparse", arrays(3, index=lambda index: np.append(index[:-1], 3))),
    "step-C-0": ("svm", entries(0, C=0.0)),
    "step-alpha-negative": ("sparse", entries(3, alpha=lambda a: -a)),
    "step-beta-0": ("sparse", entries(3, beta=0.0)),
    "step-another-smoothing": ("lad-smoothed", header(smoothing=0.5)),
    "step-another-C": ("svm", entries(2, C=lambda C: C * (1.0 + 1e-6))),
    "step-another-tolerance": ("svm", header(tol=1e-9)),
    "step-gap-too-small": ("svm", entries(2, gap=lambda gap: gap * 0.999)),
    "step-gap-no-number": ("svm", entries(2, gap=float("nan"))),
    "step-gap-beyond-the-tolerance": ("svm", entries(2, gap=lambda gap: gap * 1e4)),
    "step-another-primal": ("svm", entries(1, primal=lambda primal: primal * (1.0 + 1e-8))),
    "step-another-primal-behind-its-error": ("svm", entries(1, primal=lambda p: p * 1.001, primal_error=1e9)),
    "step-primal-error-infinite": ("svm", entries(1, primal_error=float("inf"))),
    "step-primal-error-no-double": ("svm", entries(1, primal_error=1)),
    "step-weight-of-another-sign": ("sparse-nonnegative-free", arrays(None, signs=lambda signs: -signs)),
    "step-another-w": ("svm", arrays(2, w=lambda w: w * (1.0 + 1e-2))),
    "step-another-intercept": ("svm-free", arrays(2, w=lambda w: np.append(w[:-1], w[-1] + 0.01))),
    "step-another-intercept-behind-a-kernel": ("svm-rbf-free", entries(2, b=lambda b: b + 0.01)),
    "step-another-theta": ("lad", arrays(1, between=lambda b: b * 0.9)),
    "step-no-room-for-a-free-intercept": ("svm-free", arrays(0, states=np.uint8([17, 17]), between=np.zeros(0))),
    "step-theta-too-large-without-ridge": ("sparse-no-ridge", arrays(3, between=lambda b: b * 0.999)),
    "step-another-b": ("l1svm", entries(2, b=lambda b: b + 0.001)),
    "step-another-b-off": ("l1svm-far", entries(2, b_off=0.1)),
    "step-lambda-smaller": ("l1svm", entries(2, **{"lambda": lambda value: value * 0.99})),
    # section 6: claims
    "claim-of-a-row-between": ("svm", claimed(2, own=True, between=True)),
    "claim-of-a-row-without-weight": ("svm-sample-weights", claimed(1, own=True)),
    "claim-not-proven-by-the-step-before": ("svm", claimed(2, own=False)),
    "claim-not-proven-by-the-step-after": ("claims-after", arrays(0, **code("claims", 0, 3))),
    "claim-of-a-frame-N-not-proven": ("claims-next", claimed_behind(1, 6, 3)),
    "claim-of-a-frame-N-of-a-row-between": ("claims-next", claimed_behind(1, 1, 1)),
    "claim-by-a-step-that-is-not-there": ("svm", arrays(0, **code("claims", 1, 2))),
    "claim-of-a-smoothed-loss": ("lad-smoothed", arrays(0, **code("claims", 0, 1))),
    "claim-with-a-free-intercept": ("svm-free", arrays(1, **code("claims", 0, 1))),
    # section 8: the folder
    "folder-another-certificate": ("svm", lambda f, _: f.header[1].update(tol=1e-5) or UNSEALED),
    "folder-run-json-changed": ("svm", text_of("run.json", '"certified": 3', '"certified": 2', sealed=False)),
    "folder-steps-changed": ("svm", text_of("steps.csv", "newton", "dual", sealed=False)),
    "folder-steps-of-another-primal": ("svm", text_of("steps.csv", ",certified,0.3", ",certified,0.4")),
    "folder-coefficients-changed": ("svm", text_of("coefficients.csv", "\n2,1,", "\n2,1,1")),
    "folder-coefficient-twice": ("svm", text_of("coefficients.csv", "\n2,1,", "\n2,1,0.5\n2,1,")),
    "folder-coefficients-of-no-step": ("svm", text_of("coefficients.csv", "\n2,1,", "\n7,1,2.0\n2,1,")),
}  # fmt: skip


def make(name: str, valid: Path, out: Path) -> Path:
    base, change = CASES[name]
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(valid / base, folder)
    frames = Frames((folder / "certificate.bin").read_bytes())
    found = change(frames, folder)
    (folder / "certificate.bin").write_bytes(found if isinstance(found, bytes) else frames.packed())
    about = json.loads((folder / "run.json").read_text())
    if found != UNSEALED:
        for key in ("data", "identity"):
            about[key]["data_sha256" if key == "identity" else "sha256"] = (
                frames.found[0][1].get("data", {}).get("sha256")
            )
        seal(folder, about)
    return folder


def main() -> None:
    valid, out = (Path(a) for a in (*sys.argv[1:], HERE / "valid", HERE / "invalid")[:2])
    for name in CASES:
        make(name, valid, out)


if __name__ == "__main__":
    main()
