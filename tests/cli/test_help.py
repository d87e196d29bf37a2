"""Help pages: groups, examples that are true, the nearest names, and the list of rules."""

import os
import shlex
import shutil
import subprocess
import sys

import click
import pytest

from screenpath import rules_of
from screenpath.catalogue.elastic import NETS
from screenpath.catalogue.option import ELSEWHERE, GROUPS
from screenpath.catalogue.specs import SPECS
from screenpath.cli.app import COMMANDS, SECTIONS, cli
from screenpath.cli.help import GroupedOption, Helped, whole_page
from screenpath.cli.man import pages
from screenpath.engine.options import cv_spec
from screenpath.screen import STATIC, parse_kernel_rule, parse_rule
from screenpath.screen.l1svm import parse_feature_rule
from screenpath.screen.pathwise import GUESSED
from screenpath.screen.sparse import parse_sparse_rule
from tests.conftest import HANGS, ROOT

GENERATED = [*SPECS, *(f"cv {name}" for name in SPECS)]
COMPARED = [f"compare-rules {name}" for name in SPECS]
CERTIFY = [f"certify {name}" for name in ("svm", "lad", "quantile", "svr", "sparse-svm")]
BY_MODEL = ("cv", "compare-rules", "certify")
ALL = [*(name for name in COMMANDS if name not in (*BY_MODEL, "cache")), *GENERATED[len(SPECS) :], *COMPARED, *CERTIFY]


def found(names: str) -> tuple:
    here = click.Context(cli, info_name="screenpath")
    for name in names.split():
        command = here.command.get_command(here, name)
        here = click.Context(command, info_name=name, parent=here)
    return here.command, here


