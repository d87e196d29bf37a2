"""What a release has to be before it goes out, in clean environments:

    python tests/release.py [OUT [VERSION...]]     (or `make release-check`; about four minutes for each Python)

builds sdist and wheel into OUT (default build/release), looks into both, and installs the wheel for every Python of
``PYTHONS`` that this machine has: with the newest dependencies, and for the oldest Python with the oldest that
pyproject.toml allows; of these only the versions that are named, if any is. Each then computes, proves and uses a first
path, and reads a run of 0.1.0: in a home without any cache, from a folder that is not the source, with a site-packages
that cannot be written to, as another user where this one is root. pipx and uvx install the wheel, and the sources make
demo and site. Packages come from where pip is set up to take them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MOST = 1_500_000  # bytes of wheel or sdist
NOBODY = 65534
SHARED = (
    "man/man1/screenpath.1", "man/man1/screenpath-svm.1", "bash-completion/completions/screenpath",
    "zsh/site-functions/_screenpath", "fish/vendor_completions.d/screenpath.fish",
)  # fmt: skip
NEEDED = ("py.typed", "__init__.pyi", "sklearn/__init__.pyi", "cli/app.py", "kernels/walk/compiled.py")
LICENCES = """
from importlib.metadata import distributions
for one in sorted(distributions(), key=lambda one: one.name.lower()):
    about = one.metadata
    kinds = [kind for kind in about.get_all("Classifier") or () if kind.startswith("License")]
    kinds = [kind.rpartition("::")[2].strip() for kind in kinds]
    text = about.get("License-Expression") or ", ".join(kinds) or (about.get("License") or "?").splitlines()[0]
    print(f"{one.name:<20} {one.version:<12} {text}")
"""


def main() -> None:
    """Check everything; the first failure ends with a message."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "release").resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    wheel, sdist = built(out)
    for file, fault in ((wheel, wheel_fault(wheel)), (sdist, sdist_fault(sdist))):
        if fault:
            sys.exit(f"{file.name}: {fault}")
        print(f"{file.name}: {file.stat().st_size:,} bytes")
    asked, every = sys.argv[2:] or PYTHONS, pythons()
    found = {version: python for version, python in every.items() if version in asked}
    if not found:
        sys.exit(f"none of the Pythons {', '.join(asked)} is here")
    for version, python in found.items():
        if version == next(iter(every)):
            installed(out, wheel, python, f"{version}-oldest", oldest())
        installed(out, wheel, python, f"{version}-newest")
    as_program(out, wheel)
    run(["make", "-C", out / "source", "demo", "docs", f"PYTHON={list(found.values())[-1]}"], env=clean(out / "home"))
    print("make demo, make docs: done")


