"""What type checkers, editors and readers of tables are told of the package, made from its declarations:

    python tests/architecture/stubs.py          (or `make stubs`) writes screenpath/__init__.pyi, sklearn/__init__.pyi
                                                and schemas/steps.table.json
    python tests/architecture/stubs.py names    adds to schemas/names.json, what a major release keeps (with a release)

A function or an estimator whose parameters are declared options has them in no source.
"""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
import typing
from collections.abc import Iterator
from pathlib import Path

import click

import screenpath
from screenpath import sklearn as estimators
from screenpath.api import paths
from screenpath.cli.app import cli
from screenpath.walk import step as steps

PACKAGE = Path(screenpath.__file__).parent
HEAD = """\
# Made from the declared options by `make stubs`.
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
"""
# Names that are not promised yet.
PREVIEW = (
    "loo", "influence", "reduce", "reduce_run", "prediction_intervals", "--interval", "--removals", "--stable", "--loo",
    "loo_every_c", "--gammas", "--libsvm-grid", "--keep-rows", "keep_rows", "--penalty", "penalty", "sparse-lad",
    "sparse-quantile", "sparse-svr", "sparse_lad_path", "sparse_quantile_path", "sparse_svr_path", "SparseLADRegressor",
    "SparseLADRegressorCV", "SparseQuantileRegressor", "SparseQuantileRegressorCV", "SparseSVMRegressor",
    "SparseSVMRegressorCV", "kernel_lad_path", "kernel_quantile_path", "kernel_svr_path",
)  # fmt: skip
FUNCTIONS = """\
from numpy.typing import ArrayLike, DTypeLike

"""


def signature_of(name: str, function) -> str:
    """Return the line that declares a function, broken where it is long."""
    found, parts, named = inspect.signature(function), [], False
    for one in found.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not named:
            parts, named = [*parts, "*"], True
        typed = one.name if one.annotation is one.empty else f"{one.name}: {one.annotation}"
        parts.append(typed if one.default is one.empty else f"{typed} = {one.default!r}".replace("'", '"'))
    returned = "None" if found.return_annotation is found.empty else found.return_annotation
    whole = ", ".join(part.replace(" ", "\0") for part in parts)  # broken between parameters alone
    inner = textwrap.fill(whole, 112, break_long_words=False, break_on_hyphens=False).replace("\0", " ")
    return f"def {name}(\n{textwrap.indent(inner, '    ')},\n) -> {returned}: ...\n"


def of_package() -> str:
    """Return the names of the package: those that are made here, and where the others come from."""
    made = [name for name, home in screenpath._HOMES.items() if home == paths.__name__]
    others = [(home, name) for name, home in screenpath._HOMES.items() if name not in made]
    lines = [f"from {home} import {name} as {name}\n" for home, name in others]
    imports = "".join(sorted([*lines, "from screenpath.data.files.dataset import RowsLike\n"]))
    functions = "".join("\n" + signature_of(name, getattr(screenpath, name)) for name in made)
    return f"{HEAD}{FUNCTIONS}{imports}\n__version__: str\n{functions}"


def of_estimators() -> str:
    """Return the estimators with their parameters; several that the same ones have stand in a class of their own."""
    kinds = {name: getattr(estimators, name) for name in estimators.__all__ if name != "fitted"}
    owners: dict[str, tuple] = {}
    for name, kind in kinds.items():
        for one in inspect.signature(kind).parameters.values():
            line = f"    {one.name}: {one.annotation}\n"
            owners[line] = (*owners.get(line, ()), name)
    groups = {several: [line for line in owners if owners[line] == several] for several in owners.values()}
    shared = {several: lines for several, lines in groups.items() if len(several) > 2 and len(lines) > 1}
    first = {several: lines[0].partition(":")[0].strip() for several, lines in shared.items()}
    named = {several: f"_{name.title().replace('_', '')}" for several, name in first.items()}
    text = f"{HEAD}\nfrom screenpath.sklearn import estimators\n"
    text += "from screenpath.sklearn.export import fitted as fitted\n"
    text += "\n# Attributes that the same estimators have, under the name of the first.\n"
    text += "\n".join(f"class {named[several]}:\n{''.join(lines)}" for several, lines in shared.items())
    for name, kind in kinds.items():
        bases = [f"{kind.__module__.rpartition('.')[2]}.{name}", *(named[one] for one in shared if name in one)]
        fields = "".join(line for line, several in owners.items() if name in several and several not in shared)
        init = textwrap.indent(signature_of("__init__", kind.__init__), "    ")
        text += f"\nclass {name}({', '.join(bases)}):\n{fields}{init}"
    return text


def table_schema() -> str:
    """Return the table schema of steps.csv: the columns that every model's table has."""
    kinds = {int: "integer", float: "number", str: "string"}
    statuses = [steps.CERTIFIED, steps.BUDGET, steps.ROUNDING, steps.SKIPPED, steps.FAILED]
    first = {"name": "step", "type": "integer", "description": "number of the step, from 0"}
    fields = [{**first, "constraints": {"required": True, "minimum": 0, "unique": True}}]
    for name, hint in typing.get_type_hints(steps.Step, include_extras=True).items():
        kind, column = typing.get_args(hint)
        more = {"constraints": {"required": True, "enum": statuses}} if name == "status" else {}
        fields.append({"name": name, "type": kinds[kind], "description": column.says, **more})
    about = "Also there: the parameters (C, alpha and beta, lambda); columns of the model, an audit, test data, folds."
    whole = {"description": about, "fieldsMatch": "subset", "primaryKey": ["step"], "missingValues": ["", "nan"]}
    return json.dumps({**whole, "fields": fields}, indent=2) + "\n"


def commands(group=cli, name: str = "screenpath", above=None) -> Iterator[tuple[str, list[str]]]:
    """Yield every command, in full, with its options."""
    with click.Context(group, info_name=name.split()[-1], parent=above) as context:
        options = [one for one in group.params if isinstance(one, click.Option)]
        yield name, sorted({word for one in options for word in (*one.opts, *one.secondary_opts)})
        for sub in group.list_commands(context) if isinstance(group, click.Group) else ():
            yield from commands(group.get_command(context, sub), f"{name} {sub}", context)


def names() -> dict[str, list[str]]:
    """Return what users type: commands with options, functions and estimators with parameters, results' attributes."""
    found = dict(commands())
    for name in screenpath._HOMES:
        one = getattr(screenpath, name)
        result = isinstance(one, type) and name != "EpsilonGrid"  # nobody makes one but a function
        attributes = {*dir(one), *getattr(one, "__dataclass_fields__", ())}
        words = attributes if result else inspect.signature(one).parameters
        found[f"screenpath.{name}"] = sorted(word for word in words if not word.startswith("_"))
    for name in estimators.__all__:
        found[f"screenpath.sklearn.{name}"] = sorted(inspect.signature(getattr(estimators, name)).parameters)
    kept = {name: words for name, words in found.items() if name.split()[-1].rpartition(".")[2] not in PREVIEW}
    return {name: [word for word in words if word not in PREVIEW] for name, words in kept.items()}


def made() -> dict[Path, str]:
    """Return the content of every stub."""
    return {
        PACKAGE / "__init__.pyi": of_package(), PACKAGE / "sklearn" / "__init__.pyi": of_estimators(),
        PACKAGE.parent / "schemas" / "steps.table.json": table_schema(),
    }  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:] == ["names"]:
        lines = [f"{json.dumps(name)}: {json.dumps(words)}" for name, words in names().items()]
        (PACKAGE.parent / "schemas" / "names.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        sys.exit()
    for path, text in made().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