@pytest.mark.parametrize("names", GENERATED)
def test_options_stand_in_groups(names):
    command, here = found(names)
    text = whole_page(here)
    heads = [line[:-1].lower() for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    wanted = [name for name in GROUPS if name != "cross-validation" or names.startswith("cv")]
    assert heads == ["examples", *wanted, "other"]
    options = [one for one in command.params if isinstance(one, click.Option)]
    assert all(isinstance(one, GroupedOption) and one.group in GROUPS for one in options)
    for one in options:
        assert text.count(f"  {one.opts[-1]}") + text.count(f"  {one.opts[0]}, ") >= 1


@pytest.mark.parametrize("names", ["", *BY_MODEL, *ALL])
def test_every_page_fits_a_screen(call, names):
    lines = call(*names.split(), "--help").out.splitlines()
    assert 5 < len(lines) <= 60 and max(map(len, lines)) <= 80


@pytest.mark.parametrize(("words", "said"), [
    ("svm --label y", "Did you mean '--target'?"), ("svm -C 1", "Did you mean '--c'?"),
    ("svm d -c 1", "No such option '-c'. Did you mean '--c'?"), ("svm --one_hot a", "Did you mean '--one-hot'?"),
    ("predict r d --c 1", "Did you mean '--step'?"), ("export r -C 1", "Did you mean '--step'?"),
    ("cv svm --c 1", "Did you mean '--c-list'?"), ("sparse-svm --c 1", "sparse-svm has --beta or --betas"),
    ("cv svm --cv 3", "Did you mean '--folds'?"), ("svm --cv 3", "--folds is an option of screenpath cv svm, not of"),
    ("cv svm --probability", "Did you mean '--calibrate'?"), ("predict --proba", "Did you mean '--decision'?"),
    ("svm --overwrite", "Did you mean '--force'?\n"), ("svm --output a", "Did you mean '--out'?\n"),
    ("predict --overwrite", "Did you mean '--force'?\n"), ("svm --output-dir a", "Did you mean '--out'?\n"),
    ("svm --n-jobs 2", "Did you mean '--threads'?\n"), ("svm --jobs 2", "--jobs is an option of screenpath cv svm"),
    ("svm --cost 1", "Did you mean '--c'?\n"), ("l1svm --lambda 1", "Did you mean '--lambda-list'?\n"),
    ("svm --lambda 1", "No such option '--lambda'.\n"), ("svm --standardize", "Did you mean '--scale'?\n"),
    ("svm --tolerance 1", "Did you mean '--tol'?\n"), ("svm --verbose", "Did you mean '--progress'?\n"),
    ("cv svm --loo", "Did you mean '--folds'?\n"), ("svm --config a", "No such option '--config'.\n"),
    ("reduce r --low 1", "No such option '--low'.\n"), ("svm --data d", "No such option '--data'.\n"),
    ("svm --nu 0.1", "--nu chooses a step of a path that is there: screenpath show RUN --step nu=0.1\n"),
    ("svm --forse", "Did you mean '--force'?\n"),
    ("svm --tset a", "Did you mean '--test'?\n"), ("sparse-svm --lambda 1", "Did you mean '--beta'?\n"),
    ("svm --random-state 1", "Did you mean '--seed'?"), ("l1svm --epsilon 1", "--epsilon is an option of svr and"),
    ("predict r d --decimal ,", "--decimal is an option of the run"), ("show --foo", "No such option '--foo'."),
])  # fmt: skip
def test_names_of_other_programs_are_known(call, words, said):
    found = call(*words.split())
    assert found.code == 2 and said in found.err and "  see screenpath " in found.err


@pytest.mark.parametrize("names", ["", "cv", "show", "cache warm", "cv svm"])
def test_every_command_has_a_page_of_all_options(call, names):
    found = call(*names.split(), "--help-all")
    assert found.code == 0 and found.out.startswith("Usage: screenpath")


def test_every_name_of_another_program_is_one_of_ours():
    ours = {one.name for spec in SPECS.values() for of in (spec, cv_spec(spec)) for one in of.path_options}
    assert {one for names in ELSEWHERE.values() for one in names.split()} <= ours | {"decision", "step"}


def test_the_manual_has_a_page_for_each_command_with_all_options(tmp_path):
    found_pages = dict(pages())
    assert set(found_pages) == {"screenpath", *(f"screenpath-{name}" for name in COMMANDS)}
    for name, text in found_pages.items():
        command, _ = found(name.removeprefix("screenpath").removeprefix("-"))
        for option in (one for one in command.params if isinstance(one, click.Option) and not one.hidden):
            assert f"{option.opts[-1]}".replace("-", "\\-") in text, (name, option.opts)
        assert text.startswith('.TH "SCREENPATH') and "\b" not in text
        if shutil.which("groff"):
            words = ["groff", "-man", "-Tutf8", "-ww"]
            done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=HANGS)
            assert (done.returncode, done.stderr) == (0, "") and done.stdout.count("\n") > 10, name


@pytest.mark.parametrize("names", [*GENERATED, *COMPARED])
def test_the_short_page_is_examples_and_everyday_options(call, names):
    short, whole = call(*names.split(), "--help"), call(*names.split(), "--help-all")
    assert short.code == whole.code == 0 and short.err == whole.err == ""
    lines = short.out.splitlines()
    assert len(lines) <= 40 < len(whole.out.splitlines()) and max(map(len, lines)) <= 80
    assert lines.index("Examples:") < lines.index("Everyday options:")
    command, _ = found(names)
    assert all(f"  {example}" in lines for example in command.examples)
    for one in command.params:
        if isinstance(one, click.Option):
            name = f"  {one.opts[0]}"
            shown = [line for line in lines if line.startswith((f"{name} ", f"{name},")) or line == name]
            assert len(shown) == one.everyday, name
    wanted = ("--scale", "--intercept", "--target", "-o, --out", "--test" if names in GENERATED else "--rules")
    for name in wanted:
        assert f"\n  {name} " in short.out or "l1svm" in names and name in ("--intercept", "--rules")


def test_an_unknown_option_leads_to_the_list_that_has_all(call, data):
    for names in ("svm", "cv lad", "compare-rules svm"):
        result = call(*names.split(), data, "--nonsense")
        page = result.err.splitlines()[1].removeprefix("  see screenpath ")
        assert page.endswith("--help-all") and "--max-epochs" in call(*page.split()).out
    assert call("show", "run", "--nonsense").err.endswith("see screenpath show --help\n")


