"""Run a preset's stages in their order: python -m pipeline preset=micro (see configs/pipeline.yaml).

Each stage is a process of its own, does only what is missing, and says what it has made. The first that fails ends the
run, with its exit code. Overrides go to the stages that know them.
"""

import ctypes
import shlex
import signal
import subprocess
import sys
from difflib import SequenceMatcher
from typing import Any

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from pipeline.cli import CONFIGS, composing, explain, groups
from pipeline.extras import install, missing
from zoomr.errors import UserError

OWN = ("only", "install", "dry_run")


def root_of(module: str) -> str:
    """The root in configs/ of a stage: its own, or its package's."""
    package, _, name = module.partition(".")
    return name if (CONFIGS / f"{name}.yaml").exists() else package


def key_of(override: str) -> str:
    """The setting or the group that an override is about."""
    return override.lstrip("+~").partition("=")[0]


def composed(root: str, overrides: list[str]) -> DictConfig:
    """The configuration of a root."""
    with composing():
        return hydra.compose(root, overrides=overrides)


def refusals(root: str, overrides: list[str]) -> dict[str, Exception]:
    """Those of some overrides with which a root does not compose, and why."""
    accepted: list[str] = []
    refused: dict[str, Exception] = {}
    # Choices first: a group's file brings the settings that other overrides name.
    for override in sorted(overrides, key=lambda override: key_of(override).partition("@")[0] not in groups()):
        try:
            composed(root, [*accepted, override])
            accepted.append(override)
        except (HydraException, OmegaConfBaseException) as error:
            refused[override] = error
    return refused


def commands(stages: list[str], overrides: list[str]) -> list[list[str]]:
    """Command lines of some stages, without the interpreter.

    Parameters
    ----------
    stages : list of str
        Each a stage's module and its own overrides.
    overrides : list of str
        Those of the command line. They take the place of a stage's own of the same setting, but for its preset.

    Raises
    ------
    UserError
        If no stage knows one of the overrides.
    """
    lines = [shlex.split(stage) for stage in stages]
    refused = {root: refusals(root, overrides) for root in dict.fromkeys(root_of(line[0]) for line in lines)}
    for override in overrides:
        if all(override in each for each in refused.values()):
            sentences = [explain(each[override], root) for root, each in refused.items()]
            # Of the roots' hints the one that is nearest.
            raise UserError(max(sentences, key=lambda sentence: SequenceMatcher(None, override, sentence).ratio()))
    built = []
    for module, *own in lines:
        own_preset = any(key_of(each) == "preset" for each in own)
        given = [
            override
            for override in overrides
            if override not in refused[root_of(module)] and not (own_preset and key_of(override) == "preset")
        ]
        replaced = {key_of(override) for override in given}
        built.append(["-m", module, *(each for each in own if key_of(each) not in replaced), *given])
    return built


def die_with_parent() -> None:
    """Let a stage end when this process is killed, so that another run finds its directory free."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def run(arguments: list[str]) -> int:
    """Run the stages that the arguments ask for; returns the exit code of the last one that was run."""
    own = [argument for argument in arguments if key_of(argument) in OWN]
    overrides = [argument for argument in arguments if argument not in own]
    refused = refusals("pipeline", overrides)
    config: Any = composed("pipeline", [*(each for each in overrides if each not in refused), *own])
    stages = [stage for stage in config.preset.stages if stage.startswith(config.only or "")]
    if not stages:
        raise UserError(f"only={config.only}: no stage of this preset. Its stages: {', '.join(config.preset.stages)}.")
    lines = commands(stages, overrides)
    lacking = missing(config.preset.get("extras", []))
    if lacking and not config.install:
        raise UserError(f"This preset needs {', '.join(lacking)}: add install=true, or install them with pip.")
    if lacking and not config.dry_run:
        install(lacking)
    for number, line in enumerate(lines, 1):
        print(f"[{number}/{len(lines)}] python {shlex.join(line)}", flush=True)
        if not config.dry_run:
            code = subprocess.run([sys.executable, *line], preexec_fn=die_with_parent).returncode
            if code:
                return code if code > 0 else 128 - code  # of a signal, as shells tell it
    return 0


def main() -> None:
    """Run what the command line asks for; bad input is one sentence, and exit code 2."""
    try:
        raise SystemExit(run(sys.argv[1:]))
    except UserError as error:
        print(error, file=sys.stderr)
    except (HydraException, OmegaConfBaseException) as error:
        print(explain(error, "pipeline"), file=sys.stderr)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
