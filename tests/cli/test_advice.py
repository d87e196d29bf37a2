"""Every message's advice works when it is typed: the second line of an error, applied to the command that had it."""

import re
import shutil

import numpy as np
import pytest

from tests.cli.conftest import clouds, libsvm_text

TABLE = "id,city,size,smoker\n" + "".join(
    f"{k},{'Rome' if k % 2 else 'Oslo'},{k % 7}.5,{'yes' if k % 3 else 'no'}\n" for k in range(40)
)
# Values for what a message leaves open, and options without a value.
OPEN = {"VALUE": "0.1", "LABEL": "2", "DIR": "new", "M": "2", "COLUMN": "size", "DIFFERENCE": "0.5"}
FLAGS = {
    "--resume", "--force", "--log", "--progress", "--quiet", "--one-vs-rest", "--one-vs-one", "--certificate",
    "--certify", "--stratify", "--until-turn",
}  # fmt: skip
SVM, SPARSE, CV = "svm two --grid 3", "sparse-svm two --betas 1 --alphas 2", "cv svm two --grid 3 --folds 2"
RULES = "compare-rules svm two --grid 3 --repeats 1"
# Commands that are refused, and how many commands the message advises: each of them is typed.
REFUSED = {
    f"{SVM} --solver cd": 3, f"{SVM} --solver fast": 2, f"{SVM} --intercept none --solver fast": 3,
    f"{SVM} --rule fast": 11, f"{SVM} --rule dvi --chunk 2": 2, f"{SVM} --bias 1 --intercept none": 2,
    f"{SVM} --gamma 1": 1, f"{SVM} --kernel linear --gamma 1": 1, f"{SVM} --kernel rbf --chunk 2": 1,
    f"{SVM} --kernel rbf --rule sieve": 9,
    f"{SVM} --one-vs-one --positive 1": 2, f"{SVM} --one-vs-one --one-vs-rest": 2,
    "cv svm three --grid 3 --folds 2 --one-vs-one --certificate": 1,
    "svm three --grid 4 --part 1/2 --one-vs-one --certificate": 1, "svm two --one-vs-one --eps-path 0.1": 2,
    "svm three --grid 3": 3, "svm three --kernel rbf --grid 3": 3, "l1svm three --grid 3": 2,
    "svm people.csv --target smoker --drop id --one-hot city --delimiter ;": 1,
    f"{SVM} --one-vs-rest --positive 1": 2, "svm two --one-vs-rest --eps-path 0.1": 2, f"{SVM} --c 1": 1,
    f"{SVM} --c-list 1,2": 1, f"{SVM} --chunk-form s": 1, "svm two --reference 1": 1, f"{SVM} --eps-path 0.1": 1,
    "svm two --eps-path 0.1 --tol 0.5": 1, f"{SVM} --out - --resume": 1, f"{SVM} --out - --force": 1,
    f"{SVM} --out - --coefficients csv": 1, f"{SVM} --resume --force": 2, f"{SVM} --quiet --progress": 2,
    "svm two --part 1/2 --eps-path 0.1": 2, f"{SVM} --part 1/9": 1, f"{SVM} --certificate --out -": 1,
    f"{SVM} --certificate --dtype float32": 2, f"{SVM} --certificate --one-vs-rest": 1,
    f"{SVM} --scheduler tcp://127.0.0.1:9 --kernel rbf": 1, f"{SVM} --target smoker": 1,
    f"{SPARSE} --rule dvi": 8, f"{SPARSE} --loss squared-hinge --smoothing 0.2": 2, f"{SPARSE} --beta 0.1": 1,
    "sparse-svm two --betas 1 --references 2": 1, "sparse-svm three --betas 1 --alphas 2 --intercept free": 2,
    "l1svm two --grid 3 --bias 1": 1, "l1svm two --grid 3 --lambda-list 1": 1,
    "l1svm two --grid 3 --lambda-min-ratio 0.1": 1, f"{CV} --certify --score auc": 2, f"{CV} --certify-points 3": 2,
    f"{CV} --until-turn --part 1/2": 2, f"{CV} --out -": 1, "cv lad real --grid 3 --folds 2 --stratify": 1,
    "cv svm two --grid 3 --folds loo --certificate": 1, "cv svm two --grid 3 --folds loo --repeats 2": 1,
    "cv svm two --grid 3 --folds loo --kernel rbf --gammas 2": 1,
    "cv svm two --grid 3 --folds 30": 2, "cv l1svm two --grid 3 --folds 30": 1,
    "cv svm three --grid 3 --folds loo --one-vs-rest": 1, "svm people.csv --grid 3 --target smoker": 2,
    "lad people.csv --grid 3 --drop city,smoker": 1, f"{RULES} --start cold": 2, f"{RULES} --start hot": 1,
    f"{RULES} --rules ,": 1, "compare-rules svm --grid 3": 1, "sparse-svm two --eps-path 0.5 --jobs 2": 1,
    "sparse-svm two --eps-path 0.5 --penalty l1": 1, "quantile real --c 1 --tau-list 0.2,0.8 --certificate": 1,
}  # fmt: skip


