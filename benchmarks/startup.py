"""What the start-up file adds to ``python -c pass``: medians of 20 runs with and without it, in turn.

    python benchmarks/startup.py

Each side is an empty virtual environment of its own; one of them gets the start-up files.
"""

import compileall
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from statistics import median

RUNS = 20
STARTUP_FILES = Path(__file__).parents[1] / "startup"


def environment(folder: Path) -> Path:
    """A new environment; returns its interpreter."""
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


def milliseconds(python: Path) -> float:
    start = time.perf_counter()
    subprocess.run([python, "-c", "pass"], check=True)
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        bare, hooked = environment(Path(folder, "bare")), environment(Path(folder, "hooked"))
        packages = next(hooked.parents[1].glob("lib/python*/site-packages"))
        for file in STARTUP_FILES.glob("*coreb_tasks_autoload*"):
            shutil.copy(file, packages)
        compileall.compile_dir(packages, quiet=1)  # as pip does
        subprocess.run([hooked, "-c", "import sys; sys.modules['_coreb_tasks_autoload']"], check=True)
        runs = [(milliseconds(bare), milliseconds(hooked)) for _ in range(RUNS)]
    without, with_hook = (median(side) for side in zip(*runs, strict=True))
    print(
        f"{sys.version.split()[0]}: {without:.2f} ms without, {with_hook:.2f} ms with, ratio {with_hook / without:.3f}"
    )


if __name__ == "__main__":
    main()
