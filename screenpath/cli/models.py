"""The models' commands: those of box losses are made of what the loss declares, the others have a module each."""

from __future__ import annotations

from importlib import import_module

from screenpath.models.losses import LOSSES
from screenpath.models.spec import chunked
from screenpath.models.specs import SPECS

OWN = {"svm": "svm", "l1svm": "l1svm", "sparse-svm": "sparse_svm"}  # module below screenpath.cli


def command_of(name: str):
    """Return the command that computes a path of a model."""
    if name in OWN:
        return import_module(f"screenpath.cli.{OWN[name]}").command
    from screenpath.cli.losses import path_command

    return path_command(LOSSES[name])


def resolve(name: str, options: dict) -> tuple:
    """Return the model that the options of its command describe, and the options of the job."""
    if name in OWN:
        return import_module(f"screenpath.cli.{OWN[name]}").resolve(options)
    return chunked(SPECS[name], options), options
