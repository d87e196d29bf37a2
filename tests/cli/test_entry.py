"""The group of commands: help, version, exit codes, imports."""

import json
import os
import signal
import time
from importlib.metadata import version

import click
import pytest

from screenpath import __version__
from screenpath.cli.app import COMMANDS, cli
from screenpath.cli.signals import Signals, Stopped
from screenpath.errors import shown, shown_lines
from screenpath.report.console import Console
from tests.cli.conftest import ROOT, in_process, screenpath
from tests.conftest import HANGS

HEAVY = ("numba", "numpy", "scipy", "rich")


def test_help_imports_nothing_heavy():
    script = f"""
import sys
from screenpath.cli.app import run
for line in sys.argv[1:]:
    assert run(line.split()) == 0, line
    loaded = [name for name in {HEAVY!r} if name in sys.modules]
    assert not loaded, (line, loaded)
    print(end="\\x1e", flush=True)
"""
    lines = "", "--help", "--version", "--version --json", "info", "svm --help", "svm --help-all", "help cv svm"
    done = in_process(script, *lines)
    assert done.returncode == 0, done.stderr
    assert all(done.stdout.split("\x1e")[:-1]) and done.stdout.count("\x1e") == len(lines)


@pytest.mark.parametrize("command", ("svm", "cv svm --folds 2"))
def test_a_path_on_dense_rows_starts_without_what_it_does_not_use(command, tmp_path):
    script = """
import gc, sys
from screenpath.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0
needless = ("scipy.sparse", "scipy.linalg", "screenpath.rows.shards", "screenpath.rows.column_shards",
    "screenpath.data.shards.shards", "screenpath.data.shards.convert", "screenpath.problem.l1svm",
    "screenpath.store.certificates", "screenpath.walk.workers")
print([name for name in needless if name in sys.modules], gc.get_freeze_count() > 0, file=sys.stderr)
"""
    rows = "".join(f"{2 * (k % 2) - 1} 1:{k} 2:{k * k % 7}\n" for k in range(1, 41))
    (tmp_path / "data.txt").write_text(rows)
    arguments = [str(tmp_path / "data.txt"), "--grid", "3", "--out", str(tmp_path / "run"), "--quiet"]
    in_process(script, *command.split(), *arguments, "--force")  # compiles what has to be
    done = in_process(script, *command.split(), *arguments, "--force")
    assert done.stderr.splitlines()[-1] == "[] True", done.stderr
    # What has empty places is kept in scipy's form: the question is not answered by nothing ever being there.
    (tmp_path / "data.txt").write_text(rows.replace(" 2:", " 9:"))
    done = in_process(script, *command.split(), *arguments, "--force", "--storage", "sparse")
    assert "'scipy.sparse'" in done.stderr.splitlines()[-1], done.stderr


def test_help_lists_commands_and_exit_codes(call):
    result = call("--help")
    assert result.code == 0
    for name in COMMANDS:
        assert f"  {name} " in result.out
    for code in ("0", "1", "2", "3", "130", "143"):
        assert f"  {code} " in result.out


def test_version(call):
    assert call("--version").out == f"screenpath, version {__version__}\n"


def test_version_as_json_is_what_info_shows(call, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    found = json.loads(call("--version", "--json").out)
    assert found["versions"]["screenpath"] == __version__ and found["versions"]["numpy"] == version("numpy")
    assert 1 <= found["machine"]["processors_allowed"] <= found["machine"]["processors"] == os.cpu_count()
    folder = tmp_path / "kept" / "screenpath"
    assert found["cache"] == {"folder": str(folder), "writable": True, "kernels": 0, "bytes": 0}
    assert call("info", "--json").out == call("--version", "--json").out
    (folder / "key").mkdir(parents=True)
    (folder / "key" / "a.kernel").write_bytes(bytes(2_500_000))
    assert json.loads(call("--version", "--json").out)["cache"]["bytes"] == 2_500_000
    lines = dict(line.split(maxsplit=1) for line in call("info").out.splitlines())
    assert lines["cache"] == f"{folder}: 1 kernels, 2.5 MB" and lines["numba"] == version("numba")
    assert [*lines] == [*found["versions"], "system", "processor", "threads", "cache"]


def test_info_names_the_folder_that_kernels_are_kept_in(tmp_path):
    """What is shown without numba is what numba's side chooses."""
    script = """
from screenpath.cli.cache import facts
from screenpath.compile.cache import cache_folder
assert str(cache_folder().parent) == facts()["cache"]["folder"], (cache_folder(), facts())
"""
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        environment = {key: text for key, text in os.environ.items() if key != "NUMBA_CACHE_DIR"}
        done = in_process(script, env={**environment, name: str(tmp_path / name), "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr


def test_json_alone_says_where_it_belongs(call):
    found = call("--json")
    assert found.code == 2 and found.err.startswith("error: --json belongs to --version")
    assert call("--version", "--json").code == 0


def commands():
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["svn"], "error: No such command 'svn'"), (["svm"], "error: Missing argument 'DATA'"),
        (["svm", "a", "--grid", "x"], "error: Invalid value for '--grid'"),
        (["predict", "x.csv"], "error: Missing argument 'DATA'.\n  screenpath predict [OPTIONS] RUN DATA; see "),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize(
    "number, hint", [(13, "choose another"), (30, "choose another"), (20, "check the name"), (122, "free some")]
)
def test_an_error_of_the_system_says_what_to_do(data, number, hint, tmp_path, monkeypatch, call):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number), "that/file")

    monkeypatch.setattr("screenpath.store.folder.FolderLock", fail)
    result = call("svm", data, "--grid", "3", "-o", tmp_path / "run")
    assert result.code == 1 and result.err.startswith(f"error: that/file: {os.strerror(number)}\n  {hint}"), result.err


