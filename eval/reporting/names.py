"""What methods and benchmarks are called and how they are drawn: `show` and the defaults in configs/method."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from pipeline import fingerprint

CONFIGS = Path(__file__).parents[2] / "configs"
ALWAYS = ("c", "k")  # settings that a name gives even where they are the defaults
KEEPS_PROMPT = "keep_prompt"
LONGEST = 40  # letters of a setting's value in a name; a longer value is told by a digest
BENCHMARKS = {
    "gpqa_diamond": "GPQA-D",
    "aime2025": "AIME25",
    "math500": "MATH500",
    "aime2024": "AIME24",
    "gsm8k": "GSM8K",
    "ledger": "Ledger",
    "word_problems": "Word problems",
}


@dataclass(frozen=True)
class Look:
    """How a method shows in tables and figures: its name, colour (hex), matplotlib marker and place in a list."""

    title: str
    colour: str = "#666666"
    marker: str = "h"
    order: int = 1000


@cache
def methods() -> dict[str, dict[str, Any]]:
    """The files of configs/method by name, interpolations as they are written."""
    return {path.stem: yaml.safe_load(path.read_text()) for path in sorted((CONFIGS / "method").glob("*.yaml"))}


def plain_name(method: str) -> str:
    """Name of the method in configs/method; that the prompt is kept is a setting, and not a part of the name."""
    return method if method in methods() else method.removesuffix("_prompt")


def look(method: str) -> Look:
    """How a method looks; one that configs/method does not show is called by its own name and drawn in grey."""
    name = plain_name(method)
    return Look(**methods()[name]["show"]) if name in methods() else Look(name.replace("_", " "))


def title_of(name: str) -> str:
    """Title of a method, or of a variant whose name begins with a method's: ``zoomr c=3``, ``zoomr_layerwise``."""
    method = max((method for method in methods() if name.startswith(method)), key=len, default="")
    rest = name[len(method) :].replace("_", " ").strip()
    if not method or (rest and name[len(method)] not in "_ "):
        return name.replace("_", " ")
    return look(method).title + (" + prompt" if rest == "prompt" else f", {rest}" if rest else "")


def set_apart(method: str, policy: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a policy that differ from the method's defaults; c and k always, that the prompt is kept never.

    Parameters
    ----------
    method : str
        Name in configs/method.
    policy : mapping
        The settings.
    generation : mapping
        Resolves defaults such as ``${generation.window}``; where it lacks a key, the setting counts as different.
    """
    defaults = methods().get(plain_name(method), {})

    def default(key: str) -> Any:
        value = defaults.get(key)
        if isinstance(value, str) and value.startswith("${generation."):
            return generation.get(value[len("${generation.") : -1], value)
        return value

    unnamed = {"_target_", KEEPS_PROMPT, "index"}  # a cell has its index among its inputs
    changed = {key for key, value in policy.items() if value != default(key)} | set(ALWAYS)
    in_order = dict.fromkeys([*ALWAYS, *defaults, *sorted(policy)])
    return {key: policy[key] for key in in_order if key in policy and key in changed - unnamed}


def method_label(method: str, policy: Mapping[str, Any]) -> str:
    """Name of a method with its settings in plain words, the same in every preset: ``zoomr c2 k2 window 80``."""
    parts = [f"{key}{policy[key]}" for key in ALWAYS if key in policy]
    parts += [_worded(key, value, " ") for key, value in set_apart(method, policy, {}).items() if key not in ALWAYS]
    return " ".join([plain_name(method), *parts, *(["with prompt"] if policy.get(KEEPS_PROMPT) else [])])


def method_title(method: str, policy: Mapping[str, Any], generation: Mapping[str, Any]) -> str:
    """Name of a method with its settings for people: ``ZoomR (c=2, k=2)``, ``H2O + prompt (budget=96)``."""
    changed = set_apart(method, policy, generation)
    parts = ", ".join(_worded(key, value, "=") for key, value in changed.items())
    prompt = " + prompt" if policy.get(KEEPS_PROMPT) else ""
    return look(method).title + prompt + (f" ({parts})" if parts else "")


def benchmark_title(benchmark: str) -> str:
    """Name of a benchmark for people."""
    return BENCHMARKS.get(benchmark, benchmark)


def _worded(key: str, value: Any, between: str) -> str:
    words = key.replace("_", " ")
    if isinstance(value, bool):
        return words if value else f"no {words}"
    text = _flat(value)
    return f"{words}{between}{text if len(text) <= LONGEST else '#' + fingerprint(value, 6)}"


def _flat(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        inner = [".".join(map(str, item)) if isinstance(item, list) else str(item) for item in value]
        return " ".join(inner)
    return str(value)