def test_an_option_of_other_models_names_them(call, data):
    for command in (("svm",), ("cv", "svm")):
        err = call(*command, data, "--nonnegative").err
        assert err.startswith("error: --nonnegative is an option of l1svm, sparse-svm, huber, sparse-lad,")
    assert "No such option '--nonnegativ'" in call("svm", data, "--nonnegativ").err
    err = call("svm", data, "--kernel", "rbf", "--gammas", 5).err
    assert err.startswith("error: --gammas is an option of screenpath cv svm, not of screenpath svm\n")
    err = call("lad", data, "--penalty", "l1", "--c-list", "1,2").err
    assert "; sparse-lad has --beta or --betas, --alpha or --alphas in its place\n" in err


def test_alone_it_says_what_to_type(call):
    """Every command in one of four lists, and first commands that parse."""
    result = call()
    assert result.code == 0 and result.err == "" and len(result.out.splitlines()) <= 20
    assert [name for section in SECTIONS.values() for name in section] == list(COMMANDS) and len(SECTIONS) == 4
    for title, section in SECTIONS.items():
        assert f"\n{title:<16} {', '.join(section)}\n" in result.out.replace("\n" + " " * 17, " ")
        assert f"\n{title}:\n" in call("--help").out
    tried = [line.split("   ")[0] for line in result.out.splitlines() if line.startswith("  screenpath ")]
    assert len(tried) == 3
    for line in tried:
        words = shlex.split(line)[1:]
        context = cli.make_context("screenpath", list(words))
        name, command, rest = cli.resolve_command(context, words)
        assert name == words[0]
        if isinstance(command, click.Group):
            name, command, rest = command.resolve_command(command.make_context(name, list(rest), context), rest)
        assert command.make_context(name, list(rest), context).params


def test_short_lists_have_no_groups():
    for names in ("show", "generate", "report"):
        command, here = found(names)
        assert "\nOptions:\n" in command.get_help(here)


@pytest.mark.parametrize("names", ALL)
def test_two_examples_that_the_command_takes(names):
    command, _ = found(names)
    assert isinstance(command, Helped) and len(set(command.examples)) == 2
    for example in command.examples:
        words = shlex.split(example.partition(" >")[0])
        assert words[0] == "screenpath" and " ".join(words[1:]).startswith(names)
        rest = words[1 + len(names.split()) :]
        with command.make_context(names, rest, parent=click.Context(cli)) as context:
            assert context.params


@pytest.mark.parametrize("model", ["lad", "l1svm", "sparse-svm"])
def test_examples_of_a_page_run(call, data, model):
    """Up to the names of the files."""
    for example in found(model)[0].examples:
        words = [str(data) if word.endswith(".libsvm") else word for word in shlex.split(example)[1:]]
        assert call(*words, "-o", "run", "--force", "--quiet").code == 0, example


def test_pages_are_shown(call):
    assert call("help", "svm").out == call("svm", "--help").out
    assert call("help", "cv", "svm").out == call("cv", "svm", "--help").out
    assert call("help").out == call("--help").out
    assert call("help", "svm", "x").code == 2 and "no commands of its own" in call("help", "svm", "x").err
    assert "Did you mean 'svm'" in call("help", "svmm").err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pedict"], "No such command 'pedict'. Did you mean 'predict' or "),
        (["cv", "quantil"], "Did you mean 'quantile' or 'sparse-quantile'?"),
        (["cache", "wram"], "Did you mean 'warm'?"), (["qqqq"], "No such command 'qqqq'.\n"),
        (["svm", "x", "--gird", "3"], "--grid"),
    ],
)  # fmt: skip
def test_the_nearest_name(call, arguments, said):
    result = call(*arguments)
    assert result.code == 2 and said in result.err


