"""Makes manual pages and completions of what the commands declare when the package is built; see pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent))
from screenpath.cli.app import cli
from screenpath.cli.help import completion_of
from screenpath.cli.man import pages

SHELLS = {  # where each looks for the completion of a command, below share
    "bash": "bash-completion/completions/screenpath",
    "zsh": "zsh/site-functions/_screenpath",
    "fish": "fish/vendor_completions.d/screenpath.fish",
}

made = {f"man/man1/{name}.1": text for name, text in pages()}
made |= {place: completion_of(shell, cli) for shell, place in SHELLS.items()}
folders = {}
for place, text in made.items():
    file = Path("build", "share", place)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    folders.setdefault(f"share/{Path(place).parent.as_posix()}", []).append(file.as_posix())
setup(data_files=[(folder, sorted(files)) for folder, files in folders.items()])