def test_full_device_behind_stdout(data):
    with open("/dev/full", "w") as full:
        done = screenpath("svm", data, "--grid", "3", "-o", "-", "--quiet", stdout=full)
    assert done.returncode == 1
    assert "standard output: No space left" in done.stderr and "Traceback" not in done.stderr


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
from screenpath.engine import warm
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

    from screenpath.inputs import load

    real = load.read_file

    def noisy(*arguments, **options):
        warnings.warn("mind the gap", RuntimeWarning, stacklevel=2)
        return real(*arguments, **options)

    monkeypatch.setattr(load, "read_file", noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = call("svm", data, "--grid", 2, "-o", "a")
        assert result.code == 0 and result.err.startswith("warning: mind the gap\n")
        assert call("svm", data, "--grid", 2, "-o", "b", "--quiet").err == ""


# Something that happens when a module is first imported; the module that Ctrl-C hits may be anybody's.
AT_IMPORT = """
import os, signal, sys, time
from importlib.abc import MetaPathFinder

class AtImport(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            {happens}

module = sys.argv.pop(1)
sys.meta_path.insert(0, AtImport())
from screenpath.cli import main
main()
"""


@pytest.mark.parametrize("module", ["click", "numpy._core.multiarray", "llvmlite.binding", "antigravity"])
def test_ctrl_c_within_an_import_is_no_traceback(data, module):
    """Neither does it become another error: what is imported may turn an exception into one of its own."""
    listening = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # wherever the tests run
    script = listening + AT_IMPORT.format(happens="os.kill(os.getpid(), signal.SIGINT)")
    done = in_process(script, module, "svm", data, "--grid", "3", "-o", data.parent / "r")
    assert done.returncode == (130 if module != "antigravity" else 0), done.stderr
    assert "Traceback" not in done.stderr and (done.stderr == "" or module == "antigravity")
    assert (data.parent / "r").exists() == (module == "antigravity")  # which nobody imports


def test_ctrl_c_in_the_background_is_not_heard(data):
    """A shell starts jobs in the background with SIGINT ignored."""
    script = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + AT_IMPORT
    done = in_process(script.format(happens="os.kill(os.getpid(), signal.SIGINT)"), "click", "--version")
    assert done.returncode == 0 and done.stdout


def test_ctrl_c_within_an_import_of_a_run_waits_for_its_end(tmp_path, monkeypatch):
    """Where there are files to keep; the module is whole then, and the signal is not lost."""
    (tmp_path / "hit_by_a_signal.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nfor _ in range(10_000):\n    pass\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with Signals() as signals:
        signals.keeping = True
        import hit_by_a_signal

        assert hit_by_a_signal.whole
        with pytest.raises(Stopped) as stopped:
            time.sleep(HANGS)
    assert stopped.value.number == signal.SIGTERM


def test_time_limit_counts_from_the_start_of_the_command(data):
    """Imports and reading are part of it."""
    script = AT_IMPORT.format(happens="time.sleep(3.0)")
    for module, code, status in (("numpy", 3, "skipped"), ("antigravity", 0, "certified")):
        limit = 2.0 if code else 500.0
        done = in_process(script, module, "svm", data, "--grid", 2, "--time-limit", limit, "-o", "-", "--quiet")
        assert done.returncode == code, done.stderr
        assert [line.split(",")[2] for line in done.stdout.splitlines()[1:]] == [status] * 2


HOSTILE = "\x1b]0;pwned\x07\x1b[31mred\u202etxt\n[bold]x"


def test_terminal_commands_in_names_are_shown(call, data, tmp_path):
    """A name that clears the screen, colours it, or hides a line: errors, warnings, progress, results, faults."""
    named = tmp_path / HOSTILE
    named.write_text(data.read_text())
    folder = tmp_path / f"out{HOSTILE}"
    bad = tmp_path / f"bad{HOSTILE}"
    bad.write_text("1 1:2\n2 1:x\n")
    said = [
        call("svm", tmp_path / f"missing{HOSTILE}", "-o", "a"),
        call("svm", bad, "-o", "b"),
        call("svm", named, "--grid", 2, "-o", folder),
        call("svm", named, "--grid", 2, "-o", folder),  # refused: it is there
        call("svm", named, "--grid", 2, "-o", folder, "--resume"),
        call("svm", named, f"--{HOSTILE}"),
        call("svm", named, "--weights", tmp_path / f"w{HOSTILE}", "-o", "d"),
        call("predict", folder, tmp_path / f"gone{HOSTILE}", "--step", 1),
        call("report", folder, "-o", f"page{HOSTILE}"),
        call("plot", folder, "--terminal", "--kind", "gap"),
        call("inspect", bad),
        call("convert", named, tmp_path / f"shards{HOSTILE}"),
        call("convert", named, tmp_path / f"shards{HOSTILE}"),
    ]
    assert {result.code for result in said} == {0, 1, 2}
    for result in said:
        text = result.err + result.out
        assert "\\x1b[31mred\\u202etxt" in text, text
        assert all(c.isprintable() or c == "\n" for c in text), text
        assert "\n[bold]" not in text


def test_a_terminal_shows_names_as_they_are(capfd):
    """Neither its commands nor the mark-up of the table are obeyed."""
    console = Console(False, None)
    console.terminal = True
    console.summary([("results", f"runs/[red]x[/red]{HOSTILE}")])
    err = capfd.readouterr().err
    assert "[red]x[/red]" in err and "\\x1b]0;pwned\\x07" in err.replace("\n", "") and "\x07" not in err


def test_shown():
    assert shown("plain é 中 \\x1b") == "plain é 中 \\x1b"
    assert shown("a\tb\r\n\x00\x9b\u2066\udcff") == "a\\tb\\r\\n\\x00\\x9b\\u2066\\udcff"
    assert shown_lines("one\n\ttwo\x1b") == "one\n  two\\x1b"


def test_the_shell_hears_flags(call, data):
    found = call("svm", data, "--cmin", "2", "--cmax", "1")
    assert found.code == 2 and "swap --cmin and --cmax" in found.err and "`" not in found.err


def test_errors_warnings_and_signals_are_objects_too(call, data, monkeypatch):
    """As soon as --log-format has been read; what is said of it stands in the same stream."""
    result = call("svm", data, "--grid", 3, "--log-format", "json", "--cmin", "none")
    (error,) = map(json.loads, result.err.splitlines())
    assert result.code == 2 and (error["event"], error["exit_code"]) == ("error", 2) and "--cmin" in error["message"]
    monkeypatch.setattr(Console, "advance", lambda self, step: signal.raise_signal(signal.SIGTERM))
    result = call("svm", data, "--gird", 3, "--log-format", "json")  # an option that there is not, before it
    assert result.code == 2 and json.loads(result.err)["event"] == "error"
    result = call("svm", data, "--grid", 3, "--log-format", "json", "--out", "run")
    events = [json.loads(line) for line in result.err.splitlines()]
    assert result.code == 143 and "stopping: finished steps are kept" in events[0]["message"]
    assert events[-1]["event"] == "summary" and ["ended", "interrupted"] in events[-1]["items"]
    monkeypatch.undo()
    result = call("svm", data, "--grid", 3, "--out", data.parent / "run", "--log-format", "json")
    (error,) = map(json.loads, result.err.splitlines())
    assert result.code == 1 and "--resume" in error["hint"]


def test_byte_code_that_is_cut_off_is_no_ctrl_c(call, monkeypatch):
    def ends(*_, **__):
        raise EOFError("marshal data too short")

    monkeypatch.setattr("screenpath.cli.rules.rules_of", ends)
    found = call("rules", "svm")
    assert found.code == 1 and "marshal data too short" in found.err and "Ctrl-C" not in found.err
