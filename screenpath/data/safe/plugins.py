"""Plug-ins: a rule or a solver of the user's own, named by file and class (``mine.py:MyRule``) or given as a class.

Only a file that the user has named is imported, never one that a run folder or a model file names.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import inspect
import re
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from screenpath.errors import ScreenpathError, UsageError

OPTIONS = ("rule", "solver")  # options that accept a plug-in
NAMED = re.compile(r"(?:gap\+)?(?P<file>[^\n]+\.py)(?::(?P<name>[^+]*))?(?P<gap>\+gap)?", re.IGNORECASE)
METHODS = ("region", "before", "solve")  # one of them makes an object a rule or a solver


class PluginError(ScreenpathError):
    """The code of a plug-in has failed or returned something invalid (exit code 1)."""


@dataclass(frozen=True)
class Plugin:
    text: str  # its name in run.json and messages
    dynamic: bool  # whether it was named with ``+gap``
    own: Any = field(default=None, compare=False)  # the class or object, if it was not named by its file
    file: str | None = None  # absolute path
    sha256: str | None = None  # of the file; None for a class that has none
    name: str = ""  # of the class in the file

    def __str__(self) -> str:
        return self.text

    def found(self) -> Any:
        """Return the class or object; the file is imported now, if it is unchanged since it was named."""
        if self.own is not None:
            return self.own
        module = _imported(self)
        if not hasattr(module, self.name):
            there = [n for n, one in vars(module).items() if getattr(one, "__module__", None) == module.__name__]
            near = difflib.get_close_matches(self.name, there, 1, 0.5) or there
            hint = f"did you mean {near[0]}?" if len(near) == 1 else f"it has {', '.join(near) or 'no class'}"
            raise UsageError(f"{self.text}: the file has no class '{self.name}'", hint)
        return getattr(module, self.name)

    def made(self, needed: tuple[str, ...], **options) -> Any:
        """Return the object, made with the options it accepts if it is a class; the ``needed`` methods must exist."""
        found = self.found()
        for name in needed:
            method = getattr(found, name, None)
            if not callable(method) or getattr(method, "__isabstractmethod__", False):
                raise UsageError(f"{self.text} has no method '{name}'", "the guide page plugins.md shows the contract")
        if not inspect.isclass(found):
            return found
        with self.guarded():
            taken = inspect.signature(found).parameters
            return found(**{name: value for name, value in options.items() if name in taken})

    @contextlib.contextmanager
    def guarded(self):
        """Turn an exception of the user's code into one message with file, line and its text."""
        try:
            yield
        except ScreenpathError:
            raise
        except Exception as error:
            raise PluginError(*self._told(error)) from error

    def _told(self, error: Exception) -> tuple[str, str]:
        import traceback

        frames = list(traceback.extract_tb(error.__traceback__))
        own = [frame for frame in frames if frame.filename == self.file] or frames[-1:]
        last: Any = own[-1]
        file, line, text = last.filename, last.lineno, last.line
        if isinstance(error, SyntaxError) and error.filename == self.file:
            file, line, text = error.filename, error.lineno, error.text
        what = f"{file}:{line}: {type(error).__name__}: {error}"
        return what.replace("`", "'"), f"{self.text} has failed there: {(text or '').strip()}".replace("`", "'")


def plugin_of(value) -> Plugin | None:
    """Return the plug-in that an option's value names or is; None for a built-in name.

    ``value`` is a str, a class, an object, or a tuple (class or object, "gap").
    """
    if value is None or isinstance(value, Plugin):
        return value
    if isinstance(value, str):
        match = NAMED.fullmatch(value.strip())
        return None if match is None else _of_file(value.strip(), match)
    own, *more = value if isinstance(value, tuple) and value else (value,)
    if more not in ([], ["gap"]) or not any(callable(getattr(own, name, None)) for name in METHODS):
        return None
    kind = own if inspect.isclass(own) else type(own)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    there = None if file is None or not Path(file).is_file() else Path(file)
    text = f"{there.name if there else 'python'}:{kind.__name__}" + ("+gap" if more else "")
    return Plugin(text, bool(more), own, None, _digest(there.read_bytes()) if there else None, kind.__name__)


def _of_file(text: str, match: re.Match) -> Plugin:
    file = Path(match["file"])
    if not file.is_file():
        raise UsageError(f"there is no file {file} (of {text})", "check the name and the folder")
    if not (match["name"] or "").isidentifier():
        raise UsageError(f"'{text}' names no class of {file}", f"write {file}:NAME, or {file}:NAME+gap")
    dynamic = bool(match["gap"]) or text.lower().startswith("gap+")
    return Plugin(text, dynamic, None, str(file.absolute()), _digest(file.read_bytes()), match["name"])


def find_plugins(options: dict) -> None:
    """Replace the names of plug-ins in the options by the plug-ins: their files are fixed from now on."""
    options.update({name: plugin_of(options[name]) or options[name] for name in OPTIONS})


def refuse_unaudited(rules, audited: bool) -> None:
    """Refuse a plug-in that ``assumes_exact`` references, unless an audit counts its unsafe decisions."""
    plugins = [] if audited else [plugin_of(rule) for rule in rules]
    for plugin in plugins:
        if plugin is not None and getattr(plugin.found(), "assumes_exact", False):
            raise UsageError(f"{plugin} assumes exact references: its decisions can be unsafe", "add `audit`")


def identified(options: dict) -> dict:
    """Return options that identify a run: plug-ins by their names and the hashes of their files."""
    own = {name: value for name, value in options.items() if isinstance(value, Plugin)}
    hashes = {f"{name}_sha256": plugin.sha256 for name, plugin in own.items()}
    return {**options, **{name: str(plugin) for name, plugin in own.items()}, **hashes}


def is_named(text: str) -> bool:
    return NAMED.fullmatch(text) is not None or text.startswith("python:")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _imported(plugin: Plugin) -> types.ModuleType:
    """Return the module of the file, run once per content in a process."""
    name = f"screenpath_plugin_{str(plugin.sha256)[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    content = Path(str(plugin.file)).read_bytes()
    if _digest(content) != plugin.sha256:
        raise PluginError(f"{plugin.file} has changed since the run began", "leave it as it is until the run ends")
    module = types.ModuleType(name)
    module.__file__ = plugin.file
    sys.modules[name] = module  # dataclasses and pickle look there
    try:
        with plugin.guarded():
            exec(compile(content, str(plugin.file), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module
