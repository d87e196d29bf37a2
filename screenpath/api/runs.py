"""The Python functions of run folders: what the shell's commands do, with the same options and defaults.

What they cannot do they say by a :class:`screenpath.errors.ScreenpathError`: of data, usage, run folders or resources.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from screenpath.catalogue.option import Option, completed
from screenpath.catalogue.spec import Spec
from screenpath.catalogue.specs import spec_of
from screenpath.data.files.arrays import is_table
from screenpath.data.files.dataset import FileLike, RowsLike
from screenpath.data.safe.memory import MemoryLimit
from screenpath.engine.stored import StoredPath, load_run
from screenpath.errors import DataError, UsageError, brief, file_name, folder_of
from screenpath.numbers import sparse as sp

if TYPE_CHECKING:
    from screenpath.report.show import RunSummary
    from screenpath.report.side_by_side import RunComparison

DataLike: TypeAlias = FileLike | tuple[RowsLike, ArrayLike]
RunLike: TypeAlias = StoredPath | FileLike


def run(model: str, data: DataLike, **options: Any) -> StoredPath:
    """Compute a path into a run folder, as ``screenpath MODEL DATA`` does.

    Parameters
    ----------
    model : {"svm", "lad", "quantile", "svr", "l1svm", "sparse-svm", "huber", "sparse-lad", ...}
    data : path-like or tuple of arrays (X, y)
        LIBSVM text or CSV (plain, .gz, .bz2, .xz), Parquet, a folder of shards, or arrays; labels may be texts.
    **options
        Those of the command, with ``_`` for ``-`` and the same defaults: ``options_of(model)``. ``weights`` and
        ``test`` may be arrays, too, ``class_weight`` a dict.

    Returns
    -------
    StoredPath
        The path in the folder. ``resume=True`` continues a run that was stopped.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; finished steps are in the folder.

    Examples
    --------
    >>> import screenpath
    >>> path = screenpath.run("svm", "data.libsvm", grid=50, audit=True, out="runs/a")  # doctest: +SKIP
    >>> path.certified, path.table()[0]["rejection_ratio"]  # doctest: +SKIP
    """
    from screenpath.engine.session import Session

    spec = spec_of(model, options.get("penalty"))
    options = spec.completed(options)
    return _session(Session, spec.resolved(spec, options), options, data, ["screenpath.run", model])


def cross_validate(model: str, data: DataLike, **options: Any) -> StoredPath:
    """Cross-validate a path and compute it on all data, as ``screenpath cv MODEL DATA`` does.

    Parameters
    ----------
    model, data
        As of :func:`run`.
    **options
        Those of the command: ``options_of(model, cv=True)``.

    Returns
    -------
    StoredPath
        The path on all data with the columns ``cv_SCORE`` and ``cv_SCORE_se``; :meth:`StoredPath.best` chooses a step,
        ``cv.json``, ``cv.csv`` and ``folds.csv`` in the folder have the rest.
    """
    from screenpath.cv.rows_session import session_of
    from screenpath.engine.options import cv_resolved, cv_spec

    spec = cv_spec(spec_of(model, options.get("penalty")))
    resolved, options = cv_resolved(spec, spec.completed(options))
    return _session(session_of(options), resolved, options, data, ["screenpath.cross_validate", model])


def options_of(model: str, cv: bool = False) -> dict[str, tuple[Any, str]]:
    """Return the options of a model's path, or of its cross-validation: by name, each with its default and its help."""
    from screenpath.engine.options import cv_spec

    spec = spec_of(model)
    return {one.name: (one.default, one.said) for one in (cv_spec(spec) if cv else spec).path_options}


def compare(model: str, data: DataLike | None = None, **options: Any) -> list[dict]:
    """Walk one path by several rules in turn, as ``screenpath compare MODEL DATA`` does: one row a variant with seconds
    by phase, data passes, mean rejection and speed-up.

    ``model`` and ``data`` as of :func:`run`, no data with ``attack=N``. Options are those of the command, for example
    ``rules=["none", "dvi", "dvi+gap"]`` and ``repeats``.
    """
    from screenpath.engine.studies import study, study_options
    from screenpath.report.console import Console

    model = spec_of(model, options.get("penalty")).name
    options = completed(study_options(model), options, f"a comparison of {model}")
    return study(model, {**options, "data": None if data is None else _data(data)}, Console(True, None))[0]