def test_a_file_in_place_of_a_command(call, data):
    assert f"screenpath svm {data.name}" in call(data.name).err


def test_cache_alone_is_an_error_like_others(call):
    result = call("cache")
    assert result.code == 2 and result.err == "error: Missing command.\n  see screenpath cache --help\n"


def test_cv_alone_says_how_it_is_used_in_five_lines(call):
    result = call("cv")
    assert result.code == 2 and result.out == ""
    lines = result.err.splitlines()
    assert len(lines) == 5 and "screenpath cv MODEL DATA" in lines[1]
    for name in SPECS:
        assert name in lines[2]


def test_short_flags(call, data):
    assert call("-V").out == call("--version").out
    assert call("svm", data, "--grid", 2, "-q", "-o", "r").err == ""
    assert call("predict", "r", data, "--step", 0, "-q").err == ""


PARSERS = {"l1svm": parse_feature_rule, **dict.fromkeys(("sparse-svm", *NETS), parse_sparse_rule)}


@pytest.mark.parametrize("model", SPECS)
def test_rules_that_are_listed_are_those_there_are(call, model):
    listed = rules_of(model)
    for name, line in listed.items():
        PARSERS.get(model, parse_rule)(name)
        assert line.endswith(".")
        if name not in ("auto", "none", "gap", *GUESSED):
            PARSERS.get(model, parse_rule)(f"{name}+gap")
    if model not in PARSERS:
        assert set(STATIC) <= set(listed)
    out = call("rules", model).out
    assert all(f"  {name} " in out for name in listed) and max(map(len, out.splitlines())) <= 60
    assert SPECS[model].default_rule in out


def test_rules_of_all_models(call):
    out = call("rules").out
    assert out.isascii() and "`" not in out
    for title in ("svm, lad, quantile, svr", "svm, lad, quantile, svr --kernel", "l1svm", "sparse-svm"):
        assert f"\n{title} (default" in f"\n{out}"
    listed = rules_of("svm", kernel=True)
    assert set(STATIC) < set(listed) and "heuristic" not in listed
    for name in listed:
        parse_kernel_rule(name)


@pytest.mark.parametrize("names", [*BY_MODEL, "cache", "cache warm"])
def test_groups_and_the_cache_have_two_examples(names):
    command, here = found(names)
    assert len(set(command.examples)) == 2
    for example in command.examples:
        words = [word for word in shlex.split(example) if "=" not in word]
        assert " ".join(words).startswith(f"screenpath {names}") and example in command.get_help(here)
        assert found(" ".join(words[1 : 2 + len(names.split())][:2]))[0] is not None


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("sv", ["svm", "svr"]), ("svm x --scal", ["--scale"]), ("svm x --scale m", ["maxabs"]), ("cv qu", ["quantile"]),
        ("cache wa", ["warm"]), ("compare-rules l1svm --conf", ["--configurations"]),
        ("svm x --max-e", ["--max-epochs"]), ("completion ", ["bash", "zsh", "fish"]), ("", list(COMMANDS)),
        ("cv ", list(SPECS)),
    ],
)  # fmt: skip
def test_bash_completes(call, tmp_path, monkeypatch, typed, wanted):
    """What is printed, read by bash itself."""
    (tmp_path / "screenpath").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m screenpath "$@"\n')
    (tmp_path / "screenpath").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    printed = call("completion", "bash")
    assert printed.code == 0 and printed.err == ""
    words = ["screenpath", *typed.split(" ")]
    script = f"{printed.out}\nCOMP_WORDS=({' '.join(map(repr, words))})\nCOMP_CWORD={len(words) - 1}\n"
    script += '_screenpath_completion screenpath\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=HANGS)
    assert done.stdout.split() == wanted and done.stderr == ""


def test_completion_of_other_shells_and_of_none(call):
    assert call("completion", "zsh").out.startswith("#compdef screenpath")
    assert "complete --no-files --command screenpath" in call("completion", "fish").out
    found = call("completion", "tcsh")
    assert found.code == 2 and "bash" in found.err
