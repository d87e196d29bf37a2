"""What run.json has to say about the problem: every fact that follows from certificate, data and options.

A certificate of another problem (other weights, a shifted mean, the labels turned round) can be as true as that of the
run, so :class:`screenpath.verify.data_facts.DataFacts` forms labels, weights and scaling again while the checker reads
the data. :meth:`Problem.expected` is the one table of these facts: a nested dict as run.json is one, with the value
that has to stand at a place, or a predicate of it. What run.json says besides is listed as not covered.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import numpy as np

from screenpath.verify.data import ROUNDINGS, usual
from screenpath.verify.data_facts import DataFacts
from screenpath.verify.exact import UNIT
from screenpath.verify.groups import read_groups
from screenpath.verify.objective import objective_of
from screenpath.verify.table import features

RULE = "primal - dual <= tol * primal on the full data"
UNSET: tuple = (None, "", ".", "utf-8", "error", False, [])  # options about cells and columns that were not given
CONVERTED = {"one_hot", "columns", "drop", "missing", "missing_indicator", "na", "decimal", "encoding", "thousands",
             "delimiter"}  # fmt: skip
DEFAULTS = {"gamma": "1/d", "degree": 3, "coef0": 0.0}  # of a kernel


class Problem:
    """The options of a run beside its data: weights and labels as numbers, as far as they can be known here.

    ``record`` is run.json, ``header`` that of the certificate. ``beside`` are the data file and the run folder: files
    that options name relative to where the run was started are looked for in the folders above these, too. ``unknown``
    are the places of run.json that nothing could be compared with.
    """

    def __init__(self, record: dict, header: dict, beside: tuple[Path, ...] = ()):
        self.record, self.header, self.options = record, header, record["options"]
        self.folders = [folder for path in beside for folder in path.resolve().parents]
        self.unknown: set[tuple] = set()
        data = header["data"]
        weights = None if self.options.get("class_weight") else digest_of(header.get("weights"))
        if (data.get("table") or {}).get("cells", {}).get("weight_column"):
            self.unknown.add(("options", "weights"))
        self.sample_weights = self._numbers("weights", data["n_samples"], weights)
        penalties = (record.get("identity") or {}).get("penalty_sha256")
        self.penalties = self._numbers("penalty_weights", data["n_features"], penalties, header.get("columns"))
        signs = (record.get("identity") or {}).get("signs_sha256")
        self.signs = self._numbers("signs", data["n_features"], signs, header.get("columns"))
        self.groups = self._groups(data, header.get("columns"))

    def _numbers(self, name: str, count: int, digest: str | None, columns=None) -> np.ndarray | None:
        """Return the numbers of a file that an option names; without it, what hangs on it is not known.

        Elsewhere than where its path leads to, a file is that of the run if its numbers have the digest.
        """
        path = self.options.get(name)
        for k, folder in enumerate([Path(), *self.folders] if isinstance(path, str) else []):
            numbers = read_numbers(folder / path, count) if digest or k == 0 else None
            numbers = numbers if numbers is None or columns is None else numbers[columns]
            if numbers is not None and (k == 0 or digest_of(numbers) == digest):
                return numbers
        if path is not None:
            self.unknown.add(("options", name))
        return None

    @property
    def several(self) -> str:
        """Return how more than two labels are told apart; empty where they are not."""
        return "one_vs_one" if self.header.get("one_vs_one") else "all" * (self.header["model"] == "sparse-svm")

    def _groups(self, data: dict, columns) -> np.ndarray | None:
        """Return number and weight of each feature's group, as the file of the options has them."""
        path, names = self.options.get("groups"), feature_names(data["table"]) if data.get("table") else []
        for folder in [Path(), *self.folders] if isinstance(path, str) else []:
            if (folder / path).exists():
                found = read_groups(folder / path, data["n_features"], names)
                return found if found is None or columns is None else found[:, columns]
        if path is not None:
            self.unknown.add(("options", "groups"))
        return None

    def roundings(self) -> int:
        """Return how often a weight was rounded: a number that options or file give was not, a product of two was."""
        given = list(self.options.get("class_weight") or [])
        if given == ["balanced"] or ("options", "weights") in self.unknown:
            return ROUNDINGS
        return int(bool(given) and self.sample_weights is not None)

    def watch(self, source) -> None:
        """Have the data looked at while they are read."""
        self.source, self.facts = source, DataFacts(self.header, source, self.sample_weights)

    def number(self, label) -> float:
        """Return the number of a label as an option names it."""
        if not self.source.places:
            return float(label)
        return self.source.label(label if isinstance(label, str) else usual(float(label)))

    def class_weights(self):
        """Return ``"balanced"``, or the weights by the numbers of labels."""
        given = self.options.get("class_weight") or []
        if list(given) == ["balanced"]:
            return "balanced"
        pairs = [text.rpartition("=") for text in given]
        weights = {self.number(label): float(weight) for label, _, weight in pairs}
        if len(weights) < len(pairs):
            raise ValueError("class_weight names a label twice")
        return weights

    def faults(self) -> list[str]:
        """Return what the certificate's own header says otherwise than data and options."""
        header, facts, found = self.header, self.facts, []
        if self.source.mapping() is not None:
            positive = self.options.get("positive")
            positive = None if positive is None else self.number(positive)
            if self.source.mapping() not in facts.mappings(positive, self.several):
                found.append("the certificate's labels are not those of the data and the options")
            texts = self.source.texts
            written = [] if not texts else (header["labels"].get("classes") or header["labels"].values())
            for label in written:
                text = label if isinstance(label, str) else usual(label)
                if text != "rest" and text != texts.get(float(text), text):
                    found.append(f"the certificate has a label {text}, the data write {texts[float(text)]}")
        if ("options", "weights") in self.unknown:
            self.unknown |= {("options", "class_weight")}
        else:
            weights, given = self.class_weights(), header.get("weights")
            wanted, balanced = facts.row_weights(weights), weights == "balanced"
            if not balanced and not set(weights) <= set(facts.labels.tolist()):
                found.append("class_weight names a label that the data do not have")
            if (wanted is None) != (given is None) or wanted is not None and not close(given, wanted, balanced):
                found.append("the certificate's weights are not those of the data and the options")
        signs, wanted = header.get("signs", np.empty(0)), np.empty(0) if self.signs is None else self.signs
        wanted = np.ones(signs.size) if self.options.get("nonnegative") else wanted
        if ("options", "signs") not in self.unknown and not np.array_equal(signs, wanted):
            found.append("the certificate's signs are not those of the options")
        groups = [header.get(name, np.empty(0)) for name in ("groups", "group_weights")]
        given = np.empty((2, 0)) if self.groups is None else self.groups
        if ("options", "groups") not in self.unknown and not all(map(np.array_equal, groups, given)):
            found.append("the certificate's groups are not those of the options")
        if self.unknown & {("options", "weights"), ("options", "penalty_weights")} and header["scaling"] != "l2":
            self.unknown |= {("preparation", "scale"), ("preparation", "shift")}
        else:
            scaling = facts.scaling(self.penalties)
            for name in ("scale", "shift"):
                given = header.get(name)
                if name == "shift" and header["scaling"] in ("none", "maxabs"):
                    continue  # where the intercept is free, each number centres a column; elsewhere none is accepted
                if (name in scaling) != (given is not None) or given is not None and not scaling[name](given):
                    found.append(f"the certificate's {name} is not that of the data")
        missing = (header["data"].get("table") or {}).get("cells", {}).get("missing", "error")
        if ("fill" in header) != (missing not in ("error", "drop")):
            found.append("the certificate fills in values, or does not, otherwise than its table says")
        elif missing in ("mean", "median"):
            self.unknown |= {("options", "missing"), ("identity", "missing")}  # the values may be any
        elif "fill" in header and np.any(header["fill"] != float(missing)):
            found.append("the certificate fills in another number than its table says")
        if "columns" in header and not np.array_equal(header["columns"], facts.used):
            found.append("the certificate's columns are not those that occur in the data")
        return found

    def expected(self) -> dict:
        header, options, record, free = self.header, self.options, self.record, self.header.get("intercept") == "free"
        data, labels, table = header["data"], header["labels"], header["data"].get("table")
        names = None if table is None else feature_names(table)
        own = {"l1svm": 1.0}.get(header["model"], header["bias"] if "kernel" not in header else 0.0)
        return {
            "tool": "screenpath",
            "model": header["model"],
            "objective": objective_of(header, options.get("penalty_weights") is not None, record.get("objective")),
            "stopping_rule": RULE,
            "labels": labels,
            "kernel": header.get("kernel"),
            "data": {
                "sha256": data["sha256"], "n_samples": data["n_samples"], "n_features": data["n_features"],
                "nnz": self.facts.nnz, "table": table, "feature_names": names, "label_names": data.get("label_names"),
                "path": options["data"],
            },
            "preparation": {
                "scaling": header["scaling"], "scale": header.get("scale"), "shift": header.get("shift"),
                "fill": header.get("fill"), "bias": own,
                "features": header["columns"] + 1 if "columns" in header else None,
            },
            "options": {name: value for name, value in self._options(free).items() if name in options},
            "identity": self._identity(names),
            "test": None if options.get("test") is None else record.get("test"),
        }  # fmt: skip

    def _options(self, free: bool) -> dict:
        header, data, table, model = self.header, self.header["data"], self.header["data"].get("table"), self.header
        cells = (table or {}).get("cells", {})
        missing, how = cells.get("missing", "error"), "penalised" if self.options["bias"] else "none"
        kernel, bias = header.get("kernel", {}), 0.0 if free or model["model"] == "l1svm" else header["bias"]
        found = {name: header[name] for name in ("tol", "tau", "epsilon") if name in header}
        found["smoothing"] = header.get("smoothing")
        found["l1_share"] = header.get("l1_share", 0.0)

        def is_parameter(name):
            def good(value):
                if name not in kernel:
                    return value is None
                value = DEFAULTS[name] if value is None else value
                if (name, str(value).strip()) == ("gamma", "scale"):
                    return self.facts.is_spread(kernel[name])
                text, over, d = str(value).partition("/")
                return (
                    d.strip() == "d"[: len(over)] and float(text) / (data["n_features"] if over else 1) == kernel[name]
                )

            return good

        found = {
            **found,
            "bias": lambda value: value * value == kernel["constant"] if kernel and not free else value == bias,
            "intercept": lambda value: value == ("free" if free else how),
            "loss": header.get("loss", "hinge"),
            "nonnegative": lambda value: value == ("signs" in header) or self.options.get("signs") is not None,
            **{one: lambda value: True for one in ("signs", "groups") if ("options", one) not in self.unknown},
            "scale": header["scaling"],
            "zero_based": data["zero_based"],
            "certificate": True,
            "one_vs_rest": False,
            **({"one_vs_one": True} if self.several == "one_vs_one" else {}),  # of two labels it changes nothing
            "part": None,
            "kernel": kernel.get("kernel"),
            **{name: is_parameter(name) for name in DEFAULTS},
            "positive": lambda value: True,  # compared with the map of labels
            **({} if ("options", "class_weight") in self.unknown else {"class_weight": lambda value: True}),
            **({} if ("options", "weights") in self.unknown else {"weights": lambda value: True}),
            **({} if ("options", "penalty_weights") in self.unknown else {"penalty_weights": lambda value: True}),
            "data": self.record["data"].get("path"),
            "n_features": lambda value: value is None or value == data["n_features"],
            "target": lambda value: value is None or table is not None and value == table["target"],
            **self._encoded(table),
            "missing": lambda value: (  # numbers have several spellings
                value == missing or float(0.0 if value == "zero" else value) == float(missing)
            ),
            "missing_indicator": cells.get("missing_indicator", False),
            "na": list(cells.get("na", [])),
            **{name: cells.get(name, usual) for name, usual in (("decimal", "."), ("encoding", "utf-8"))},
            "weight_column": cells.get("weight_column"),
            "thousands": lambda value: (value or "") == cells.get("thousands", ""),
            "delimiter": lambda value: (value or "").replace("tab", "\t") == cells.get("delimiter", ""),
            **self._selectors(table),
        }
        if self.source.converted:  # what a table's cells and columns are was chosen then, or by the same options here
            for name in CONVERTED & set(found):
                found[name] = lambda value, wanted=found[name]: value in UNSET or same(value, wanted)
        return found

    def _encoded(self, table: dict | None) -> dict:
        """Return the fact of the option that encodes columns, which is not known of patterns, nor of those that auto
        found.
        """
        if table is None:
            return {"one_hot": []}
        given, names, hot = list(self.options.get("one_hot") or []), self.source.names, set(table["one_hot"])
        asked = [text for text in given if text != "auto" or text in names]
        encoded = features(names, "", asked, []) if asked else set()
        unknown = bool(hot) if encoded is None else len(asked) < len(given) and encoded <= hot
        return {} if unknown else {"one_hot": lambda value: encoded == hot}

    def _selectors(self, table: dict | None) -> dict:
        """Return the facts of the options that select columns.

        They are not known of rows that were no table, of patterns, and, if there are none, of a file with more columns
        than the run's.
        """
        columns, drop = (list(self.options.get(name) or []) for name in ("columns", "drop"))
        if table is None:
            return {"id": None, **({} if columns or drop else {"columns": [], "drop": []})}
        names, own = self.source.names, table.get("id")
        named = {"id": lambda value: value in (None, own) and (own is None or own in names)}
        chosen = features(names, table["target"].strip(), columns, drop)
        apart = {table.get("cells", {}).get(name) for name in ("weight_column", "group_column")}
        chosen = None if chosen is None else chosen - {own} - apart
        right = chosen == {name.strip() for name in table["columns"]}
        if chosen is None or not right and not (columns or drop):
            return named
        return {**named, **dict.fromkeys(("columns", "drop"), lambda value: right)}

    def _identity(self, names) -> dict:
        """Return the facts of ``identity``: hashes, and the options again."""
        header, record, label_names = self.header, self.record, self.header["data"].get("label_names")
        found = {
            "tool_version": record["versions"].get("screenpath"), "model": header["model"],
            "data_sha256": header["data"]["sha256"], "weights_sha256": digest_of(header.get("weights")),
            "test_sha256": (record.get("test") or {}).get("sha256"),
        }  # fmt: skip
        if names is not None or label_names is not None:
            text = repr((None if names is None else tuple(names), None if label_names is None else tuple(label_names)))
            found["names_sha256"] = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        if "labels" in record["identity"]:  # numbers that the data write in a way of their own
            found["labels"] = header["labels"]
        if self.penalties is not None:
            found["penalty_sha256"] = digest_of(self.penalties)
        elif "penalty_sha256" in record["identity"]:
            self.unknown.add(("identity", "penalty_sha256"))
        if "signs" in header and "signs_sha256" in record["identity"]:
            found["signs_sha256"] = digest_of(header["signs"])
        if "groups" in header and "groups_sha256" in record["identity"]:
            found["groups_sha256"] = digest_of(np.column_stack([header["groups"], header["group_weights"]]))
        own = {("identity", f"{name}_sha256") for name in ("rule", "solver")}  # files of the user's, which are not here
        self.unknown |= {place for place in own if place[1] in record["identity"]}
        if "folds" in self.options:  # verify.folds compares them
            self.unknown |= {("identity", name) for name in ("score", "folds", "repeats", "folds_sha256")}
        return {**{name: self.options.get(name) for name in record["identity"] if name not in found}, **found}