def merge_runs(paths: Sequence[RunLike], out: FileLike, *, force: bool = False) -> StoredPath:
    """Merge runs that are parts of one into the run folder ``out``, as ``screenpath merge RUN RUN ...`` does.

    They are those of ``part="1/K"`` to ``part="K/K"``, or differ only in the values of their grid; the message of a
    :class:`UsageError` lists other differences. ``force`` replaces the run in the folder.
    """
    from screenpath.cv.merge import merge_runs as merge

    merge([folder_of(path) for path in _several(paths)], Path(file_name(out, "out")), force)
    return load_run(out)


def export_run(
    path: RunLike, to: str, out: FileLike, *, step: int | str = "best", force: bool = False,
    compress: float | None = None,
) -> Path:  # fmt: skip
    """Write a step of a run (or of its folder) as a model file, as ``screenpath export RUN`` does.

    ``to`` is one of the formats of the command: ``liblinear``, ``json``, ...; the step is named as there: ``best``,
    ``one-se``, a number, ``C=0.1``. ``force`` replaces an existing file. ``compress`` (kernel models) keeps only as
    many support vectors as change no decision by more, proven.
    """
    from screenpath.export.export import FORMATS, KERNEL, exported

    if to not in FORMATS:
        raise UsageError(f"`to={to}` is no format", f"use one of {', '.join(FORMATS)}")
    opened = _opened(path)
    output = _output(out, force, opened)
    training = opened.training if opened.run.kernel and to in KERNEL else None
    output.write(exported(opened.run, opened.run.choose(str(step)), to, training, compress))
    return Path(out)


def show_run(path: RunLike, step: int | str | None = None, top: int = 20, *, details: bool = False) -> RunSummary:
    """Return a run and one of its steps in words, as ``screenpath show RUN`` prints them.

    Parameters
    ----------
    path : StoredPath or path-like
    step : int or str, optional
        As of :func:`export_run`; the best where steps have scores, else the last.
    top : int, default 20
        Maximal number of features, the largest by scaled size first.
    details : bool, default False
        Whether the page ends with the counts of dual variables at their bounds.

    Returns
    -------
    RunSummary
        ``print`` it; its attributes ``scores``, ``features``, ``intercepts`` and ``step`` have the numbers.

    Examples
    --------
    >>> import screenpath
    >>> print(screenpath.show_run("runs/svm-breast_cancer"))  # doctest: +SKIP
    """
    from screenpath.report.show import summary_of

    shown = Option("top", 20, "whole", least=0).checked(top)
    return summary_of(_opened(path).run, None if step is None else str(step), shown, details, words=str)


def compare_runs(
    paths: Sequence[RunLike], step: int | str = "best", test: FileLike | None = None, target: str | None = None
) -> RunComparison:
    """Compare runs on their common folds or test data, as ``screenpath runs RUN RUN`` does.

    Parameters
    ----------
    paths : sequence of StoredPath or path-like
    step : int or str, default "best"
        As of :func:`export_run`, for every run.
    test : path-like, optional
        Data on which all runs are scored.
    target : str, optional
        Column of labels in ``test``, if it has another name than in the training data.

    Returns
    -------
    RunComparison
        ``print`` it; a sequence of its sides (``score``, ``features``, ``support``, ``seconds``), with ``best`` and
        ``differences`` (``mean``, ``error``, ``clear``).

    Raises
    ------
    UsageError
        For runs that cannot be compared, saying why.
    """
    from screenpath.report.side_by_side import compare_runs as compared

    named = None if test is None else file_name(test, "test", "write_libsvm(FILE, X, y) writes arrays to one")
    return compared([_opened(path).run for path in _several(paths)], str(step), named, target)


def prediction_intervals(
    path: RunLike, X: RowsLike, level: float = 0.9, step: int | str | None = None, **parameters: float
) -> np.ndarray:
    """Return prediction intervals for new rows, as ``screenpath predict --interval`` does.

    Parameters
    ----------
    path : StoredPath or path-like
        Of a cross-validated regression, whose folds give CV+ intervals, or of ``svm`` and linear ``lad``, ``quantile``
        and ``svr``: jackknife+ by all models without one row. Its training data are read again.
    X : array-like or sparse of shape (m, d)
        New rows in the units of the data.
    level : float, default 0.9
        About this share of targets is inside, and at least about ``2 level - 1`` of those like the training data's.
    step, **parameters
        As of :meth:`StoredPath.position`.

    Returns
    -------
    ndarray of shape (m, 2)
        Both ends; of an ``svm`` whether each of the labels -1 and +1 is in the set, bool.
    """
    from screenpath.cv.intervals import intervals_of
    from screenpath.engine.leave_out import LEVEL

    level, opened = LEVEL.checked(level), _opened(path)
    chosen = opened.solved(step, **parameters).cells
    return intervals_of(opened.run, chosen, sp.csr_array(opened._rows(X)), level, opened.training)[0]