def clean(home: Path) -> dict[str, str]:
    """Return the environment of a user who has just come: nothing of this one's Python, and an empty home."""
    home.mkdir(exist_ok=True)
    unset = ("PYTHON", "NUMBA", "XDG", "VIRTUAL", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
    return {**kept, "HOME": str(home), "USERPROFILE": str(home)}


def as_program(out: Path, wheel: Path) -> None:
    """Install and run the wheel with pipx and uvx, which come from the package index."""
    tools = scripts_of(out / "tools")
    places = {"PIPX_HOME": "pipx", "PIPX_BIN_DIR": "pipx-bin", "PIPX_MAN_DIR": "pipx-man"}
    trust = {"SSL_CERT_FILE": os.environ["PIP_CERT"]} if "PIP_CERT" in os.environ else {}
    environment = {**clean(out / "home"), **trust, **{name: str(out / place) for name, place in places.items()}}
    run([tools / "python", "-m", "pip", "install", "--quiet", "pipx", "uv"])
    run([tools / "pipx", "install", wheel], env=environment)
    version = run([out / "pipx-bin" / "screenpath", "--version"], env=environment)
    if not (out / "pipx-man" / "man1" / "screenpath-svm.1").exists():
        sys.exit("pipx: no manual pages")
    if run([tools / "uvx", "--from", wheel, "screenpath", "--version"], env=environment) != version:
        sys.exit("uvx runs another version")
    print(f"pipx, uvx: {version.strip()}")


def scripts_of(environment: Path) -> Path:
    """Return the folder of the programs of a virtual environment."""
    return environment / ("Scripts" if os.name == "nt" else "bin")


def run(words, **options) -> str:
    """Run a command and return what it prints; a failure ends with all of that."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def pythons() -> dict[str, str]:
    """Return the interpreters that are here, by version: those of the system, on the PATH, and those that pyenv has."""
    found, managed = {}, Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for version in PYTHONS:
        kept = sorted(managed.glob(f"versions/{version}.*/bin/python"))
        for one in (f"/usr/bin/python{version}", shutil.which(f"python{version}"), *kept):
            whole = [str(one), "-c", "import venv, ensurepip"]
            if one and Path(one).exists() and subprocess.run(whole, capture_output=True).returncode == 0:
                found[version] = str(one)
                break
    return found


def oldest() -> list[str]:
    """Return the oldest dependencies that pyproject.toml allows."""
    listed = (ROOT / "pyproject.toml").read_text().partition("dependencies = [")[2].partition("]")[0]
    return [one.replace(">=", "==") + ".*" for one in re.findall(r'"([^"]+)"', listed)]


def built(out: Path) -> tuple[Path, Path]:
    """Build sdist, and the wheel of it, of the files that are under version control."""
    source, tools = out / "source", out / "tools"
    files = run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]).split("\0")
    for name in filter(None, files):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    run([sys.executable, "-m", "venv", tools])
    python = scripts_of(tools) / "python"
    run([python, "-m", "pip", "install", "--quiet", "build"])
    run([python, "-m", "build", "--outdir", out, source])
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def wheel_fault(wheel: Path) -> str | None:
    """Return what is wrong with a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        about = archive.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
    inside = {name.removeprefix("screenpath/") for name in names if name.startswith("screenpath/")}
    other = [name for name in names if not re.match(r"screenpath(/|-[^/]*\.(dist-info|data)/)", name)]
    lost = [page for page in SHARED if not any(name.endswith(f".data/data/share/{page}") for name in names)]
    faults = [
        (wheel.stat().st_size > MOST, f"it has more than {MOST:,} bytes"),
        (other, f"it installs {other[:3]} outside of the package"),
        (missing := [name for name in NEEDED if name not in inside], f"it lacks {missing}"), (lost, f"it lacks {lost}"),
        (not any("LICENSE" in name for name in names), "it has no licence"),
        ("Requires-Python: >=3.10" not in about, "it does not say for which Python it is"),
        ("Description-Content-Type: text/markdown" not in about, "its description is not the README"),
    ]  # fmt: skip
    return next((words for wrong, words in faults if wrong), None)


def sdist_fault(sdist: Path) -> str | None:
    """Return what is wrong with an sdist."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in ("pyproject.toml", "README.md", "LICENSE", "screenpath/py.typed") if name not in names]
    if missing:
        return f"it lacks {missing}"
    return f"it has more than {MOST:,} bytes" if sdist.stat().st_size > MOST else None


def installed(out: Path, wheel: Path, python: str, name: str, needed=()) -> None:
    """Install the wheel into an environment of its own, and use it as a stranger does."""
    with tempfile.TemporaryDirectory(prefix="screenpath-") as folder:
        place, home = Path(folder), Path(folder) / "home"
        place.chmod(0o755)
        home.mkdir()
        run([python, "-m", "venv", place / "env"])
        scripts = scripts_of(place / "env")
        pip = [scripts / "python", "-m", "pip"]
        run([*pip, "install", "--quiet", "--no-cache-dir", "--only-binary", ":all:", wheel, *needed])
        run([*pip, "check"])
        if not needed:
            for extra in re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE):
                if extra in ("plot", "frames", "parquet", "onnx", "skops", "sklearn", "cluster"):
                    run([*pip, "install", "--quiet", "--dry-run", f"{wheel}[{extra}]"])
        (out / f"licences-{name}.txt").write_text(run([scripts / "python", "-c", LICENCES]))
        shutil.copy(ROOT / "data_samples" / "breast_cancer.libsvm", home / "data.libsvm")
        shutil.copytree(ROOT / "tests" / "fixtures" / "runs-0.1.0", home / "earlier")
        who = first_use(scripts / "screenpath", home)
        print(f"Python {name}, {who}: {', '.join(needed) or 'newest dependencies'}", flush=True)


def first_use(screenpath: Path, home: Path) -> str:
    """Compute, prove and use a path where nothing but the home can be written to; return who did so."""
    env, other, who = screenpath.parents[1], {}, "as this user"
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        if reachable(screenpath.with_name("python"), nobody):
            other, who = nobody, "as another user"
            for path in (home, *home.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
    for path in env.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    options = {"cwd": home, "env": clean(home), **other}
    path = ("--grid", "5", "--scale", "standard", "--certificate", "-o", "run")
    run([screenpath, "--version"], **options)
    run([screenpath, "svm", "data.libsvm", *path], **options)
    proof = run([screenpath, "verify", "run"], **options)
    labels = run([screenpath, "predict", "run", "data.libsvm", "--step", "3"], **options).splitlines()
    run([screenpath, "convert", "data.libsvm", "shards"], **options)
    run([screenpath, "svm", "shards", "--grid", "2", "-o", "disk"], **options)
    if "5 of 5 steps proven" not in proof or len(labels) != 570:
        sys.exit(f"a first path is not proven, or its labels are not those of 569 rows:\n{proof}")
    run([screenpath, "show", "earlier/kernel-certificate", "--step", "1"], **options)
    run([screenpath, "predict", "earlier/kernel-certificate", "earlier/two.libsvm", "--step", "1"], **options)
    run([screenpath, "verify", "earlier/kernel-certificate", "earlier/two.libsvm"], **options)
    for folder in (one for one in env.rglob("*") if one.is_dir() and not one.is_symlink()):
        folder.chmod(0o755)  # so that it can be removed
    return who


def reachable(python: Path, user: dict) -> bool:
    """Tell whether another user can start an interpreter: not one in the home of root."""
    try:
        return subprocess.run([python, "-c", ""], capture_output=True, **user).returncode == 0
    except PermissionError:
        return False


if __name__ == "__main__":
    main()
