"""The screens of the guide and the gallery: the commands of their `console` blocks, with what they print.

    python examples/guide/screens.py [PAGE...]

runs the commands of every page, or of those named, and renews what stands below them. A line `...` stands for any
lines, and stays. Seconds, clock times and the last digits of numbers vary; a screen is kept where nothing else has
changed. Commands see the sample data and the examples, and each page has a folder of its own. A picture that its
commands write is copied beside the page where something has changed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GALLERY = ROOT / "examples" / "gallery"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SCREEN = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
PICTURE = re.compile(r"!\[[^\]]*\]\(([\w.-]+)\)")
MORE = "..."  # stands for any lines
TIME = re.compile(r"\d\d:\d\d:\d\d|\d[\d.]* (?:h|min|m?s)\b")
TINY = re.compile(r"\d[\d.]*e-\d+")  # gaps, which rounding decides
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
NEAR = 0.05  # relative: what another processor may print


def screens(text: str) -> list[tuple[str, str]]:
    """Return the commands of a page and what it shows below each."""
    return [(command, shown) for block in BLOCK.findall(text) for command, shown in SCREEN.findall(block)]


def words(text: str) -> list[str]:
    """Return the words of a screen, where times and tiny numbers stand for themselves.

    Their widths decide where a line ends and a column begins, so lines are not compared.
    """
    return TINY.sub("tiny", TIME.sub("time", text)).split()


def same_word(shown: str, printed: str) -> bool:
    """Tell whether two words differ at most in the last digits of their numbers."""
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(*([float(n.replace(",", "")) for n in NUMBER.findall(word)] for word in (shown, printed)), strict=True)
    return all(abs(a - b) <= NEAR * max(abs(a), abs(b), 0.1) for a, b in pairs)


def same(shown: str, printed: str) -> bool:
    """Tell whether a screen shows what was printed."""
    return same_words(words(shown), words(printed))


def same_words(wanted: list[str], found: list[str]) -> bool:
    """Tell whether words are the same, `...` standing for any."""
    at = wanted.index(MORE) if MORE in wanted else len(wanted)
    if len(found) < at or not all(map(same_word, wanted[:at], found)):
        return False
    if at == len(wanted):
        return len(found) == at
    return any(same_words(wanted[at + 1 :], found[k:]) for k in range(at, len(found) + 1))


def renewed(shown: str, printed: str) -> str:
    """Return what was printed, shortened in the place where the screen is."""
    lines = [line.rstrip() for line in printed.splitlines()]
    wanted = shown.splitlines()
    if MORE in wanted:
        head, tail = wanted.index(MORE), wanted[::-1].index(MORE)
        lines = [*lines[:head], MORE, *lines[len(lines) - tail :]]
    return "".join(f"{line}\n" for line in lines)


def folder_of(where: Path) -> None:
    """Put what the commands of the pages read into a folder."""
    for name in ("data_samples", "examples"):
        (where / name).symlink_to(ROOT / name)


def typed(command: str, where: Path) -> str:
    """Type a command there and return what the terminal shows."""
    line = re.sub(r"(^|; do )screenpath\b", rf"\1{sys.executable} -m screenpath", command)
    line = re.sub(r"^python\b", sys.executable, line)
    done = subprocess.run(line, shell=True, cwd=where, capture_output=True, text=True)
    return done.stderr + done.stdout


def main() -> None:
    """Renew the screens of the pages named, or of all."""
    every = [ROOT / "README.md", *sorted(HERE.glob("*.md")), *sorted(GALLERY.glob("*.md"))]
    for page in map(Path, sys.argv[1:] or every):
        old = text = page.read_text()
        with tempfile.TemporaryDirectory() as folder:
            folder_of(Path(folder))
            for command, shown in screens(text):
                printed = typed(command, Path(folder))
                if not same(shown, printed):
                    text = text.replace(f"$ {command}\n{shown}", f"$ {command}\n{renewed(shown, printed)}", 1)
                    print(f"{page.name}: $ {command}")
            for picture in PICTURE.findall(text):
                made, kept = Path(folder, picture), page.with_name(picture)
                if made.exists() and (text != old or not kept.exists()):
                    shutil.copyfile(made, kept)
        page.write_text(text)


if __name__ == "__main__":
    main()
