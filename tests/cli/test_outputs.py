"""Where commands write: never to what they read or to a part of a run, to another file only with --force."""

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from screenpath.cli.app import run
from tests.cli.conftest import ROOT, clouds, libsvm_text, screenpath
from tests.conftest import HANGS

PRECIOUS = "mine\n"
PARTS = ("run.json", "steps.csv", "coefficients.csv", "checkpoint.npz", "steps.csv.partial", "cv.json", ".lock")
# Commands that write FILE, with the run folder "run", the data file "data" and its shards "shards".
WRITERS = {
    "predict": ("predict", "run", "data", "--step", "0", "-o", "FILE"),
    "predict-shards": ("predict", "run", "shards", "--step", "0", "-o", "FILE"),
    "predict-kernel": ("predict", "kernel", "new", "--step", "0", "-o", "FILE"),
    "export": ("export", "run", "--step", "0", "--to", "json", "-o", "FILE"),
    "plot": ("plot", "run", "--kind", "gap", "-o", "FILE"),
    "report": ("report", "run", "-o", "FILE"),
    "generate": ("generate", "ogawa-toy", "-o", "FILE"),
    "generate-big": ("generate", "big", "--n", "20", "--p", "3", "-o", "FILE"),
    "compare": ("compare", "svm", "data", "--rules", "none", "--grid", "2", "--repeats", "1", "-o", "FILE"),
    "compare-sparse": (
        "compare", "sparse-svm", "data", "--rules", "none", "--betas", "1", "--alphas", "2", "--start", "warm",
        "--repeats", "1", "-o", "FILE",
    ),
}  # fmt: skip
PICTURES = ("plot", "report")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with data, shards, a linear and a kernel run."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("data", "new"):
        (folder / name).write_text(libsvm_text(*clouds()))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["svm", "data", "--grid", "2", "--quiet", "-o", "run"]) == 0
        assert run(["svm", "data", "--grid", "2", "--kernel", "rbf", "--quiet", "-o", "kernel"]) == 0
        assert run(["convert", "data", "shards", "--quiet"]) == 0
    return folder


@pytest.fixture
def files(call, made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def words(name, file) -> list:
    """Return a command that writes a file."""
    if name in PICTURES:
        pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    return [str(file) if word == "FILE" else word for word in WRITERS[name]]


@contextlib.contextmanager
def device():
    """Yield the name of a character device, a terminal whose other side reads what is written to it."""
    near, far = os.openpty()

    def drain():
        with contextlib.suppress(OSError):  # nobody holds the far end any more
            while os.read(near, 65536):
                continue

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        yield os.ttyname(far)
    finally:
        os.close(far)
        reader.join(timeout=HANGS)
        os.close(near)


def ending(name, file) -> str:
    return f"{file}.png" if name == "plot" else str(file)


def everything(folder) -> dict:
    found = {}
    for path in sorted(folder.rglob("*")):
        found[str(path)] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


@pytest.mark.parametrize(("name", "end", "begins"), [
    ("compare", "csv", b"rule,"), ("compare", "md", b"| rule |"), ("compare", "json", b"["),
    ("compare", "txt", b"| rule |"), ("predict", "csv", b"label\n"), ("predict", "txt", b"label\n"),
    ("predict", "parquet", b"PAR1"),
])  # fmt: skip
def test_the_end_of_a_name_tells_the_format(call, files, name, end, begins):
    if end == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    assert call(*words(name, f"out.{end}")).code == 0
    assert (files / f"out.{end}").read_bytes().startswith(begins)
    assert call(*words(name, f"out.{end}"), "--force", "--format", "csv").code == 0
    assert b"," in (files / f"out.{end}").read_bytes().split(b"\n")[0] or name == "predict"


@pytest.mark.parametrize(("words", "end"), [
    (WRITERS["compare"][:-1], "tex"), (WRITERS["predict"][:-1], "json"), (("report", "run", "-o"), "pdf"),
    (("loo", "run", "--step", "0", "-o"), "parquet"), (("influence", "run", "--step", "0", "-o"), "xlsx"),
])  # fmt: skip
def test_the_end_of_another_format_is_refused(call, files, words, end):
    found = call(*words, f"out.{end}")
    assert found.code == 2 and f"--out out.{end}: what is written is " in found.err and "end the name in ." in found.err
    assert not (files / f"out.{end}").exists()


@pytest.mark.parametrize("name", WRITERS)
def test_an_existing_file_needs_force(call, files, name):
    file = Path(ending(name, "there"))
    file.write_text(PRECIOUS)
    before = everything(files)
    result = call(*words(name, file))
    assert result.code == 2 and result.out == ""
    assert f"{file} exists already" in result.err and "--force" in result.err
    assert everything(files) == before
    assert call(*words(name, file), "--force").code == 0
    assert file.read_bytes() != PRECIOUS.encode()
    assert call(*words(name, ending(name, "fresh"))).code == 0
    assert sorted(set(os.listdir(files)) - {Path(p).name for p in before}) == [ending(name, "fresh")]


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("predict", ["data", *(f"run/{part}" for part in PARTS[:3])]), ("export", [f"run/{p}" for p in PARTS[:3]]),
        ("predict-shards", ["shards/meta.json", "shards/00000-targets.npy"]), ("report", ["run/run.json"]),
        ("predict-kernel", ["data", "new", "kernel/coefficients.csv"]), ("plot", ["run/steps.csv"]),
        ("compare", ["data"]), ("compare-sparse", ["data"]),
    ],
)  # fmt: skip
def test_inputs_and_parts_are_never_written_to(call, files, name, inputs, link):
    """Not even with --force, nor through a second name."""
    for k, file in enumerate(inputs):
        if not Path(file).exists():
            file = next(str(path) for path in sorted(Path(file).parent.iterdir()) if path.suffix == ".npy")
        if link is not None or name == "plot":  # which looks at the ending first
            other = ending(name, f"other-{k}")
            (link or os.symlink)(os.path.abspath(file), other)
            file = other
        before = everything(files)
        for more in ((), ("--force",)):
            result = call(*words(name, file), *more)
            assert result.code == 2 and "never overwritten" in result.err, result
            assert everything(files) == before


