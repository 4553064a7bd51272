"""Memory and throughput from eval.bench, beside the paper's statements (its Fig. 3a and 3b)."""

import json
from pathlib import Path
from typing import Any

from eval.reporting.figures import house_style, save
from eval.reporting.names import look, methods, title_of
from eval.reporting.sections import Figure, Link, Origin, Section, Table, Text, not_run

MIB = 2**20
TITLE = "Fig. 3a, b: memory and throughput"


def section(card: Path, paper: dict[str, Any], results: Path) -> Section:
    """Memory and throughput of a benchmark's card."""
    if not card.exists():
        return not_run("fig3a", TITLE, "python -m eval.bench")
    measured = json.loads(card.read_text())
    points = measured["rows"]
    origin = Origin("bench", "Memory and throughput", *(measured[key] for key in ("command", "commit", "settings")))
    caption = (
        f"KV memory and throughput against length at the largest batch, {measured['model']}, on {measured['device']}. "
        "Dotted: the analytic model (the paper's section 3.5). The values stand in the table."
    )
    sentences = profile_sentences(points, paper["efficiency"])
    rows = [row | {"method": Link(row["method"], origin.anchor)} for row in profile_rows(points)]
    figure = Figure(draw_profile(points, results / "profile"), caption)
    return Section("fig3a", TITLE, [*map(Text, sentences), figure, Table(rows)], [origin])


def profile_rows(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a point, bytes in MiB; a dash where a figure is unknown."""
    return [
        {
            "method": title_of(point["method"]),
            "tokens seen": point["seen_tokens"],
            "batch": point["batch"],
            "weights, MiB": mib(point["weights_bytes"]),
            "device KV, MiB": mib(point["device_kv_bytes"]),
            "analytic KV, MiB": mib(point["analytic_kv_bytes"]),
            "host KV, MiB": mib(point["host_kv_bytes"]),
            "state, MiB": mib(point["state_bytes"]),
            "transient peak, MiB": mib(point["transient_peak_bytes"]),
            "tokens/s": f"{point['tokens_per_s']:.1f}",
        }
        for point in points
    ]


def mib(size: int | None) -> str:
    """Bytes as MiB."""
    return "-" if size is None else f"{size / MIB:.1f}"


def profile_sentences(points: list[dict[str, Any]], paper: dict[str, Any]) -> list[str]:
    """Ratios at the longest length and the largest batch, beside the paper's."""
    last = {point["method"]: point for point in largest(points) if point["seen_tokens"] == longest(points)}
    sentences = []
    zoomed = last.get("zoomr_layerwise")
    for name, claim in (("full", paper["memory_vs_full_on_gpu"]), ("full_offload", paper["memory_vs_full_offloaded"])):
        if zoomed and name in last:
            ratio = last[name]["device_kv_bytes"] / zoomed["device_kv_bytes"]
            pair = f"{title_of(name)} over {title_of('zoomr_layerwise')}"
            sentences.append(f"Device KV of {pair}: {ratio:.1f}x (paper: {claim}).")
    for name in ("zoomr", "zoomr_layerwise"):
        if name in last and "full" in last:
            ratio = last[name]["tokens_per_s"] / last["full"]["tokens_per_s"]
            theirs = paper["throughput_tokens_per_s"]
            share = theirs["zoomr"] / theirs["full"]
            sentences.append(
                f"Throughput of {title_of(name)} over {title_of('full')}: {ratio:.2f}x (paper: {share:.2f}x)."
            )
    return sentences


def largest(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points of the largest batch."""
    batch = max(point["batch"] for point in points)
    return [point for point in points if point["batch"] == batch]


def longest(points: list[dict[str, Any]]) -> int:
    """The longest length."""
    return max(point["seen_tokens"] for point in points)


def draw_profile(points: list[dict[str, Any]], stem: Path) -> Path:
    """Draw device memory and throughput against length at the largest batch."""
    plt = house_style()
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 2.8))
    wide = largest(points)
    for variant in dict.fromkeys(point["method"] for point in wide):
        line = sorted((point for point in wide if point["method"] == variant), key=lambda point: point["seen_tokens"])
        lengths = [point["seen_tokens"] for point in line]
        shown = look(max((name for name in methods() if variant.startswith(name)), key=len, default=variant))
        fill = shown.colour if variant in methods() else "white"  # a method's variants are open
        style: Any = {"color": shown.colour, "marker": shown.marker, "markerfacecolor": fill}
        style |= {"markersize": 4, "linewidth": 1.2}
        measured = [point["device_kv_bytes"] / MIB for point in line]
        axes[0].plot(lengths, measured, label=title_of(variant), **style)
        analytic = [point["analytic_kv_bytes"] / MIB for point in line]
        axes[0].plot(lengths, analytic, color=shown.colour, linewidth=0.6, linestyle=":")
        axes[1].plot(lengths, [point["tokens_per_s"] for point in line], **style)
    axes[0].set_ylabel("device KV (MiB)")
    axes[1].set_ylabel("tokens per second, all rows")
    for axis in axes:
        axis.set_xlabel(f"tokens seen, batch {wide[0]['batch']}")
        axis.set_ylim(bottom=0)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=7)
    return save(figure, stem)
