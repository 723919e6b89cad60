"""Where a data set comes from: the package, a folder (``COREB_TASKS_DATA``) or the hub. All three end as a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from importlib.resources import files
from pathlib import Path

from coreb_tasks.data.errors import DataError
from coreb_tasks.facts import DATA_VARIABLE, PACKAGED


@dataclass(frozen=True)
class Source:
    """A folder in hub layout. ``commit`` is the hub's, where it came from the hub; else None."""

    path: str
    folder: Path
    commit: str | None = None

    @property
    def card(self) -> Path:
        """The README that declares the configs."""
        return self.folder / "README.md"

    def files(self, config: str, split: str) -> list[Path]:
        """The files of a config's split, as the README declares them, in order.

        Raises:
            DataError: README, config, split or file is missing or broken.
        """
        found: list[Path] = []
        for pattern in self.patterns(config, split):
            matches = sorted(self.folder / name for name in glob(pattern, root_dir=self.folder, recursive=True))
            if not any(match.is_file() for match in matches):
                raise DataError(
                    f"{self.path}, config {config}, split {split}",
                    f"README.md declares {pattern}, but {self.folder} has no such file",
                    "Copy or fetch the whole data set.",
                )
            found += [match for match in matches if match.is_file()]
        return found

    def patterns(self, config: str, split: str) -> list[str]:
        """The file patterns that the README declares for a config's split, relative to the folder."""
        for kind, wanted, known in (("config", config, self._configs), ("split", split, self._configs.get(config, {}))):
            if wanted not in known:
                raise DataError(
                    f"{self.path}: {self.card}",
                    f"{kind} {wanted} is not declared; {kind}s found: {', '.join(known) or 'none'}",
                    f"Expected a copy of the hub data set {self.path}.",
                )
        patterns = self._configs[config][split]
        for pattern in patterns:
            if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
                raise DataError(f"{self.path}: {self.card}", f"{pattern} of config {config} lies outside the data set")
        return patterns

    @cached_property
    def _configs(self) -> dict[str, dict[str, list[str]]]:
        """Config -> split -> file patterns."""
        from datasets.data_files import sanitize_patterns
        from huggingface_hub import DatasetCard

        if not self.card.is_file():
            raise DataError(
                f"{self.path}: {self.card}",
                "the file that declares the configs is missing",
                "Copy the whole data set, README.md (the dataset card) included.",
            )
        try:
            declared = [
                (entry["config_name"], sanitize_patterns(entry["data_files"]))
                for entry in DatasetCard.load(self.card).data.to_dict().get("configs", [])
            ]
            if len(dict(declared)) < len(declared):
                raise ValueError(f"a config is declared twice in {[name for name, _ in declared]}")
            return {
                name: {str(split): list(map(str, patterns)) for split, patterns in splits.items()}
                for name, splits in declared
            }
        except Exception as error:  # of the YAML parser, of the hub's or the datasets library, or of the README's shape
            raise DataError(
                f"{self.path}: {self.card}",
                f"the configs in its front matter cannot be read ({type(error).__name__}: {error})",
                f"Expected a copy of the README.md of the hub data set {self.path}.",
            ) from error


def locate(path: str, configs: tuple[str, ...], split: str, commit: str | None = None) -> Source:
    """Find a data set by its hub path; from the hub, fetch just the files of ``configs`` and ``split``.

    ``commit`` is the hub's to fetch, None for its newest. A folder cannot be asked which commit it holds.

    Raises:
        DataError: the folder that ``COREB_TASKS_DATA`` names lacks the data set, or the hub does not give it.
    """
    if path.startswith(PACKAGED):
        return Source(path, Path(str(files("coreb_tasks"))) / "samples" / path.removeprefix(PACKAGED))
    root = os.environ.get(DATA_VARIABLE)
    if root:
        folder = Path(root).expanduser() / path
        if not folder.is_dir():
            raise DataError(
                f"{path}: {DATA_VARIABLE}={root}",
                f"there is no folder {folder}",
                f"Put the data set there by its hub path, or unset {DATA_VARIABLE} to fetch it from the hub.",
            )
        return Source(path, folder)
    return _fetch(path, configs, split, commit)


def _fetch(path: str, configs: tuple[str, ...], split: str, commit: str | None) -> Source:
    from huggingface_hub import hf_hub_download, snapshot_download

    try:
        card = Path(hf_hub_download(path, "README.md", repo_type="dataset", revision=commit))
        source = Source(path, card.parent, commit=card.parent.name)
        wanted = [pattern for config in configs for pattern in source.patterns(config, split)]
        # At the commit that the README resolved to, so that no file of another version comes in.
        snapshot_download(path, repo_type="dataset", revision=source.commit, allow_patterns=wanted)
    except DataError:
        raise
    except Exception as error:  # the hub's own errors, or those of whichever HTTP client it uses
        raise DataError(
            path,
            f"the hub data set could not be fetched ({type(error).__name__}: {error})",
            f"Check the network, or set {DATA_VARIABLE} to a folder that holds {path}.",
        ) from error
    return source