def plot_run(path: RunLike, kind: str | None = None, out: FileLike | None = None, *, force: bool = False) -> Path:
    """Draw a run, as ``screenpath plot RUN`` does; needs matplotlib.

    ``kind`` is rejection, coefficients, gap, time, cv, grid, loo or influence; by default ``cv`` where the run has one,
    else ``rejection``, or ``gap`` where nothing is screened behind a kernel. ``out`` ends in .png, .svg or .pdf; by
    default it is ``RUN/KIND.png``.
    """
    from screenpath.report.plots import picture

    opened = _opened(path)
    name, content = picture(opened.run, kind, None if out is None else file_name(out, "out"))
    _output(name, force, opened).write(content)
    return Path(name)


def report_run(path: RunLike, out: FileLike, *, loo: bool = False, force: bool = False) -> Path:
    """Write one HTML page about a run, as ``screenpath report RUN`` does; needs matplotlib. ``loo`` adds pictures
    of leave-one-out and influence, computed from the training data.
    """
    from screenpath.report import series
    from screenpath.report.page import page
    from screenpath.store.outputs import form_of

    opened = _opened(path)
    form_of(file_name(out, "out"), ("html",), "html")
    _output(out, force, opened).write(page(opened.run, series.LEFT_OUT if loo else ()))
    return Path(out)


def convert(data: FileLike | Sequence[FileLike], out: FileLike, **options: Any) -> Path:
    """Turn data files into a folder of binary shards, as ``screenpath convert DATA OUT`` does; it takes the place of a
    file in :func:`run`. Options as of :func:`screenpath.data.shards.convert.convert`.
    """
    from screenpath.data.shards import convert as room

    files = list(data) if isinstance(data, Iterable) and not isinstance(data, (str, bytes, os.PathLike)) else [data]
    return room.convert([file_name(file, "data") for file in files], file_name(out, "out"), **options).path


def _data(data, what: str = "data"):
    """Return the name of a file as text, a pair of arrays as it is; anything else is an error."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    if isinstance(data, (tuple, list)) and len(data) == 2:
        return data
    hint = "of a table that holds the labels pass (table[FEATURES], table[LABELS])" if is_table(data) else None
    kind = type(data).__name__
    raise DataError(f"`{what}` must be a pair of arrays, (X, y), or the name of a file, not {kind}", hint)


def _several(paths) -> list:
    """Return runs as a list; a single name is an error, not a list of letters."""
    if isinstance(paths, (str, os.PathLike, StoredPath)) or not isinstance(paths, Iterable):
        raise UsageError(f"`paths` must be a list of runs, not {brief(paths)}")
    return list(paths)


def _opened(path) -> StoredPath:
    return path if isinstance(path, StoredPath) else load_run(path)


def _output(out: FileLike, force: bool, of: StoredPath):
    from screenpath.store.outputs import Output

    return Output(file_name(out, "out"), force, [of.folder])


def _session(kind: type, spec: Spec, options: dict, data, command: list) -> StoredPath:
    from screenpath.engine.interrupts import Interrupts, Stopped
    from screenpath.report.console import Console

    began, data = time.monotonic(), _data(data)
    if options["out"] == "-":
        raise UsageError("`out=-` is the standard output of a command", "name a folder")
    if options["out"] is not None:
        options["out"] = os.fspath(options["out"])
    if options["test"] is not None:
        options["test"] = _data(options["test"], "test")
    with warnings.catch_warnings(), Interrupts() as interrupts, MemoryLimit(options["max_memory"]).in_force():
        if options["quiet"]:
            warnings.simplefilter("ignore")
        console = Console(options["quiet"], options["progress"], log_format=options["log_format"])
        session = kind(spec, {**options, "data": data}, console, interrupts, began, command)
        try:
            session.run()
        except Stopped:
            raise KeyboardInterrupt from None
    if session.stopped == signal.SIGINT:
        raise KeyboardInterrupt
    return load_run(session.folder(), data)
