"""The guide as a site that needs no network: `make docs`, or

    python examples/guide/site.py [OUT]

OUT (default build/docs) then holds pages for a browser, index.html first. The pages are those of this folder, the front
page, the gallery, the papers' tables and the benchmarks as they stand in the repository, and a reference that is made
of the declarations of the models and commands, so that it says what the program does. The folder `theme` has their
template, style and script; the script searches an index that is made of the pages. Needs the extra `docs`.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
from pathlib import Path

import click

from screenpath.catalogue.option import GROUPS
from screenpath.catalogue.specs import SPECS, rules_of
from screenpath.cli.app import ALIASES, COMMANDS, cli
from screenpath.cli.help import whole_page
from screenpath.engine.options import cv_spec
from screenpath.errors import flags

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGES = ("README.md", "CHANGELOG.md", "LICENSE", "examples/guide", "examples/gallery", "examples/papers/results",
         "examples/benchmarks", "examples/scaling", "data_samples")  # fmt: skip
KEPT = (".md", ".svg", ".png")
REFERENCE = "examples/guide/reference"
KEYWORD = {"": "", "paths": "functions", "models": "functions, estimators"}  # see catalogue.option.Option.python
THEME = HERE / "theme"
SECTIONS = {
    "Start": ("start", "glossary"),
    "Use": ("commands", "tables", "choose", "results", "leave-one-out", "pictures", "raw"),
    "Python": ("python", "sklearn", "plugins"),
    "Understand": ("models", "intercept", "kernels", "rules", "solvers", "theory", "certificate", "held-out", "exact"),
    "Scale": ("large", "cluster"),
    "Depend on it": ("stability",),
}
HEADING = re.compile(r'<h([1-3]) id="([^"]*)">(.*?)</h\1>', re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\w\\$])\$([^$\n]+?)\$", re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(#[^)]*)?\)")


def main() -> None:
    """Write the pages and have MkDocs make the site."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs").resolve()
    pages = out.with_name(f"{out.name}-pages")
    shutil.rmtree(pages, ignore_errors=True)
    write_pages(pages)
    build(pages, out)
    print(f"{out}/index.html")


def build(pages: Path, out: Path) -> None:
    """Have MkDocs make a site of the pages; whatever it warns of is an error."""
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    config = pages.with_name(f"{pages.name}.yml")
    config.write_text(json.dumps(settings(pages, out)))  # JSON is YAML
    build_site(load_config(str(config), strict=True))
    (out / "search_index.js").write_text(f"const SECTIONS = {json.dumps(sections(out), ensure_ascii=False)};\n")


def sections(out: Path) -> list[dict]:
    """Return what the search looks through: page, heading, text and address of each section of a page."""
    found = []
    for page in (out / "index.html", *sorted((out / "examples").glob("g*/**/*.html"))):  # guide and gallery
        body = page.read_text().partition('<main id="content">')[2].partition("<footer>")[0]
        _, *parts = HEADING.split(body)
        texts = [plain(part) for part in parts]
        for at in range(0, len(texts), 4):
            _, name, heading, text = texts[at : at + 4]
            url = f"{page.relative_to(out)}#{name}"
            found.append({"page": texts[2], "heading": heading, "text": text, "url": url})
    return found