def feature_names(table: dict) -> list[str]:
    """Return the names of the features of a table."""
    hot, found = table["one_hot"], []
    for name in table["columns"]:
        found += [f"{name}={value}" for value in hot[name]] if name in hot else [name]
        found += [f"{name} is missing"] if name in table.get("indicated", ()) else []
    return found


def digest_of(numbers) -> str | None:
    """Return the SHA-256 of doubles."""
    return None if numbers is None else hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()


def close(given, wanted: np.ndarray, balanced: bool) -> bool:
    """Tell whether two vectors of weights are equal; those of balanced classes to the rounding of factor and product.

    Other weights are numbers of options and files, or products of two of them, which are rounded in one way.
    """
    off = 8.0 * UNIT * wanted if balanced else 0.0
    return given.shape == wanted.shape and bool(np.all(np.abs(given - wanted) <= off))


# -- comparing ---------------------------------------------------------------------------------------------------------


def leaves(value, place: tuple = ()):
    """Yield place and value of everything in nested dicts that is none itself."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from leaves(part, (*place, name))
    else:
        yield place, value


def at(record, place: tuple):
    """Return what stands at a place of nested dicts; None where there is nothing."""
    for name in place:
        record = record.get(name) if isinstance(record, dict) else None
    return record


def same(found, wanted) -> bool:
    """Tell whether a value is the one that is wanted: equal, of the same kind, or what a predicate accepts."""
    if callable(wanted):
        try:
            return bool(wanted(found))
        except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError):
            return False
    wanted = wanted.tolist() if isinstance(wanted, np.ndarray) else wanted
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    return bool(found == wanted or isinstance(wanted, float) and wanted == math.inf and found is None)


def read_numbers(path, count: int) -> np.ndarray | None:
    """Return the numbers of a file of weights, one a line; None where there is no such file, or it holds others."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split()
        numbers = np.array([float(line) for line in lines])
    except (OSError, ValueError, TypeError):
        return None
    return numbers if numbers.size == count and np.all(np.isfinite(numbers)) else None
