"""Size is a cost: lines of a room, functions of many arguments and changes of room in one run may only fall.

A change that lowers a number lowers its budget here, so that it stays low.
"""

import ast
import json
import os
import subprocess
import sys
from collections import Counter

from tests.architecture.test_imports import MODULES, ROOMS, ROOT, name_of, parsed

MANY = 12  # arguments of a function that ask for a record
BUDGETS = json.loads((ROOT / "tests" / "architecture" / "budget.json").read_text())
# The second of two runs in one process, so that neither compiling nor importing is counted.
RUN = """
import json, os, sys
from pathlib import Path
import screenpath
package = str(Path(screenpath.__file__).parent) + os.sep
changes, upwards, rooms = 0, 0, json.loads(sys.argv[3])

def room_of(code):
    place = code.co_filename
    if place == package + os.path.join("kernels", "__init__.py"):  # the call of a kernel, which is C for the rest
        return None
    return place[len(package):].split(os.sep)[0].removesuffix(".py") if place.startswith(package) else None

def watch(frame, event, argument):
    global changes, upwards
    if event != "call" or (to := room_of(frame.f_code)) is None:
        return
    above = frame.f_back
    while above is not None and (came := room_of(above.f_code)) is None:
        above = above.f_back
    if above is not None and came != to:
        changes += 1
        upwards += rooms.index(to) < rooms.index(came)

how = {"grid": 3, "scale": "standard", "intercept": "none"}
run = lambda name: screenpath.run("svm", sys.argv[1], quiet=True, out=sys.argv[2] + name, **how)
run("a")
sys.setprofile(watch)
run("b")
sys.setprofile(None)
print(json.dumps([changes, upwards]))
"""


def lines_of_rooms() -> Counter:
    """Return the lines of each room."""
    found = Counter()
    for path in MODULES:
        found[name_of(path).partition(".")[0] or "__init__"] += len(path.read_text().splitlines())
    return found


def test_lines_of_rooms():
    found = lines_of_rooms()
    assert set(found) == set(BUDGETS["lines"])
    over = {room: (found[room], most) for room, most in BUDGETS["lines"].items() if found[room] > most}
    assert over == {}, "say less, or move the budget with a reason in the commit's message"
    assert len(MODULES) <= BUDGETS["files"]


def test_functions_of_many_arguments():
    functions = [
        f"{name_of(path)}.{node.name}"
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs) >= MANY
    ]
    assert len(functions) <= BUDGETS["many arguments"], functions


def test_changes_of_room_in_one_run(tmp_path):
    rooms = list(dict.fromkeys(room.partition(".")[0] for room in ROOMS))
    data = ROOT / "data_samples" / "breast_cancer.libsvm"
    words = [sys.executable, "-c", RUN, str(data), str(tmp_path) + os.sep, json.dumps(rooms)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    changes, upwards = json.loads(done.stdout)
    assert 0 < changes <= BUDGETS["changes"] and upwards <= BUDGETS["upwards"], (changes, upwards)
