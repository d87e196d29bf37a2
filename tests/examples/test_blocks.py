"""The commands that front page, guide and gallery show can be typed as they stand, on data of that name."""

import gzip
import importlib.util
import re
import shlex

import numpy as np
import pandas
import pytest

from screenpath.catalogue.specs import SPECS
from tests.cli.conftest import bare_pages, call, clouds, libsvm_text  # noqa: F401 (fixtures)
from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "examples").glob("g*/*.md"))]  # guide, gallery
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_HERE = ("cache",)  # tests/cli/test_cache.py: it compiles everything


def commands(page) -> list[str]:
    """Return the commands of a page; what stands behind two blanks or a # describes them."""
    blocks = [text for language, text in BLOCK.findall(page.read_text()) if language in ("", "sh")]
    lines = [line for text in blocks for line in text.splitlines()]
    return [re.split(r"\s{2,}|\s+#", line)[0] for line in lines if line.startswith("screenpath ")]


def screens_of_the_guide():
    """Return the module that runs and renews the screens of the pages."""
    spec = importlib.util.spec_from_file_location("screens", ROOT / "examples" / "guide" / "screens.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


screens = screens_of_the_guide()
GALLERY = sorted(page for page in screens.GALLERY.glob("*.md") if page.stem != "README")
SHOWN = {page: commands(page) for page in PAGES}
RUN = [page for page in PAGES if SHOWN[page]]


@pytest.fixture
def files(tmp_path):
    """Data under the names that the pages use."""
    for k, name in enumerate(("data", "train", "test", "new", "wide")):
        (tmp_path / f"{name}.libsvm").write_text(libsvm_text(*clouds(60, 4, seed=k)))
    X, _ = clouds(60, 4, seed=9)
    for name in ("digits", "digits.t"):
        (tmp_path / f"{name}.libsvm").write_text(libsvm_text(X, np.arange(60) % 10))
    (tmp_path / "targets.libsvm").write_text(libsvm_text(X, np.round(X @ [1.0, -1.0, 0.5, 0.0], 2)))
    text = (tmp_path / "data.libsvm").read_bytes()
    for name in ("data", "day1", "day2"):
        (tmp_path / f"{name}.libsvm.gz").write_bytes(gzip.compress(text))
    X, y = clouds(60, 4, seed=0)
    for name in ("K.npy", "new.npy"):
        np.save(tmp_path / name, X @ X.T + 1.0)
    (tmp_path / "K.labels").write_text("".join(f"{one:g}\n" for one in y))
    rows = [f"{20 + k % 50},{('Graz', 'Wels')[k % 2]},{('no', 'yes')[k % 3 == 0]}" for k in range(60)]
    for name in ("people", "new", "2024", "2025"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["age,city,smoker", *rows]) + "\n")
        if name != "new":
            pandas.read_csv(tmp_path / f"{name}.csv").to_parquet(tmp_path / f"{name}.parquet")
    model = "solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 2 1\nnr_feature 4\nbias 1\nw\n0.1\n0.1\n0\n0\n0\n"
    (tmp_path / "liblinear.model").write_text(model)
    for name in ("data_samples", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def test_pages_show_commands():
    assert len(RUN) >= 4 and sum(map(len, SHOWN.values())) > 30


@pytest.mark.parametrize("page", RUN, ids=[page.stem for page in RUN])
def test_commands_of_a_page(page, files, call):  # noqa: F811 (fixture)
    if not any("svm data.libsvm" in line for line in SHOWN[page]):  # the page speaks of a run without making it
        assert call("svm", "data.libsvm", "--grid", 5, "-q").code == 0
    for line in SHOWN[page]:
        _, *words = shlex.split(line)
        if words[0] in NOT_HERE:
            continue
        # Lines of a list are alternatives: those of a model have one default folder.
        path = words[0] in (*SPECS, "cv") and "-o" not in words
        result = call(*words, *(["--force"] if path else []))
        assert result.code == 0, (line, result)
        assert page.name != "README.md" or "hint: " not in result.err, (line, result)


WITH_SCREENS = [page for page in PAGES if screens.screens(page.read_text())]


@pytest.mark.parametrize("page", WITH_SCREENS, ids=[page.stem for page in WITH_SCREENS])
def test_screens_of_a_page(page, call, tmp_path):  # noqa: F811 (fixture)
    """Each `console` block shows what its commands print; `python examples/guide/screens.py` renews it."""
    screens.folder_of(tmp_path)
    for command, shown in screens.screens(page.read_text()):
        program, *words = shlex.split(command.replace("\\\n", " "))
        if program == "screenpath":
            result = call(*words)
            printed = result.err + result.out
        else:
            printed = screens.typed(command, tmp_path)
        assert screens.same(shown, printed), (command, printed)


def files_of(page) -> list[tuple[str, str]]:
    """Return what the commands of a page on the sample data write, and each command without what changes no file."""
    found = []
    for command in [*commands(page), *(one for one, _ in screens.screens(page.read_text()))]:
        words = [one for one in shlex.split(command.replace("\\\n", " ")) if one not in ("-q", "--quiet")]
        data = [word for word in words if word.startswith("data_samples/")]
        if words[0] != "screenpath" or "--force" in words or not data:
            continue
        if "-o" in words:
            found.append((words[words.index("-o") + 1], " ".join(words)))
        elif words[1] in (*SPECS, "cv"):  # the default folder
            model = "sparse-" * ("--penalty" in words) + "-".join(words[1 : words.index(data[0])])
            found.append((f"runs/{model}-{data[0].split('/')[1].partition('.')[0]}", " ".join(words)))
    return found


def test_pages_can_be_followed_in_one_folder():
    """No page writes what another one has written by another command: that would be refused, or taken for its own."""
    made: dict[str, dict[str, str]] = {}
    for page in PAGES:
        for file, command in files_of(page) if page.parent != screens.GALLERY else ():
            made.setdefault(file, {})[command] = page.name
    assert {file: ways for file, ways in made.items() if len(set(ways.values())) > 1} == {}


def test_a_screen_is_compared():
    shown = "gap 5e-07 of 100 steps\n...\ntotal 0.5 s\n"
    assert screens.same(shown, "gap 7.1e-09 of 100 steps\none\ntwo\ntotal 12.25 s\n")
    assert not screens.same(shown, "gap 5e-07 of 120 steps\none\ntotal 0.5 s\n")
    assert not screens.same(shown, "gap 5e-07 of 100 steps\none\n")
    assert not screens.same("one\n", "one\ntwo\n")
    block = "```console\n$ screenpath a \\\n  b\nout\n$ head c\n```\n"
    assert screens.screens(block) == [("screenpath a \\\n  b", "out\n"), ("head c", "")]


@pytest.mark.parametrize("page", GALLERY, ids=[page.stem for page in GALLERY])
def test_a_page_of_the_gallery_is_one_screen(page):
    """Question, 3 to 8 commands with what they print, a picture that one of them writes, and what is proven."""
    text = page.read_text()
    typed = [command for command, _ in screens.screens(text)]
    (picture,) = screens.PICTURE.findall(text)
    assert text.partition("\n")[0].endswith("?") and len(text.splitlines()) <= 60 and "\n**What is proven.** " in text
    assert 3 <= len(typed) <= 8 and any(command.endswith(picture) for command in typed)
    assert page.with_name(picture).stat().st_size < 70_000


def test_the_gallery_is_whole():
    assert len(GALLERY) == 10
    files = {file.name for file in screens.GALLERY.iterdir() if file.suffix in (".py", ".svg")}
    texts = "".join(page.read_text() for page in GALLERY)
    assert {name for name in files if name not in texts} == set()
