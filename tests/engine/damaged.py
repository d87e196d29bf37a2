"""What the tests of damaged run folders share: the commands that make and read them, and how results are compared."""

import json
import signal

from screenpath.cv import saved
from tests.cli.conftest import without_times

FREE = ("--grid", "6", "--cmax", "1", "--quiet")
GRID = (*FREE, "--bias", "1")
COMMANDS = {
    "csv": ("svm", "data", *GRID),
    "npz": ("svm", "data", *FREE, "--coefficients", "npz", "--format", "json", "--test", "data"),
    "kernel": ("svm", "data", "--kernel", "rbf", *FREE), "l1": ("l1svm", "data", "--grid", "5", "--quiet"),
    "sparse": ("sparse-svm", "data", "--betas", "2", "--alphas", "3", "--quiet"),
    "chunk": ("svm", "data", "--rule", "ssnsv", "--chunk", "3", *GRID),
    "cv": ("cv", "svm", "data", "--grid", "4", "--folds", "3", "--certify", "--quiet"),
    "proof": ("svm", "data", "--certificate", *GRID),
}  # fmt: skip
READERS = (
    ("predict", "RUN", "data", "--step", "0", "--decision"),
    ("export", "RUN", "--step", "2", "--to", "json", "-o", "-"), ("plot", "RUN", "--terminal"),
    ("plot", "RUN", "--terminal", "--kind", "coefficients"), ("show", "RUN", "--step", "0"),
)  # fmt: skip
# Entries of run.json and cv.json that differ between runs with the same numbers.
APART = (
    "seconds", "files", "sha256", "totals", "command", "options", "machine", "working_directory", "started", "ended",
)  # fmt: skip
CUT = 2  # step behind which a signal stops a run


def stop_among_folds(patch) -> None:
    """Have a signal sent in the second of the folds."""
    plain, calls = saved.FoldFile.save, []

    def save(self, *arguments):
        plain(self, *arguments)
        calls.append(self)
        if len(calls) == 6:
            signal.raise_signal(signal.SIGTERM)

    patch.setattr(saved.FoldFile, "save", save)


def read(call, name, commands=READERS):
    """Return code, output and messages of the commands that read a run folder."""
    return [call(*(name if word == "RUN" else word for word in words)) for words in commands]


def one_error(result) -> bool:
    """Tell whether a call ended with one message that says what to do."""
    lines = result.err.strip().splitlines()
    return result.code == 1 and result.out == "" and result.err.count("error:") == 1 and len(lines) == 2


def content(folder) -> dict:
    found = {}
    for path in (path for path in sorted(folder.rglob("*")) if path.is_file()):
        name = str(path.relative_to(folder))
        if path.suffix in (".csv", ".json") and name.startswith(("steps", "folds")):
            found[name] = without_times(path)
        elif name in ("run.json", "cv.json"):
            record = json.loads(path.read_text())
            found[name] = {n: value for n, value in record.items() if n not in APART}
        else:
            found[name] = path.read_bytes()
    for record in (found[name] for name in ("run.json",) if name in found):
        record.pop("kernel", None)  # its seconds
    return found