@pytest.mark.parametrize("name", ["predict", "export", "generate", "compare"])
def test_names_of_parts_are_taken(call, files, name):
    """A part of any run folder, whether it is there or not; other names beside the parts are free."""
    (files / "link").symlink_to(files / "kernel")
    for place in ("kernel", "link", "./run/../kernel"):
        for part in (*PARTS, "parts.partial/0/0-0.npz", "run.json.new-0123456789abcdef"):
            before = everything(files)
            result = call(*words(name, f"{place}/{part}"), "--force")
            assert result.code == 2 and "part of a run" in result.err, (part, result)
            assert everything(files) == before
    assert call(*words(name, "kernel/model")).code == 0


def test_the_picture_of_a_run_is_not_replaced_silently(call, files):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    assert call("plot", "run", "--kind", "gap").code == 0
    result = call("plot", "run", "--kind", "gap")
    assert result.code == 2 and "run/gap.png exists already" in result.err
    assert call("plot", "run", "--kind", "gap", "--force").code == 0


@pytest.mark.parametrize("name", WRITERS)
def test_links_are_replaced_not_followed(call, files, name):
    Path("target").write_text(PRECIOUS)
    for k, link in enumerate((os.symlink, os.link)):
        file = ending(name, f"link-{k}")
        link("target", file)
        assert call(*words(name, file)).code == 2
        assert call(*words(name, file), "--force").code == 0
        assert Path("target").read_text() == PRECIOUS and not os.path.islink(file)
        assert os.stat(file).st_size != len(PRECIOUS)
    os.symlink("nowhere", ending(name, "dangling"))
    assert call(*words(name, ending(name, "dangling"))).code == 2
    assert not os.path.lexists("nowhere")


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "plot"])
def test_standard_output_and_devices(call, files, name):
    with device() as terminal:  # not /dev/null, which a fault would replace where the tests run as root
        assert call(*words(name, terminal)).code == 0
        assert stat.S_ISCHR(os.stat(terminal).st_mode)
    plain = call(*words(name, "-"))
    assert plain.code == 0 and plain.out
    if "compare" not in name:  # whose seconds differ
        assert call(*words(name, "/dev/stdout")).out == plain.out == call(*words(name, "/dev/fd/1")).out
    for file in ("/dev/fd/987", "no/such/file", "run", "/dev"):
        if not (name.startswith("generate") and file == "no/such/file"):  # which makes folders
            result = call(*words(name, file))
            assert result.code == 2 and file in result.err, result


def test_pipes_and_what_the_shell_opens(files):
    """A named pipe, and /dev/stdout where it is a file that has something in it already."""
    os.mkfifo(files / "pipe")
    reader = subprocess.Popen(["cat", str(files / "pipe")], stdout=subprocess.PIPE)
    done = screenpath("generate", "ogawa-toy", "-o", files / "pipe")
    assert done.returncode == 0, done.stderr
    expected = screenpath("generate", "ogawa-toy").stdout
    assert reader.communicate(timeout=HANGS)[0].decode() == expected
    script = f'(echo head; "{sys.executable}" -m screenpath generate ogawa-toy -o /dev/stdout; echo tail) > out'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(["sh", "-c", script], cwd=files, env=environment, check=True, timeout=HANGS)
    assert (files / "out").read_text() == f"head\n{expected}tail\n"


def test_modes_follow_the_umask(call, files):
    before = os.umask(0o027)
    try:
        assert call("export", "run", "--step", "0", "--to", "json", "-o", "model").code == 0
        assert call("svm", "data", "--grid", "2", "--quiet", "-o", "private").code == 0
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o777 for path in (Path("model"), *Path("private").iterdir())}
    assert set(found.values()) == {0o640} and Path("private").stat().st_mode & 0o777 == 0o750


def test_a_file_that_appears_meanwhile_stays(call, files, monkeypatch):
    from screenpath.export import export as models

    def slow(run, step, training):
        Path("model").write_text(PRECIOUS)
        return "{}"

    monkeypatch.setitem(models.FORMATS, "json", slow)
    result = call("export", "run", "--step", "0", "--to", "json", "-o", "model")
    assert result.code == 2 and "exists already" in result.err
    assert Path("model").read_text() == PRECIOUS and not list(files.glob("*.new-*"))
