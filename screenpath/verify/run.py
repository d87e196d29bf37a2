"""What else a run folder says, compared with certificate and data, or listed as not covered.

The tables of what is compared stand in :mod:`verify.problem` (run.json) and :mod:`verify.steps` (step table, totals,
grid); the coefficients are compared here. A fact that none of them has is named in ``Verification.uncovered``: whoever
adds one to the folder has it there at once.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import zipfile
import zlib
from itertools import combinations
from pathlib import Path

import numpy as np

from screenpath.errors import ResourceError, RunFolderError, shown
from screenpath.verify import steps as tables
from screenpath.verify.data import usual
from screenpath.verify.exact import UNIT, fsum, gamma
from screenpath.verify.file import CERTIFIED, NAME, NUMBER, Hashed, memory, numbers_of
from screenpath.verify.problem import Problem, at, feature_names, leaves, same
from screenpath.verify.steps import OPTIONS, grid_faults

UNSEALED = 1  # the last schema version of run.json without hashes
CHUNK = 1 << 20
FILES = ("steps.csv", "steps.json", "steps.parquet", "coefficients.csv", "coefficients.npz", "cv.csv", "cv.json",
         "folds.csv", "bounds.csv", "gammas.csv", "rows.npz")  # fmt: skip
FOLDED = ("cv.csv", "cv.json", "folds.csv", "bounds.csv")  # of a cross-validation: verify.folds compares them
KEPT = "rows.npz"
RUN, TABLE = "run.json", "step table"

ROUNDED, TINY = 1e-5, 1e-11  # a part of a gap between steps, and of the primal value, that bounds on rounding may be
HALVED = 32  # numpy adds up to 128 numbers in eight rows, longer vectors half by half: roundings in a row, but log2
HEAD = 1 << 10  # bytes of the header of an array
UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError, RuntimeError, zipfile.BadZipFile,
    zlib.error, csv.Error,
)  # fmt: skip


def read_record(folder: Path) -> dict:
    try:
        record = json.loads((folder / RUN).read_text(encoding="utf-8"))
        (
            record["data"]["path"], record["options"]["coefficients"], record["data"]["sha256"],
            record["preparation"]["bias"], record["versions"].keys(), record["identity"].keys(),
            [entry["sha256"] for entry in record.get("files", {}).values()],
        )  # fmt: skip
        return record
    except UNREADABLE as error:
        raise unreadable(folder / RUN, error) from None


def differences(folder: Path, problem: Problem, steps: list, pairs: dict, certificate: dict) -> tuple[list, ...]:
    """Return (step or None, what differs) for all that the run folder says otherwise; what was compared, and what not.

    ``certificate`` is the hash of what was read of the certificate. The other files are read once: what is hashed here
    is what is compared.
    """
    record, header = problem.record, problem.header
    try:
        kind, coefficients = (record["options"][name] for name in ("format", "coefficients"))
        files = {"csv": ["steps.csv"], "json": ["steps.json"], "parquet": ["steps.csv", "steps.parquet"]}[kind]
        files += [] if coefficients == "none" else [f"coefficients.{coefficients}"]
        contents, entries = _read(folder, record, files)
        changed = _changed(record, {**entries, NAME: certificate})
        if changed:
            return [(None, f"{name} is not what the run wrote (its hash differs)") for name in changed], [], []
        found: list = []
        found += _other_files(folder, record, files)
        found += [(None, fault) for fault in problem.faults()]
        complete = all(entry["status"] != tables.SKIPPED for entry in steps)
        found += [(None, fault) for fault in grid_faults(header, record["options"], steps, complete)]
        found += _guarantee(record, problem, steps, pairs)
        found += _between(record, problem, steps, pairs)
        columns, table = _tables(folder, files, contents, found)
        found += tables.table_faults(header, record, columns, table, steps, pairs)
        if found:
            return found, [], []
        facts = problem.expected()
        facts |= tables.totals_of(table, steps)
        facts["columns"], facts["parameters"] = columns, record["parameters"]
        facts["options"] |= {name: at(record, ("options", name)) for name in OPTIONS if name in record["options"]}
        facts["options"] |= {name: record["options"][name] for name in ("coefficients", "format")}
        looked_at = ("guarantee", "between", "files", "sha256")  # above
        facts |= {name: record[name] for name in looked_at if name in record}
        if "grid" not in record:  # the first builds of 0.1.0 did not write it
            del facts["grid"]
        facts = {place: value for place, value in leaves(facts) if place not in problem.unknown}
        wrong = [place for place, wanted in facts.items() if not same(at(record, place), wanted)]
        found += [
            (None, f"run.json has another {place[-1]} than certificate and data ({'.'.join(place)})") for place in wrong
        ]
        uncovered = _uncovered(record, facts)
        if problem.source.spells and not problem.source.texts:
            uncovered.append(f"{RUN}: how labels that are numbers are written")
        known = tables.covered_columns(pairs, header)
        covered = [f"{RUN}: {'.'.join(place)}" for place in facts]
        covered += [f"{TABLE}: {name}" for name in columns if name in known]
        uncovered += [f"{TABLE}: {name}" for name in columns if name not in known]
        uncovered += [f"{KEPT}: all"] * (KEPT in record.get("files", {}))
        if any(entry["status"] != CERTIFIED for entry in steps):
            uncovered += [f"{TABLE}: steps that claim nothing", "coefficients: steps that claim nothing"]
    except (*UNREADABLE, ArithmeticError) as error:
        raise unreadable(folder / RUN, error) from None
    if record["options"]["coefficients"] != "none":
        solutions = {step: pair.solution for step, pair in pairs.items()}
        found += coefficient_faults(folder / files[-1], contents.get(files[-1]), header, len(steps), solutions)
        covered.append("coefficients: every value")
    return found, [name for name in covered if name not in uncovered], uncovered


def _other_files(folder: Path, record: dict, files: list[str]) -> list:
    """Return the files that are there although the options have no such file: of a fact there is one file."""
    listed, own = record.get("files", {}), FOLDED if "folds" in record["options"] else ()
    own = (*own, KEPT) if record["options"].get("keep_rows") else own
    wanted = (
        [NAME, *files] if record["status"] == tables.FINISHED else [NAME, *(f for f in files if "parquet" not in f)]
    )
    found = [(None, f"there is {name}, which a run of these options does not have") for name in FILES
             if name not in (*files, *own) and (name in listed or (folder / name).exists())]  # fmt: skip
    if record.get("schema_version", UNSEALED) != UNSEALED:
        found += [(None, f"run.json has no hash of {name}") for name in wanted if name not in listed]
    return found


def _tables(folder: Path, files: list[str], contents: dict, found: list) -> tuple[list[str], list]:
    """Return columns and rows of the step table; what the same table as Parquet says otherwise goes to ``found``."""
    file = folder / files[0]
    try:
        columns, table = tables.read_table(file, contents.get(file.name))
    except UNREADABLE as error:
        raise unreadable(file, error) from None
    other = folder / "steps.parquet"
    if other.name in files and other.name in contents:
        try:
            names, rows = tables.read_table(other, contents[other.name], len(table), 2 * len(contents[file.name]))
        except ImportError:
            raise RunFolderError(f"{other} takes pyarrow to read", "pip install pyarrow") from None
        except UNREADABLE as error:
            raise unreadable(other, error) from None
        cells = [[_cell(row.get(name)) for name in columns] for row in table]
        if names != columns or cells != [[_cell(row.get(name)) for name in columns] for row in rows]:
            found.append((None, f"{other.name} is not the table of {file.name}"))
    return columns, table


def _cell(value):
    """Return a cell as a number where it is one, as text where it is another; None where it is empty."""
    try:
        return tables.number(value)
    except ValueError:
        return value


def _guarantee(record: dict, problem: Problem, steps: list, pairs: dict) -> list:
    """Return what the guarantee of an eps-path says otherwise than its steps."""
    said, epsilon = record.get("guarantee"), problem.options.get("eps_path")
    done = [entry for entry in steps if entry["status"] != tables.SKIPPED]
    if epsilon is None or not done:
        return [] if said is None else [(None, "run.json has a guarantee that its options do not ask for")]
    if "alpha" in done[0]:
        return _plane(record, problem, done, pairs)
    found, known = [], steps[: len(done) + 1]  # a path that was stopped: its last pair serves up to the next step
    if said != {"epsilon": epsilon, "from": done[0]["C"], "to": known[-1]["C"]}:
        found.append((None, "run.json has another guarantee than options and steps"))
    for entry, after in zip(done, known[1:], strict=False):
        pair = pairs.get(entry["step"])
        if pair is None:
            problem.unknown.add(("guarantee", "epsilon"))
        elif not pair.serves(after["C"], epsilon):
            found.append((entry["step"], f"the step does not serve to within {epsilon:g} up to C = {after['C']:.6g}"))
    return found


def _plane(record: dict, problem: Problem, done: list, pairs: dict) -> list:
    """Return what the guarantee of a path that covers the plane says otherwise than its steps.

    A pair serves down to the next alpha of its row, or the end, and the next row's beta, or the end: it meets epsilon
    at the four corners of this rectangle, and as gap less epsilon times primal value is convex, inside.
    """
    said, epsilon = record["guarantee"] or {}, problem.options["eps_path"]
    (high, low), (top, bottom) = ([said[name][end] for end in ("from", "to")] for name in ("alpha", "beta"))
    ends = [(low, high * (problem.options["alpha_min_ratio"] or 0.01))]
    if record["status"] == tables.FINISHED:
        ends.append((bottom, top * (problem.options["beta_min_ratio"] or 0.05)))
    good = (said["epsilon"], high, top) == (epsilon, done[0]["alpha"], done[0]["beta"])
    if not good or any(abs(end - wanted) > tables.NEAR * wanted for end, wanted in ends):
        return [(None, "run.json has another guarantee than options and steps")]
    found, betas = [], list(dict.fromkeys(entry["beta"] for entry in done))
    for entry, after in zip(done, [*done[1:], {}], strict=True):
        lower = after["alpha"] if after.get("beta") == entry["beta"] else low
        floor = [*betas, bottom][betas.index(entry["beta"]) + 1]
        pair = pairs.get(entry["step"])
        if pair is None:
            problem.unknown.add(("guarantee", "epsilon"))
        elif not all(pair.moved(a, b).within(epsilon) for a in (entry["alpha"], lower) for b in (entry["beta"], floor)):
            found.append((entry["step"], f"the step does not serve to within {epsilon:g} down to {lower:g}, {floor:g}"))
    return found


def _between(record: dict, problem: Problem, steps: list, pairs: dict) -> list:
    """Return what run.json says otherwise of the worst gap over all C, interpolated between the steps.

    Between two, the mean of their pairs has a gap of at most ``(1 - s) G0 + s G1 + s (1 - s) K``; see the guide.
    """
    said, done = record.get("between"), [entry for entry in steps if entry["status"] != tables.SKIPPED]
    if said is None:  # as of earlier versions
        return []
    if record["parameters"] != ["C"] or "kernel" in problem.header or len(done) < 2:
        return [(None, "run.json has a gap between steps, and its steps have none")]
    if any(entry["step"] not in pairs for entry in done):
        problem.unknown |= {("between", name) for name in ("worst_rel_gap", "C")}
        return []
    free = problem.header.get("intercept") == "free"
    ends = [(entry, pairs[entry["step"]].solution[..., : -1 if free else None].ravel()) for entry in done]
    between = [(*one, *other) for one, other in zip(ends, ends[1:], strict=False)]
    worst, most = (max(_worst(*pair, loosely=loosely) for pair in between) for loosely in (False, True))
    low, high = sorted((done[0]["C"], done[-1]["C"]))
    # Bounds on rounding differ from those of the run, and so may the worst of places that are nearly as bad.
    around = [pair for pair in between if (pair[0]["C"] - said["C"]) * (pair[2]["C"] - said["C"]) <= 0.0]
    good = {
        "from": said["from"] == low,
        "to": said["to"] == high,
        # Above, with more for rounding, which is all there is where the steps are near to the optimum.
        "worst_rel_gap": (1.0 - ROUNDED) * worst - TINY <= said["worst_rel_gap"] <= (1.0 + ROUNDED) * most + TINY,
        "C": any(_worst(*pair, said["C"]) >= (1.0 - ROUNDED) * worst - TINY for pair in around),
    }
    return [(None, f"run.json has another {name} of the gap between steps") for name in good if not good[name]]


def _worst(one: dict, w: np.ndarray, other: dict, v: np.ndarray, C: float | None = None, loosely=False) -> float:
    """Return the largest relative gap between two steps, or that at C, over the least primal value that it allows.

    ``loosely``: with errors of the primal values, and of sums of squares, as large as a run may count them.
    """
    low, high, step = one["gap"], other["gap"], other["C"] - one["C"]
    losses = [(e["primal"] - 0.5 * fsum(x * x)) / e["C"] for e, x in ((one, w), (other, v))]
    times, more = (2.0, 4.0 * (w.size + 32) * UNIT) if loosely else (1.0, 0.0)
    errors = sum((times * e["primal_error"] + more * e["primal"]) / e["C"] for e in (one, other))
    moved = math.sqrt(fsum(np.square(v - w)))
    dual = max(moved - math.sqrt(2.0 * low) - math.sqrt(2.0 * high), 0.0)
    K = step * (losses[0] - losses[1]) + abs(step) * errors - 0.5 * (moved * moved + dual * dual)
    s = 0.5 * (K + high - low) / K if abs(high - low) < K else float(low < high)
    s = s if C is None else (C - one["C"]) / step
    gap = (1.0 - s) * low + s * high + s * (1.0 - s) * K
    least = min(e["primal"] - e["primal_error"] - e["gap"] for e in (one, other)) + gap
    return gap / least if gap > 0.0 else 0.0  # the optimum may be 0 at both


def _uncovered(record: dict, facts: dict) -> list[str]:
    """Return the names of what run.json says and nothing was compared with; of a part that is not at all, its own."""
    covered = {place[:k] for place in facts for k in range(1, len(place) + 1)}
    places = [place for place, _ in leaves(record) if place not in facts]
    free = {place[1] for place in places if place[0] == "options"}
    places += [("identity", name) for name in record["identity"] if name in free]
    names = [next((place[:k] for k in range(1, len(place)) if place[:k] not in covered), place) for place in places]
    return [f"{RUN}: {'.'.join(name)}" for name in dict.fromkeys(names)]


def how_much(names: list[str]) -> str:
    """Return the words for what was compared besides the certificate itself."""
    numbers = {RUN: "entries of run.json", TABLE: "columns of the step table"}
    counts = [(sum(name.startswith(part) for name in names), text) for part, text in numbers.items()]
    rest = [name for name in names if name.partition(": ")[0] not in numbers]
    return "covered: " + ", ".join([*(f"{count} {text}" for count, text in counts if count), *rest])


def not_covered(names: list[str]) -> list[str]:
    """Return the lines that name what is not covered: a line for each part of the folder."""
    parts: dict[str, dict[str, list]] = {}
    for name in names:
        part, _, entry = name.partition(": ")
        first, _, rest = entry.partition(".")
        parts.setdefault(part, {}).setdefault(first, []).append(rest)
    return [
        f"not covered, {part}: "
        + "; ".join(first + (f" ({', '.join(rest)})" if any(rest) else "") for first, rest in entries.items())
        for part, entries in parts.items()
    ]


def _read(folder: Path, record: dict, files: list[str]) -> tuple[dict, dict]:
    """Return the contents of ``files``, and the hashes of these and of what run.json has hashes of, by name.

    A file that is not there is left to whoever needs it; one outside of the folder has no hash.
    """
    contents: dict[str, bytes] = {}
    entries: dict[str, dict | None] = {}
    left = memory()
    for name in dict.fromkeys([*files, *record.get("files", {})]):
        file, hashed = folder / name, Hashed()
        try:
            if name == NAME or not file.exists():
                continue
            entries[name] = None
            if file.parent != folder:
                continue
            with open(file, "rb") as stream:
                if name in files:
                    left -= (size := os.fstat(stream.fileno()).st_size)
                    if left < 0:
                        raise ResourceError(f"{file} is more than this machine can hold", "use a machine with more")
                    contents[name] = hashed.add(stream.read(size))
                while hashed.add(stream.read(CHUNK)):
                    pass
            entries[name] = hashed.entry
        except UNREADABLE as error:
            raise unreadable(file, error) from None
    return contents, entries


def _changed(record: dict, entries: dict) -> list:
    """Return the names of the files that are not those of the hashes in run.json, itself among them.

    ``entries`` are the hashes of what was read. Runs of schema version 1 have no hashes.
    """
    content = {name: value for name, value in record.items() if name != "sha256"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    found = []
    if record.get("schema_version", UNSEALED) != UNSEALED or "sha256" in record:
        found += [RUN] if record.get("sha256") != hashlib.sha256(text.encode()).hexdigest() else []
    listed = record.get("files", {})
    return found + [name for name, entry in listed.items() if name in entries and entries[name] != entry]


def coefficient_faults(file: Path, content: bytes | None, header: dict, n_steps: int, solutions: dict) -> list:
    """Compare the coefficients with the solutions that were checked, scaled back; a kernel's belong to samples.

    ``content`` are the bytes of the file, None where there is none.
    """
    of_samples, found = "kernel" in header, []
    unit, d = ("sample", header["data"]["n_samples"]) if of_samples else ("feature", header["data"]["n_features"])
    width = 1 + (header["columns"].size if "columns" in header and not of_samples else d)
    written = _written(file, content, _cells(header), _columns(header), (n_steps, width))
    for (step, _), (features, _) in written.items():  # of steps that claim nothing too: no reader could tell which
        if not 0 <= step < n_steps:
            found.append((None, f"there are coefficients of a step {step}, which the path does not have"))
        elif np.unique(features).size != len(features):
            found.append((step, f"a {unit} has more than one coefficient"))
    if "columns" in header and not of_samples:
        numbers, d = np.append(0, header["columns"] + 1), header["columns"].size
    else:
        numbers = np.arange(1 + d)
    for step, block, solution in (
        (step, block, one) for step, several in solutions.items() for block, one in enumerate(np.atleast_2d(several))
    ):
        expected, parts = np.zeros(1 + d), []
        expected[1:] = solution[:d]
        if of_samples:
            parts += solution[d:].tolist()
        else:
            expected[1:] /= header.get("scale", 1.0)
            parts += [solution[d] * header["bias"]] if header["bias"] else []
            parts += (-expected[1:] * header["shift"]).tolist() if "shift" in header else []
        expected[0] = fsum(parts)
        features, values = written.get((step, block), ((), ()))
        got = np.zeros(1 + d)
        places = np.minimum(np.searchsorted(numbers, np.asarray(features, dtype=np.int64)), d)
        if np.any(numbers[places] != features):
            found.append((step, f"a {unit} that the data does not have has a coefficient"))
            continue
        got[places] = values
        different = np.flatnonzero(got != expected)
        if abs(got[0] - expected[0]) <= gamma(min(d, HALVED + d.bit_length()) + 4) * fsum(
            [abs(part) for part in parts]
        ):
            different = different[different != 0]
        if different.size:
            j = different[0]
            name = f"{unit} {numbers[j]}"
            found.append((step, f"{name} has the coefficient {got[j]!r}, certified is {expected[j]!r}"))
    return found


def _cells(header: dict) -> dict:
    """Return the number of the class for each cell that may name it; empty where the coefficients are of no class."""
    labels = (header["labels"] or {}).get("classes", [])
    if header.get("one_vs_one"):
        texts = [label if isinstance(label, str) else usual(label) for label in labels]
        return {shown("/".join(pair)): k for k, pair in enumerate(combinations(texts, 2))}
    names = header["data"].get("label_names")
    numbers = [float(label if names is None else names.index(label)) for label in labels]
    texts = [shown(label) if isinstance(label, str) else usual(label) for label in labels]
    return {**{text: k for k, text in enumerate(texts)}, **{repr(value): k for k, value in enumerate(numbers)}}


def _columns(header: dict) -> tuple[list[str], list[str] | None]:
    """Return the columns of ``coefficients.csv``, and the names of intercept and features, where these have some."""
    several, table = "classes" in (header["labels"] or {}), header["data"].get("table")
    unit = "sample" if "kernel" in header else "feature"
    names = None if table is None or unit == "sample" else ["intercept", *map(shown, feature_names(table))]
    return ["step", *(["class"] if several else []), unit, "value", *([] if names is None else ["name"])], names


def _written(file: Path, content: bytes | None, cells: dict, columns: tuple, shape: tuple[int, int]) -> dict:
    """Return features and values of the coefficients by step and number of the class, which is 0 where there is one.

    Of ``shape``, steps and coefficients of each, are those that a matrix has at most.
    """
    try:
        if content is None:
            raise FileNotFoundError(file)
        if file.suffix == ".npz":
            blocks = max(len(set(cells.values())), 1)
            rows = shape[0] * blocks
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                edges = _array(archive, "indptr", rows + 1)
                indices, data = (_array(archive, name, rows * shape[1]) for name in ("indices", "data"))
            if not edges[0] == 0 <= np.diff(edges).min(initial=0) <= edges[-1] == indices.size == data.size:
                raise ValueError("its rows are not those of a matrix")
            parts = [(indices[a:b], data[a:b]) for a, b in zip(edges, edges[1:], strict=False)]
            return {divmod(row, blocks): part for row, part in enumerate(parts)}
        found: dict[tuple[int, int], tuple[list[int], list[float]]] = {}
        lines = csv.reader(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline=""))
        head = next(lines, [])
        if head != columns[0]:
            raise ValueError(f"its columns are not {', '.join(columns[0])}")
        for line in lines:
            step, *cell, feature, value = line[: 4 if cells else 3]
            block = cells[cell[0]] if cells else 0
            if len(line) != len(head) or columns[1] is not None and line[-1] != columns[1][int(feature)]:
                raise ValueError(f"step {step}: a coefficient has the name of another feature")
            features, values = found.setdefault((int(step), block), ([], []))
            features.append(int(feature))
            values.append(float(value))
        return found
    except UNREADABLE as error:
        raise unreadable(file, error) from None


def _array(archive: zipfile.ZipFile, name: str, most: int) -> np.ndarray:
    """Return a vector of an archive of numpy's; none of more than ``most`` numbers is unfolded."""
    about = archive.getinfo(f"{name}.npy")
    if about.file_size > HEAD + NUMBER * most:
        raise ValueError(f"{name} has {about.file_size:,} bytes: more than the certificate's steps have coefficients")
    if about.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others may take any memory
        raise ValueError(f"{name} is compressed in a way that runs do not use")
    with archive.open(about) as member:
        return numbers_of(member.read(about.file_size), name)


def unreadable(file: Path, error: Exception) -> RunFolderError:
    """Return the error for a file of a run folder that is lost, or holds something else."""
    again = "compute the path again with `certificate` and `force`"
    if isinstance(error, FileNotFoundError):
        return RunFolderError(
            f"{file.parent} has lost its {file.name}", f"copy it from where the run was made, or {again}"
        )
    return RunFolderError(f"{file} is damaged: {error}", again)
