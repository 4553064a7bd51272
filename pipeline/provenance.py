"""Where a result comes from: commit, versions, host."""

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "transformers", "peft", "trl", "datasets", "openai", "hydra-core", "wandb", "math-verify")


@cache
def commit() -> str:
    """Return the checkout's commit, with `+dirty` where tracked files differ from it, or `unknown` outside git."""
    root = Path(__file__).parents[1]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True)
    if head.returncode != 0:
        return "unknown"
    status = ["git", "status", "--porcelain", "--untracked-files=no", "--", ".", ":!results"]
    changed = subprocess.run(status, cwd=root, capture_output=True, text=True).stdout.strip()
    return head.stdout.strip() + ("+dirty" if changed else "")


def versions() -> dict[str, str]:
    """Return the installed versions of Python and of the packages that shape a result."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found