def options_in(text: str) -> list[tuple[str, str]]:
    """Return the options that a text names, with their values."""
    found = re.findall(r"(--[a-z][a-z-]*)(?:[ =](?!--)([^\s;()]*[^\s,;():]))?", text)
    return [(name, "" if name in FLAGS else value) for name, value in found]


def without(words: list[str], option: str) -> list[str]:
    """Return a command without an option and its value."""
    if option not in words:
        return words
    at = words.index(option)
    return words[:at] + words[at + 2 - (option in FLAGS) :]


def added(words: list[str], pairs) -> list[str]:
    """Return a command with options added or replaced; what a message leaves open is filled in."""
    for name, value in pairs:
        words = [*without(words, name), name, *filter(None, [OPEN.get(value, value)])]
    return words


def advised(words: list[str], message: str) -> list[list[str]]:
    """Return the commands that an error of a command advises to type."""
    said, _, hint = (" ".join(part.split()) for part in message.partition("\n"))
    wrong, named = re.search(r"'([^']+)'", said), [name for name, _ in options_in(said) if name in words]
    if re.search("leave (out )?one|use one of (the two|them)", hint):
        return [without(words, name) for name in named]
    found, listed = [], re.search(r"use (?:one of )?((?:[a-z0-9+]+(?:, | or |$|(?=;)))+)", hint)
    if listed and wrong:
        names = re.split(", | or ", listed[1].strip())
        found = [[name if word == wrong[1] else word for word in words] for name in names]
    for part in re.split(r"[,;]? or |; ", hint):
        pairs = options_in(part)
        if "leave it out" in part:
            found.append(without(words, named[0]))
        elif "leave out" in part or ("leave out" in hint and part.startswith("--")):
            kept = words
            for name, _ in pairs:
                kept = without(kept, name)
            found.append(kept)
        elif pairs and "such as" not in part:
            found.append(added(without(words, "--one-vs-rest") if "in its place" in part else words, pairs))
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data that have two labels, three, real targets, and a table."""
    folder = tmp_path_factory.mktemp("advice")
    X, y = clouds(40, 3)
    for name, targets in (("two", y), ("three", 1.0 + np.arange(40) % 3), ("real", np.round(X[:, 0] + 5.0, 3))):
        (folder / name).write_text(libsvm_text(X, targets))
    (folder / "people.csv").write_text(TABLE)
    return folder


@pytest.mark.parametrize("line", REFUSED)
def test_the_advice_of_a_message_works_when_typed(place, call, tmp_path, line):
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    found = call(*line.split())
    assert found.code in (1, 2), line
    commands = advised(line.split(), found.err)
    assert len(commands) == REFUSED[line], (found.err, commands)
    for command in commands:
        again = call(*command)
        assert again.code == 0, (found.err, command, again.err)
        for folder in ("runs", "new"):
            shutil.rmtree(tmp_path / folder, ignore_errors=True)
