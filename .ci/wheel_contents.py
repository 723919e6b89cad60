"""Fails when the wheel holds more at its top level than the package and the start-up files."""

import sys
import zipfile

EXPECTED = {"coreb_tasks", "_coreb_tasks_autoload.py", "coreb_tasks_autoload.pth", "coreb_tasks_autoload.start"}

names = zipfile.ZipFile(sys.argv[1]).namelist()
top = {name.split("/")[0] for name in names}
top -= {name for name in top if name.endswith(".dist-info")}
if top != EXPECTED:
    sys.exit(f"{sys.argv[1]} holds {sorted(top)} at its top level, expected {sorted(EXPECTED)}")
print(f"{len(names)} files in {sys.argv[1].rsplit('/', 1)[-1]}, top level: {', '.join(sorted(top))}")
