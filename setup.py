"""Makes the manual pages of what the commands declare when the package is built; all else stands in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent))
from screenpath.cli.man import pages

folder = Path("build", "man")
folder.mkdir(parents=True, exist_ok=True)
for name, text in pages():
    (folder / f"{name}.1").write_text(text, encoding="utf-8")
setup(data_files=[("share/man/man1", sorted(path.as_posix() for path in folder.glob("*.1")))])
