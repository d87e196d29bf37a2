"""The group of commands: help, version, exit codes, imports."""

import click
import pytest

from screenpath import __version__
from screenpath.cli.app import COMMANDS, cli
from tests.cli.conftest import ROOT, in_process, screenpath

HEAVY = ("numba", "numpy", "scipy", "rich")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["svm", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    script = f"""
import sys
from screenpath.cli.app import run
code = run(sys.argv[1:])
loaded = [name for name in {HEAVY!r} if name in sys.modules]
assert not loaded, loaded
sys.exit(code)
"""
    done = in_process(script, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_help_lists_commands_and_exit_codes(call):
    result = call("--help")
    assert result.code == 0
    for name in COMMANDS:
        assert f"  {name} " in result.out
    for code in ("0", "1", "2", "3", "130", "143"):
        assert f"  {code} " in result.out


def test_version(call):
    assert call("--version").out == f"screenpath, version {__version__}\n"


def commands():
    """Return every command and subcommand with its path of names."""
    found = []

    def visit(names, command):
        found.append((" ".join(names), command))
        if isinstance(command, click.Group):
            for name in command.list_commands(None):
                visit([*names, name], command.get_command(None, name))

    for name in COMMANDS:
        visit([name], cli.get_command(None, name))
    return found


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_command_and_option_has_help(name, command):
    assert command.help, name
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_is_in_the_readme(name):
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("there is no README.md yet")
    assert f"screenpath {name}" in readme.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "error: Missing command"),
        (["svn"], "error: No such command 'svn'"),
        (["svm"], "error: Missing argument 'DATA'"),
        (["svm", "a", "--grid", "x"], "error: Invalid value for '--grid'"),
    ],
)
def test_wrong_usage_is_one_message(call, arguments, message):
    result = call(*arguments)
    assert result.code == 2
    assert result.err.startswith(message) and "--help" in result.err


def test_ctrl_c_before_the_work_begins(call, monkeypatch):
    def interrupted(**options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    result = call("svm", "a")
    assert result.code == 130 and result.err == "error: stopped by Ctrl-C\n"


def test_closed_stdout_is_no_traceback(data):
    script = """
import os, sys
reader, writer = os.pipe()
os.dup2(writer, 1)
os.close(writer)
os.close(reader)
from screenpath.cli import main
main()
"""
    done = in_process(script, "svm", data, "--grid", "3", "-o", "-", "--quiet")
    assert done.returncode == 1
    assert done.stderr == ""


def test_full_device_behind_stdout(data):
    with open("/dev/full", "w") as full:
        done = screenpath("svm", data, "--grid", "3", "-o", "-", "--quiet", stdout=full)
    assert done.returncode == 1
    assert "No space left" in done.stderr and "Traceback" not in done.stderr


def test_real_process(data):
    done = screenpath("svm", data, "--grid", "3", "-o", "-")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 4
    assert "3 of 3 steps" in done.stderr


def test_threads_of_numerical_libraries_are_set_before_they_load():
    script = """
import os
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.pop(name, None)
os.environ["OMP_NUM_THREADS"] = "3"
from screenpath.cli import main
try:
    main(["--version"])
except SystemExit:
    pass
print(*(os.environ[n] for n in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")))
"""
    assert in_process(script).stdout.splitlines()[-1] == "1 3 1"


def test_warm_up_covers_the_kernels_of_a_run(data):
    """No kernel may be compiled or loaded while a step's clock runs."""
    script = """
import sys
from screenpath.cli import warm
from numba.core.registry import CPUDispatcher
import gc
def signatures():
    return sum(len(k.signatures) for k in gc.get_objects() if isinstance(k, CPUDispatcher))
real = warm.warm_model
def counted(*arguments):
    real(*arguments)
    warm.count = signatures()
warm.warm_model = counted
from screenpath.cli.app import run
code = run(sys.argv[1:])
assert code == 0, code
print("extra", signatures() - warm.count)
"""
    for k, more in enumerate(((), ("--storage", "sparse", "--rule", "gap"))):
        folder = data.parent / f"r{k}"
        done = in_process(script, "svm", data, "--grid", "20", "-o", folder, "--quiet", *more)
        assert done.stdout.strip() == "extra 0", (more, done.stdout, done.stderr)


def test_warnings_are_one_line_and_quiet_silences_them(call, data, monkeypatch):
    import warnings

    from screenpath.cli import load

    real = load.read_libsvm

    def noisy(*arguments, **options):
        warnings.warn("mind the gap", RuntimeWarning, stacklevel=2)
        return real(*arguments, **options)

    monkeypatch.setattr(load, "read_libsvm", noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = call("svm", data, "--grid", 2, "-o", "a")
        assert result.code == 0 and result.err.startswith("warning: mind the gap\n")
        assert call("svm", data, "--grid", 2, "-o", "b", "--quiet").err == ""
