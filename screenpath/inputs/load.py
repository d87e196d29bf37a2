"""From the names of files, or arrays, to rows, targets and their descriptions; shards stay on disk."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from screenpath.catalogue.options import CELLS
from screenpath.catalogue.spec import real_targets
from screenpath.catalogue.targets import checked_weights, row_weights
from screenpath.data.files.arrays import dataset_of
from screenpath.data.files.cells import MARKS, Cells
from screenpath.data.files.dataset import Dataset
from screenpath.data.files.libsvm import BLOCK
from screenpath.data.files.npy import is_npy, read_npy
from screenpath.data.files.prepare import checked_penalties, checked_signs, say_nearly_constant, stored_dense
from screenpath.data.files.read import read_data as read_file
from screenpath.data.files.read import refuse_columns, refuse_indices
from screenpath.data.files.source import is_shard_folder
from screenpath.data.safe.memory import KERNEL_PROCESS, Bytes, MemoryLimit, Shape, free_memory, in_force, shape_of
from screenpath.data.words.labels import are_targets, label_number, label_text, named
from screenpath.data.words.numerals import Spelled, number_of
from screenpath.errors import DataError, UsageError
from screenpath.inputs.groups import read_groups
from screenpath.inputs.rows import Training, rows_of, shaped, with_free_bias
from screenpath.numbers.csr import check_width, is_wide

if TYPE_CHECKING:
    from screenpath.catalogue.spec import Spec
    from screenpath.data.shards.shards import ShardFolder
    from screenpath.data.words.faults import Fault
    from screenpath.rows.gram import Allowance


SEVERAL = ("one_hot", "columns", "drop")  # options that name columns
CELL_OPTIONS = [*(one.name for one in CELLS), "weight_column", "group_column"]
ARRAYS = "arrays"  # in place of a file's name
TOO_LARGE = "convert the file (screenpath convert) and name the folder with a model that streams it"


def name_of(data) -> str:
    """Return what a run calls its data: the name of the file, or ``arrays``."""
    return data if isinstance(data, str) else ARRAYS


def is_shards(data) -> bool:
    return isinstance(data, str) and is_shard_folder(data)


def open_shards(options: dict) -> ShardFolder:
    """Open the shard folder DATA; to resume a run, its content is checked too, as the data must be the same."""
    from screenpath.data.shards.shards import ShardFolder

    folder = ShardFolder(options["data"], bool(options.get("resume")), by=None)
    folder.check_indices(options["zero_based"])
    asked_cells(options, f"{folder.path} has numbers")
    if folder.form is None or options.get("one_hot"):
        refuse_columns(str(folder.path), **asked_columns(options))
    elif options.get("columns") or options.get("drop") or options.get("id") not in (None, folder.form.id):
        raise UsageError(f"{folder.path} has its columns already", "convert again with `columns`, `drop` or `id`")
    elif options.get("target") not in (None, folder.form.target):
        what = f"{folder.path} was converted with the target '{folder.form.target}'"
        raise UsageError(what, "convert again with `target`")
    return folder


def asked_cells(options: dict, what: str = "", *accepted: str) -> dict[str, Any]:
    """Return the options about the cells of a table; for ``what``, refuse those that are not ``accepted``."""
    asked = {name: options[name] for name in CELL_OPTIONS if name in options}
    asked |= {"group_column": options["fold_column"]} if options.get("fold_column") else {}
    for name in Cells.of(asked).record() if what else ():
        if name not in accepted:
            raise UsageError(f"`{name}` is about the cells of a table in a file, {what}", f"leave out `{name}`")
    return asked


def asked_columns(options: dict) -> dict[str, Any]:
    """Return the options that name columns of a table."""
    several = {name: tuple(options.get(name) or ()) for name in SEVERAL}
    return {"target": options.get("target"), "id": options.get("id"), **several}


def read_data(path, options: dict, limit: MemoryLimit, n_features: int | None = None) -> Dataset:
    """Read a text file, a shard folder or what ``--cache`` kept of a text file into memory."""
    columns = asked_columns(options)
    if not isinstance(path, str):
        refuse_columns("what was passed in", columns["target"], id=columns["id"])
        asked_cells(options, "these are arrays", "missing")
        return dataset_of(path, ARRAYS, **{name: columns[name] for name in SEVERAL}, missing=options["missing"])
    zero_based = options["zero_based"]
    if options.get("kernel") == "precomputed" and is_npy(path):
        return given_values(path, options)
    if is_shard_folder(path):
        folder = open_shards({**options, "data": path})
    elif options.get("cache"):
        if str(path) == "-":
            raise UsageError("`cache` keeps files, not standard input", "leave out `cache`, or name a file")
        from screenpath.data.shards.convert import cached_shards

        how = Cells.of(asked_cells(options, "and `cache` keeps numbers without gaps", "na", *MARKS)).record()
        folder = cached_shards(path, options["cache"], zero_based, options["max_memory"], **columns, **how)
    else:
        folder = None
    if folder is None:
        block = BLOCK // 4 if limit else BLOCK  # what a block is parsed into is many times its size
        numbered = options.get("kernel") == "precomputed"
        n_features = n_features + numbered if n_features else None
        how = {"zero_based": zero_based or numbered, "n_features": n_features, **columns, **asked_cells(options)}
        data = read_file(path, block=block, limit=limit, **how)
        return data.without_numbers(options.get("training_rows")) if numbered and data.form is None else data
    limit.check(folder.dataset_bytes(), f"{path} in memory", TOO_LARGE)
    return folder.dataset(n_features)


def given_values(path: str, options: dict, width: int | None = None) -> Dataset:
    """Return a precomputed kernel in a file of NumPy; see :func:`read_npy` for ``width``."""
    columns = asked_columns(options)
    refuse_columns(path, **{**columns, "target": None}, cells=Cells.of(asked_cells(options)))
    refuse_indices(path, options["zero_based"], None)
    if options.get("cache"):
        raise UsageError(f"`cache` keeps what text says, {path} is mapped as it is", "leave out `cache`")
    data = read_npy(path, columns["target"], width=width)
    if options["n_features"] not in (None, data.d):
        raise UsageError(f"{path} has {data.d:,} columns, not {options['n_features']:,}", "leave out `n_features`")
    return data


def coded(options: dict, names) -> dict:
    """Return options in which labels are numbers; ``names`` has their texts, or the file's spelling of numbers.

    The result's ``label_names`` are texts only, its ``label_texts`` what messages call labels.
    """
    positive = options.get("positive")
    positive = None if positive is None else label_number(positive, names, "positive")
    texts = None if isinstance(names, Spelled) else names
    return {**options, "positive": positive, "label_names": texts, "label_texts": names}


def class_weights(given, names=None, number=label_number):
    """Return ``class_weight`` as :func:`row_weights` takes it; ``number`` makes numbers of labels, by ``names``."""
    if not given:
        return None
    if tuple(given) == ("balanced",):
        return "balanced"
    weights = {}
    for text in given:
        name, _, weight = text.rpartition("=")
        try:
            value = number_of(weight if name else "")
        except ValueError:
            what = f"`class_weight='{text}'` is not LABEL=WEIGHT"
            raise UsageError(what, "write for example `class_weight=1=5`, or balanced") from None
        label = number(name, names, "class_weight")
        if label in weights:
            raise UsageError(f"`class_weight` names the label {name} twice", "give each label one weight")
        weights[label] = value
    return weights


def read_weights(path, unit: str = "sample", name: str = "weight"):
    """Return the numbers of a weights file, one line a ``unit``; arrays and None are returned as they are."""
    return path if path is None or not isinstance(path, str) else read_lines(path, unit, name)


def read_lines(path, unit: str, name: str, whole: bool = False) -> np.ndarray:
    """Return the numbers in a file, one line a ``unit``; messages call one a ``name``."""
    kind, parse = ("whole number", int) if whole else ("number", number_of)
    hint, empty = f"one {kind} a line, one line a {unit}", 0
    found: array = array("q" if whole else "d")
    try:
        with open(path, encoding="utf-8") as file:
            for k, line in enumerate(file, 1):
                if not line.strip():  # below the last number it says nothing
                    empty = empty or k
                    continue
                if empty:
                    raise DataError(f"{path}, line {empty}: the line is empty", hint)
                try:
                    found.append(parse(line))
                except (ValueError, OverflowError):
                    raise DataError(f"{path}, line {k}: the {name} is not a {kind}: '{line.strip()}'", hint) from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: the {name}s cannot be read ({why})", hint) from None
    return np.array(found)


def targets_of(
    spec, options: dict, y: np.ndarray, source: str, text: Fault | None = None
) -> tuple[np.ndarray, dict | None]:
    """Return the targets of a model and the map from +1, -1 or classes to labels (None of a regression).

    ``text`` is the first target that is not a number, where its place is known.
    """
    names = options["label_names"]
    spelled = options["label_texts"] if isinstance(options["label_texts"], Spelled) else None
    if spelled is not None and spelled.fault and spec.targets is not real_targets:
        raise DataError(f"{source}: {spelled.fault}", "write labels that begin with a letter: id9007199254740993")
    targets, labels = spec.targets(y, options)
    if names is not None and labels is None and text is not None:
        hint = f"{spec.name} is a regression: write a number, leave the row out, or name a column: `target=COLUMN`"
        raise replace(text, hint=hint).error()
    if names is not None and labels is None:
        what = f"{source}: {spec.name} is a regression, the targets are texts: {label_text(0, names)}, ..."
        raise DataError(what, "name a column of numbers: `target=COLUMN`; svm and sparse-svm tell labels apart")
    if spelled is not None and labels is not None:
        used = [label for one in labels.values() for label in (one if isinstance(one, list) else [one])]
        names = spelled if any(label in spelled.texts for label in used) else None
    return targets, named(labels, names)


def learned(spec, options: dict, told, y: np.ndarray, source: str, text: Fault | None = None) -> tuple[dict, dict]:
    """Return options in which labels are numbers, and the fields of Training that depend on labels.

    ``told`` is a data set or a folder of shards with the labels ``y``; ``text`` as of :func:`targets_of`.
    """
    options = coded(options, told.label_names or told.spelled)
    targets, labels = targets_of(spec, options, y, source, text)
    spec = spec if spec.several is None else spec.of_classes("classes" in (labels or {}), options)
    of_rows = getattr(told, "weights", None)
    if of_rows is not None and options.get("weights") is not None:
        raise UsageError("`weights` and `weight_column` are both given", "use one of them")
    given, texts = read_weights(options.get("weights")) if of_rows is None else of_rows, options["label_texts"]
    try:
        given = checked_weights(y, given)
    except UsageError as error:
        if not isinstance(file := options.get("weights"), str):
            raise
        raise DataError(f"{file}: {error.message}", error.hint) from None  # what a file holds are data
    weights = row_weights(y, class_weights(options.get("class_weight"), texts), given, texts)
    known = {"targets": targets, "labels": labels, "weights": weights, "sample_weights": given, "label_texts": texts}
    return options, {**known, "spec": spec, "names": told.names, "label_names": told.label_names, "form": told.form}


def named_cluster(options: dict) -> bool:
    """Tell whether the options name a cluster; ``jobs`` would be a second way to share the work."""
    named = options.get("scheduler") is not None
    if named and options.get("jobs", 1) > 1:
        raise UsageError("`jobs` are processes here, a cluster has its own workers", "use one of the two")
    return named


ON_DISK = "leave the columns on disk: convert the data with `by=columns` (screenpath convert), and name the folder"
TOLD = 100e6  # bytes above which filled rows are said
MAPPED = 4  # bytes of a factor for each pair of rows whose values are mapped from a file: half of a matrix
FILLED = 0.25  # share of the free memory that rows may take which are kept dense for their scaling


def read_training(options: dict):
    """Return the training data in memory, in the units of the file; of wide data the columns that occur."""
    data = read_data(options["data"], options, in_force(), options["n_features"]).narrowed()
    check_width(name_of(options["data"]), data.width)
    return data


def say_notices(notices, source, tell) -> None:
    """Tell what was ignored in a file, or noticed when it was converted."""
    for notice in notices if tell is not None else ():
        tell(f"{name_of(source)}: {notice}")


def load_training(spec, options: dict, tell=None, data=None) -> Training:
    """Read and prepare the training data; the limit in force promises what the path will take.

    ``tell`` hears of what is ignored in the data, and what a kernel model says about its memory. ``data`` is what
    :func:`read_training` has returned already, and somebody keeps.
    """
    limit, kept, source = in_force(), data is not None, name_of(options["data"])
    _check_cluster(spec, options)
    if data is None and is_shards(options["data"]) and (spec.streams or spec.streams_columns):
        training = _streamed(spec, options, limit, tell)
        if training is not None:
            return training
    data = read_training(options) if data is None else data
    if not kept:
        say_notices(data.notices, source, tell)
    (n, d), columns = data.stored.shape, data.columns
    if limit.limit is not None:
        shape = shape_of(n, d, data.nnz, options, stored_dense(data.stored, options["storage"]))
        limit.copy = shape.rows + spec.needs.build(shape)
    limit.check_vectors(spec.needs.vectors(Shape(n, d, 0, True)), n, d, source)
    options, known = learned(spec, options, data, data.y, source, data.text_label)
    spec = known["spec"]
    many = "classes" in (known["labels"] or {}) and data.label_names is None
    if tell is not None and many and are_targets(np.array(known["labels"]["classes"])):
        count = len(known["labels"]["classes"])
        tell(f"hint: {count} labels look like the targets of a regression: see lad, svr and quantile")
    known |= {"sha256": data.fingerprint(), "shape": (n, data.width), "nnz": data.nnz, "ids": data.ids}
    known["penalties"] = checked_penalties(
        read_weights(options.get("penalty_weights"), "feature"), data.width or d, columns
    )
    signs = read_weights(options.get("signs"), "feature", "sign")
    known["signs"] = None if signs is None else checked_signs(signs, data.width or d, columns)
    known["groups"] = read_groups(options.get("groups"), data.width or d, known["names"], columns)
    options = filled(options, data, source, limit, tell)
    vectors = ask_for_rows(spec, options, data, known["labels"], kept, limit)
    options = {**options, "penalty_weights": known["penalties"], "tell": tell}
    if spec.rows is not None:
        options = {**kernel_options(options, data), "matrix_memory": matrix_memory(spec, options, data, kept)}
    X, preparation = shaped(spec, options, data.stored, options["storage"], known["sample_weights"])
    preparation = replace(preparation, columns=columns, width=data.width)
    say_nearly_constant(preparation, data.names, source, tell)
    del data
    rows, preparation = rows_of(spec, options, X, known["targets"], preparation)
    if spec.rows is not None:
        limit.promised = vectors
    return Training(path=source, rows=rows, preparation=preparation, vectors=vectors, **known)


def model_of(data: Training, options: dict, tell) -> Spec:
    """Return the model that the labels of the data ask for, and tell that it has not the default intercept."""
    options["intercept"] = "none"
    tell(f"{data.spec.name} has a free intercept for two labels only: here is none (`intercept=penalised` adds one)")
    return data.spec


def filled(options: dict, data: Dataset, source: str, limit: MemoryLimit, tell) -> dict:
    """Return options with ``storage=dense`` where ``scale=standard`` would fill sparse rows and memory allows it."""
    if options["scale"] != "standard" or options["storage"] != "auto" or stored_dense(data.stored, "auto"):
        return options
    size, free = 8 * data.n * (data.d + 1), free_memory()
    if size > FILLED * (free if limit.left is None else min(free, limit.left)):
        return options  # which prepare refuses, and names what else to do
    if tell is not None and size > TOLD:
        tell(f"{source}: `scale=standard` subtracts the mean: the rows are kept dense, {size / 1e6:,.0f} MB")
    return {**options, "storage": "dense"}


def kernel_options(options: dict, data: Dataset) -> dict:
    """Return options by which gamma counts all features of the file, not only those with a column."""
    return options if data.columns is None else {**options, "width": data.width}


def ask_for_rows(spec, options: dict, data: Dataset, labels: dict | None, kept: bool, limit: MemoryLimit) -> int:
    """Check the limit for preparing the data and walking a path; return the bytes of the path's vectors.

    The limit promises what is allocated later. ``kept``: the raw data stay in memory next to the prepared rows.
    """
    if not limit:
        return 0
    shape = _shape(data, spec, options, labels)
    asked = Bytes.of(spec.needs, shape, data.nnz, options)
    X, source = data.stored, name_of(options["data"])
    freed = 0
    if isinstance(X, np.ndarray):
        asked = Bytes(0, 0, asked.vectors, MAPPED * data.n**2)
    elif not kept and asked.rows != 16 * data.n:
        freed = X.data.nbytes + (X.indices.nbytes + X.indptr.nbytes if shape.dense or options["bias"] else 0)
    freed -= X.data.nbytes if Cells.of(asked_cells(options)).fills else 0  # a copy without gaps
    hint = ON_DISK if spec.streams_columns and spec.in_memory(options) is None else TOO_LARGE
    limit.check(asked.peak(freed), f"a path on {source} ({data.n:,} x {data.d:,})", hint)
    limit.promised = asked.vectors + asked.build
    return asked.vectors


def matrix_memory(spec, options: dict, data: Dataset, kept: bool) -> Allowance | None:
    """Return what ``--max-memory`` leaves for a kernel matrix; in a cross-validation each fold has one as well.

    It depends on data and options only, so that the same command takes the same steps.
    """
    if options["max_memory"] is None:
        return None
    from screenpath.rows.gram import Allowance

    folds = options.get("folds_at_once", 0)
    workers = folds if folds > 1 else 0
    shape = _shape(data, spec, options, None)
    made = spec.needs.build(shape) + shape.rows + (12 * data.nnz + 8 * data.n) * kept
    one = spec.needs.vectors(shape) + (MAPPED * data.n**2 if isinstance(data.stored, np.ndarray) else made)
    return Allowance.of(options["max_memory"], one * (1 + folds) + KERNEL_PROCESS * (1 + workers), 1 + folds)


def _shape(data, spec, options: dict, labels: dict | None) -> Shape:
    o = {**options, "bias": 0.0, "dtype": "float64"} if spec.rows is not None else options
    dense = stored_dense(data.stored, options["storage"])
    return shape_of(data.n, data.d, data.nnz, o, dense, len((labels or {}).get("classes", (0,))))


def _check_cluster(spec, options: dict) -> None:
    if not named_cluster(options) or spec.spreads:
        return
    if spec.rows is not None:
        raise UsageError("a kernel run cannot use a cluster: its matrix is on one machine", "leave out `scheduler`")
    if not spec.streams:
        what = f"{spec.name} cannot use a cluster: it needs the columns of the data in memory"
        raise UsageError(what, "svm, lad, quantile, svr and sparse-svm do, and the folds of cv")
    if not is_shards(options["data"]):
        raise UsageError("a cluster reads shards, not text", "convert first: screenpath convert DATA SHARDS")


def _streamed(spec, options: dict, limit: MemoryLimit, tell) -> Training | None:
    """Return the training data of a shard folder that stays on disk; None where it must be read into memory."""
    folder, source = open_shards(options), name_of(options["data"])
    by_rows, dtype, bias = folder.by == "rows", options["dtype"], options["bias"]
    if not _stays(spec, options, folder, source, tell):
        return None
    if not by_rows and options.get("certificate"):
        raise UsageError(f"`certificate` is checked on rows, {source} holds columns", "name the file it was made of")
    if not by_rows and dtype != "float64":
        raise UsageError("`dtype=float32` applies to values in memory", "leave it out: columns keep theirs on disk")
    if np.dtype(dtype) != folder.dtype and dtype != "float64":
        raise UsageError(f"{folder.path} holds {folder.dtype} values", f"convert with `dtype={dtype}`, or leave it out")
    width = folder.checked_width(options["n_features"])
    shape = Shape(folder.n, folder.d, 0, True)
    if not by_rows:
        shape = Shape(folder.n, folder.lines + (bias != 0.0), folder.nnz, False)
    limit.check_vectors(spec.needs.vectors(shape), shape.n, shape.d, source)
    say_notices(folder.meta["notices"], source, tell)
    options, known = learned(spec, options, folder, folder.labels(), source)
    spec = known["spec"]
    given, classes = known["sample_weights"], len((known["labels"] or {}).get("classes", (0,)))
    if by_rows:
        rows = _shard_rows(folder, {**options, "tell": tell}, given, limit)
        vectors = rows.needs(spec.needs, bool(options["scale"] != "none" or bias), classes)
        limit.check(vectors, f"a path on {source} ({rows.n:,} x {width:,})")
    else:
        from screenpath.rows.column_shards import ColumnShards

        weights = read_weights(options.get("penalty_weights"), "feature")
        known["penalties"] = penalties = checked_penalties(weights, folder.d, folder.numbers)
        signs = read_weights(options.get("signs"), "feature", "sign")
        known["signs"] = checked_signs(signs, folder.d, folder.numbers)
        free = spec.free_bias or options.get("intercept") == "free"
        how = options["scale"], options["storage"], given, penalties, options["threads"], bias, free
        rows = ColumnShards(folder, *how)
        shape = replace(shape, stored=rows.size, dense=not rows.sparse, classes=classes)
        vectors = spec.needs.vectors(shape) + rows.passing
        limit.check(vectors, f"a path on {source} ({shape.n:,} x {shape.d:,})", "convert with a smaller `block_mb`")
    limit.promised = vectors
    say_nearly_constant(rows.preparation, folder.names, source, tell)
    return Training(
        path=source, rows=rows, preparation=with_free_bias(spec, rows.preparation), sha256=folder.sha256,
        shape=(folder.n, width), nnz=folder.nnz, vectors=vectors, **known,
    )  # fmt: skip


def _stays(spec, options: dict, folder: ShardFolder, source: str, tell) -> bool:
    """Tell whether a path leaves a folder on disk; say why not where the model could."""
    if folder.by == "rows":  # unless all values in memory take less than one vector of all features
        wide = is_wide(folder.checked_width(options["n_features"]), folder.nnz)
        return spec.streams and (not wide or named_cluster(options))
    needed = spec.in_memory(options)
    if spec.streams_columns and needed is None:
        return True
    if spec.streams_columns and tell is not None:
        tell(f"{source}: `{needed}` needs the data in memory, where the columns are read")
    if named_cluster(options) and not spec.spreads:
        raise UsageError(f"{folder.path} was converted by columns", "convert again with `by=rows`")
    return False


def _shard_rows(folder: ShardFolder, options: dict, weights, limit: MemoryLimit):
    """Return the rows of a folder on this machine, or on the cluster that the options name."""
    how = options["scale"], options["bias"], options["storage"], options["n_features"]
    more = {"limit": limit, "weights": weights, "free": options.get("intercept") == "free"}
    scheduler = options.get("scheduler")
    if scheduler is None:
        from screenpath.rows.shards import ShardRows

        return ShardRows(folder, *how, threads=options["threads"], **more)
    from screenpath.rows.cluster import ClusterRows, connect

    client = connect(scheduler, options["connect_timeout"], options.get("tell"))
    try:
        return ClusterRows(client, folder, *how, **more)
    except BaseException:
        client.close()
        raise
