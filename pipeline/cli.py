"""The command line of every stage: compose with Hydra, run, and say in one sentence what is wrong with the input."""

import difflib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.checks import check, quoted
from zoomr.errors import UserError

CONFIGS = Path(__file__).parents[1] / "configs"


def stage(root: str) -> Callable[[Callable[[DictConfig], Any]], Callable[..., Any]]:
    """Make a function of the composed config a stage's command too.

    Parameters
    ----------
    root : str
        The Hydra root in configs/, without its suffix.

    Returns
    -------
    callable
        A decorator. What it returns runs the function when called with a config. Called without one it is the command:
        it composes the config from the command line, and exits with 2 and one sentence on bad input; other errors keep
        their traceback.
    """

    def decorate(function: Callable[[DictConfig], Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def job(config: DictConfig) -> Any:
            # Relative paths are the caller's, wherever a launcher or hydra.job.chdir has put this process.
            os.chdir(HydraConfig.get().runtime.cwd)
            try:
                check(config, HydraConfig.get().overrides.task)
                return function(config)
            except UserError as error:
                # Said here, since Hydra writes a line of its own as soon as a job's error reaches it.
                print(error, file=sys.stderr)
                if HydraConfig.get().mode == RunMode.RUN:
                    raise SystemExit(2) from None
                raise  # a sweep goes on with its other jobs

        @functools.wraps(function)
        def command(config: DictConfig | None = None) -> Any:
            if config is not None:
                check(config)
                return function(config)
            # Hydra prints its own errors in several lines unless it is told to raise them.
            os.environ["HYDRA_FULL_ERROR"] = "1"
            # argparse takes -m in front of the overrides only; people write it anywhere.
            sys.argv[1:] = sorted(sys.argv[1:], key=lambda argument: argument not in ("-m", "--multirun"))
            try:
                hydra.main(config_path=str(CONFIGS), config_name=root, version_base="1.3")(job)()
            except UserError:
                raise SystemExit(2) from None
            except (HydraException, OmegaConfBaseException) as error:
                print(explain(error, root), file=sys.stderr)
                raise SystemExit(2) from None

        return command

    return decorate


@contextmanager
def composing() -> Iterator[None]:
    """Let `hydra.compose` read configs/ in the block, in a stage's job or outside of one."""
    if GlobalHydra.instance().is_initialized():
        yield
    else:
        with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
            yield


def explain(error: Exception, root: str) -> str:
    """Return one sentence for a refused override, with the nearest known name where a name is unknown."""
    if isinstance(error, OverrideParseException):
        if "=" not in error.override:
            return f"Cannot read {error.override}: write setting=value."
        return f"Cannot read {error.override}: a value with such characters is written {quoted(error.override)}"
    if ambiguous := re.match(r"Ambiguous value for argument '(.*)'\n", str(error)):
        override = ambiguous.group(1)
        return f"{override} is several values: add -m to run them all, or write {quoted(override)} if it is one."
    if isinstance(error.__cause__, UserError):
        return str(error.__cause__)
    text = str(error.__cause__ or error)
    unknown_key = re.search(r"Key '([^']*)' is not in struct\s+full_key: (\S+)", text)
    if unknown_key:
        full_key = unknown_key.group(2)
        return f"Unknown setting {full_key}.{nearest(full_key, settings(root))}"
    group = re.search(r"Could not find '([^']+)/([^']+)'", text)
    if group:
        name, choice = group.groups()
        return f"Unknown choice {name}={choice}.{nearest(choice, choices(name))}"
    override = re.search(r"Could not override '([^']+)'", str(error))
    if override:
        return f"Unknown setting {override.group(1)}.{nearest(override.group(1), [*settings(root), *groups()])}"
    return " ".join(str(error).split())


def nearest(name: str, known: list[str]) -> str:
    """Return a hint with the known name closest to `name`, or with the known names where none is close."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if found:
        return f" Did you mean {found[0]}?"
    return f" Known: {', '.join(sorted(known))}." if len(known) <= 30 else " Add --cfg job to see every setting."


def groups() -> list[str]:
    """Names of the config groups."""
    return sorted(path.relative_to(CONFIGS).as_posix() for path in CONFIGS.glob("*/") if any(path.glob("*.yaml")))


def choices(group: str) -> list[str]:
    """Names of the choices of a config group."""
    return sorted(path.stem for path in (CONFIGS / group).glob("*.yaml"))


def settings(root: str) -> list[str]:
    """Full names of all settings that a root knows with the choices made on the command line."""
    chosen = [argument for argument in sys.argv[1:] if argument.partition("=")[0] in groups()]
    known_choices = [a for a in chosen if a.partition("=")[2] in choices(a.partition("=")[0])]
    with composing():
        config = hydra.compose(root, overrides=known_choices)
    return list(_full_keys(config))


def _full_keys(config: Any, prefix: str = "") -> Iterator[str]:
    for key in config:
        name = f"{prefix}{key}"
        yield name
        if (
            OmegaConf.is_dict(config)
            and not OmegaConf.is_missing(config, key)
            and OmegaConf.is_dict(config._get_node(key))
        ):
            yield from _full_keys(config._get_node(key), f"{name}.")