def plain(text: str) -> str:
    """Return the words of a piece of HTML."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def settings(pages: Path, out: Path) -> dict:
    """Return the settings of MkDocs: nothing is fetched from anywhere, and pages open from a file too."""
    guide = pages / "examples/guide"
    questions = re.findall(r"\((\w+\.md)\)", (ROOT / "examples/gallery/README.md").read_text())
    models, others = list(SPECS), [name for name in COMMANDS if name not in SPECS]
    return {
        "site_name": "screenpath", "docs_dir": str(pages), "site_dir": str(out), "use_directory_urls": False,
        "theme": {"name": None, "custom_dir": str(THEME)},
        "plugins": [], "markdown_extensions": ["tables", "fenced_code", "toc"],
        "nav": [
            {"Front page": "README.md"},
            *({section: [{title(guide / f"{name}.md"): f"examples/guide/{name}.md"} for name in names]}
              for section, names in SECTIONS.items()),
            {"Gallery": [f"examples/gallery/{name}" for name in ("README.md", *questions)]},
            {"Options of models": [{name: f"{REFERENCE}/{name}.md"} for name in models]},
            {"Options of commands": [{name: f"{REFERENCE}/{name}.md"} for name in others]},
            {"Papers": [{title(path): str(path.relative_to(pages))}
                        for path in sorted((pages / "examples/papers/results").glob("*.md"))]},
            {"Benchmarks": ["examples/benchmarks/README.md", "examples/benchmarks/results.md"]},
            {"Changes": "CHANGELOG.md"},
        ],
        "validation": {"omitted_files": "ignore", "links": {"not_found": "warn", "unrecognized_links": "ignore"}},
    }  # fmt: skip


def title(page: Path) -> str:
    """Return the heading of a page."""
    return page.read_text().partition("\n")[0].lstrip("# ")


def write_pages(pages: Path) -> None:
    """Write what the site is made of, under the names that the repository has."""
    for name in PAGES:
        source = ROOT / name
        for file in [source] if source.is_file() else sorted(source.rglob("*")):
            if file.is_file() and (file.suffix in KEPT or file == source):
                target = pages / file.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
    reference = pages / REFERENCE
    reference.mkdir()
    for name in SPECS:
        (reference / f"{name}.md").write_text(model_page(name))
    with click.Context(cli, info_name="screenpath") as context:
        for name in COMMANDS:
            if name not in SPECS:
                (reference / f"{name}.md").write_text(command_page(name, context))
    for page in pages.rglob("*.md"):
        page.write_text(linked(page, pages, with_formulas(page.read_text())))


def linked(page: Path, pages: Path, text: str) -> str:
    """Return a page whose links to folders lead to a page in them, and those to files that are no pages to nothing."""

    def lead(found) -> str:
        target = (page.parent / found[1]).resolve()
        if target.is_dir():
            first = next((one for one in (target / "README.md", *sorted(target.glob("*.md"))) if one.exists()), None)
            return f"]({found[1].rstrip('/')}/{first.name})" if first else found[0]
        missing = not target.exists() and (ROOT / target.relative_to(pages)).exists()
        return f"](https://invalid.example/{found[1]})" if missing else found[0]

    text = LINK.sub(lead, text)
    return re.sub(r"\[([^\]]+)\]\(https://invalid\.example/[^)]*\)", r"\1", text)


def with_formulas(text: str) -> str:
    """Return a page with its formulas as MathML, which browsers show by themselves; code is left as it is."""
    from latex2mathml.converter import convert

    def formula(found) -> str:
        display = found[1] is not None
        return convert((found[1] or found[2]).strip(), display="block" if display else "inline").replace("|", "&#124;")

    parts = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
    text = "".join(part if part.startswith("`") else FORMULA.sub(formula, part) for part in parts)
    # At the beginning of a line it would be taken for a block.
    return re.sub(r'(?<!\n)\n(<math [^>]*display="inline")', r" \1", text)


def table(options) -> list[str]:
    """Return options in their groups, a table each."""
    lines = []
    for group in GROUPS:
        rows = [one for one in options if one.group == group]
        if not rows:
            continue
        lines += ["", f"### {group[0].upper()}{group[1:]}", ""]
        lines += ["| option | default | in Python also | |", "|---|---|---|---|"]
        for one in rows:
            name = one.name.replace("_", "-")
            value = {"flag": "", "switch": f", `--no-{name}`"}.get(one.kind, f" {one.metavar or one.kind.upper()}")
            short = f"`{one.short}`, " if one.short else ""
            shown = f"`--{name}`{value}" if one.kind == "switch" else f"`--{name}{value}`"
            default = "" if one.default is None or one.default is False or one.default == () else f"`{one.default}`"
            cells = [f"{short}{shown}", default, KEYWORD[one.python], flags(one.said)]
            lines.append("| " + " | ".join(cell.replace("|", "&#124;") for cell in cells) + " |")
    return lines


def model_page(name: str) -> str:
    """Return the page of a model: objective, options and rules as they are declared."""
    spec = SPECS[name]
    scored = f"`--test` scores {spec.score}"
    known = f"; LIBLINEAR's name is `{spec.liblinear}`" if spec.liblinear else ""
    lines = [
        f"# {name}", "", f"{spec.title[0].upper()}{spec.title[1:]}: {scored}{known}.", "", f"    {spec.objective}", "",
        flags(spec.about), "", f"    screenpath {name} data.libsvm", "",
        f'In Python, `screenpath.run("{name}", data, ...)` accepts all options, with `_` for `-`. The third column '
        "names who else does: functions of arrays, and estimators.", "",
        "## Options", *table(spec.path_options), "", "## Rules", "", "| `--rule` | |", "|---|---|",
    ]  # fmt: skip
    for kernel in (False, True) if name == "svm" else (False,):
        lines += [
            f"| `{rule}`{' (kernel)' if kernel else ''} | {text} |" for rule, text in rules_of(name, kernel).items()
        ]
    added = [one for one in cv_spec(spec).path_options if one.name not in {o.name for o in spec.path_options}]
    lines += ["", f"## More options of `screenpath cv {name}`", *table(added)]
    return "\n".join(lines) + "\n"


def command_page(name: str, context) -> str:
    """Return the page of a command: its help."""
    command = cli.get_command(context, name)
    with click.Context(command, info_name=name, parent=context) as own:
        pages = [(f"screenpath {name}", whole_page(own))]
        if isinstance(command, click.Group) and name != "cv":  # those of cv are with their models
            for one in command.list_commands(own):
                part = command.get_command(own, one)
                with click.Context(part, info_name=one, parent=own) as inner:
                    pages.append((f"screenpath {name} {one}", whole_page(inner)))
    old = [alias for alias, now in ALIASES.items() if now == name]
    known = f"Also known as `{old[0]}`.\n\n" if old else ""
    return f"# {name}\n\n{COMMANDS[name][1]} {known}\n\n" + "\n".join(f"## {t}\n\n```\n{h}\n```\n" for t, h in pages)


if __name__ == "__main__":
    main()
