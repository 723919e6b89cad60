"""Puts the start-up files at the top of the wheel, in ordinary and editable installs; the rest is in pyproject.toml."""

import shutil
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

STARTUP = sorted(file for file in Path("startup").iterdir() if file.suffix in {".py", ".pth", ".start"})


class BuildWithStartupFiles(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:
            Path(self.build_lib).mkdir(parents=True, exist_ok=True)
            for file in STARTUP:
                shutil.copy(file, self.build_lib)

    def get_outputs(self, include_bytecode=True):
        copies = [] if self.editable_mode else [str(Path(self.build_lib, file.name)) for file in STARTUP]
        return [*super().get_outputs(include_bytecode), *copies]


class EditableWithStartupFiles(editable_wheel):
    def run(self):
        super().run()
        wheel = max(Path(self.dist_dir).glob("*.whl"), key=lambda file: file.stat().st_mtime)
        rebuilt = wheel.with_suffix(".new")
        with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(rebuilt, "w", zipfile.ZIP_DEFLATED) as new:
            added = ""
            for file in STARTUP:
                new.writestr(file.name, file.read_bytes())
                digest = urlsafe_b64encode(sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
                added += f"{file.name},sha256={digest},{file.stat().st_size}\n"
            for item in old.infolist():  # RECORD lists every file, so that pip takes them away at uninstall
                data = old.read(item)
                new.writestr(item, added.encode() + data if item.filename.endswith(".dist-info/RECORD") else data)
        rebuilt.replace(wheel)


setup(cmdclass={"build_py": BuildWithStartupFiles, "editable_wheel": EditableWithStartupFiles})
