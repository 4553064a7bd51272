"""Packages that a preset needs beyond the project's own: the extras of pyproject.toml."""

import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def missing(extras: list[str]) -> list[str]:
    """Requirements of some extras that are not installed, as pip takes them."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return [line for extra in extras for line in declared[extra] if not installed(Requirement(line))]


def installed(requirement: Requirement) -> bool:
    """Whether a requirement is met, and so are those of its own extras."""
    try:
        found = distribution(requirement.name)
    except PackageNotFoundError:
        return False
    further = [
        part
        for part in map(Requirement, found.requires or [])
        if part.marker and any(part.marker.evaluate({"extra": extra}) for extra in requirement.extras)
    ]
    return requirement.specifier.contains(found.version, prereleases=True) and all(map(installed, further))


def install(requirements: list[str]) -> None:
    """Install requirements with pip, at the pinned versions."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), *requirements], check=True)
