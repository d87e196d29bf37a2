"""What a first run compiles: processor seconds by kernel, its own and with all that it compiles on its way.

python examples/benchmarks/compiling.py                         the demo's path, on an empty cache
python examples/benchmarks/compiling.py sparse-svm FILE -q      any command line
"""

import argparse
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

DEMO = ["svm", str(Path(__file__).parents[2] / "data_samples/breast_cancer.libsvm"), "--scale", "standard", "--quiet"]


class Profile:
    """Listens to numba's compilations; one that another needs is compiled within it."""

    def __init__(self):
        from numba.core import event

        self.own, self.inclusive, self.count, self._open = Counter(), Counter(), Counter(), []
        listener = type("Listener", (event.Listener,), {"on_start": self._start, "on_end": self._end})()
        event.register("numba:compile", listener)

    def _start(self, _event):
        self._open.append([time.process_time(), 0.0])

    def _end(self, event):
        began, inner = self._open.pop()
        took = time.process_time() - began
        function = event.data["dispatcher"].py_func
        module = function.__module__
        name = f"{module.rpartition('.')[2]}.{function.__qualname__}" if module.startswith("screenpath") else module
        self.own[name] += took - inner
        self.inclusive[name] += took
        self.count[name] += 1
        if self._open:
            self._open[-1][1] += took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", nargs=argparse.REMAINDER, help="a screenpath command (default: the demo)")
    parser.add_argument("--most", type=int, default=40, metavar="N", help="rows of the table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        began, clock = time.process_time(), time.perf_counter()
        from screenpath.cli.app import run

        profile = Profile()
        command = arguments.command or DEMO
        code = run([*command, *(() if "-o" in command else ("-o", str(Path(folder) / "run")))])
        total, seconds = time.process_time() - began, time.perf_counter() - clock
    print(f"{'own':>7} {'with all':>9} {'times':>6}  kernel (others by module: what numba itself is made of)")
    for name, own in profile.own.most_common(arguments.most):
        print(f"{own:7.2f} {profile.inclusive[name]:9.2f} {profile.count[name]:6d}  {name}")
    print(
        f"{sum(profile.own.values()):7.2f} of {total:.2f} processor seconds compile {sum(profile.count.values())} times"
    )
    print(f"{seconds:.2f} seconds on the clock; exit code {code}")


if __name__ == "__main__":
    main()
