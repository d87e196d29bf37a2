"""The options of a run as a whole: contradictions are refused, dependent defaults filled in."""

from __future__ import annotations

from pathlib import Path

from screenpath.data.safe.plugins import OPTIONS, find_plugins
from screenpath.data.words.tables import need_parquet
from screenpath.errors import UsageError
from screenpath.store.parts import check_part

INPUTS = ("data", "test", "weights", "penalty_weights", "fold_file")  # options that name files which a run reads


def check_options(options: dict) -> None:
    """Refuse options that contradict each other; fill in, in place, defaults that depend on others."""
    named = [options[name] for name in OPTIONS]
    if not all(isinstance(one, str) and ".py" not in one.lower() for one in named):
        find_plugins(options)
    if options["out"] == "-":
        for name in ("resume", "force"):
            if options[name]:
                raise UsageError(f"`{name}` needs a run folder", "give one: `out=DIR`")
        if options["coefficients"] not in (None, "none"):
            raise UsageError("`out=-` writes the step table only", "give a folder with `out=DIR` to get coefficients")
        if options["format"] == "parquet":
            raise UsageError("`format=parquet` needs a run folder", "give one: `out=DIR`, or write csv or json")
        options["coefficients"] = "none"
    if options["format"] == "parquet":
        need_parquet()
    options["coefficients"] = options["coefficients"] or "csv"
    if options["resume"] and options["force"]:
        raise UsageError("`resume` continues a run and `force` replaces it", "use one of them")
    if options["quiet"] and options["progress"]:
        raise UsageError("`quiet` and `progress` contradict each other", "use one of them")
    check_part(options)
    if options.get("certificate"):
        _check_certificate(options)
    if options["data"] == "-" and options["test"] == "-":
        raise UsageError("DATA and `test` cannot both be stdin")


def _check_certificate(options: dict) -> None:
    """Refuse a certificate that :mod:`screenpath.verify` could not check."""
    if options["out"] == "-":
        raise UsageError("`certificate` needs a run folder", "give one: `out=DIR`")
    if options["dtype"] != "float64":
        raise UsageError("`certificate` proves the numbers of the file, `dtype=float32` rounds them", "leave one out")
    if not isinstance(options["data"], str):
        raise UsageError("`certificate` is checked against a file, the data are arrays", "name a file")
    if Path(options["data"]).is_dir():
        raise UsageError("`certificate` is checked against a file, DATA is a folder", "name the file it was made of")
    if options.get("one_vs_rest"):
        raise UsageError("`certificate` is of one path, `one_vs_rest` computes several", "use `positive=LABEL`")


def default_folder(name: str, data) -> Path:
    """Return ``runs/NAME-STEM``; the stem is the file's name without endings of compression and format."""
    path = Path("stdin" if data == "-" else data if isinstance(data, str) else "arrays")
    if path.suffix in (".gz", ".bz2", ".xz"):
        path = path.with_suffix("")
    return Path("runs") / f"{name}-{path.stem}"
