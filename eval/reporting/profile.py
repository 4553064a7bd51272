"""Memory and throughput from eval.profile, beside the paper's statements (its Fig. 3a and 3b)."""

from pathlib import Path
from typing import Any

from eval.reporting.figures import house_style, save
from eval.reporting.names import look, methods, title_of
from eval.reporting.sections import Figure, Link, Origin, Section, Table, Text, newest_run, not_run
from pipeline import read_rows

MIB = 2**20
POINTS = "points.jsonl"
TITLE = "Fig. 3a, b: memory and throughput"


def section(profiled: Path, paper: dict[str, Any], results: Path) -> Section:
    """Memory and throughput of the profile that finished last."""
    directory, unfinished = newest_run(profiled, "*")
    if directory is None:
        return not_run("fig3a", TITLE, "python -m eval.profile")
    points = read_rows(directory / POINTS)
    origin = Origin.of_run(directory, "Memory and throughput")
    caption = (
        f"KV memory and throughput against length at the largest batch, on {points[0]['device']}, one run a point. "
        "Dotted: the analytic model (the paper's section 3.5). The values stand in the table."
    )
    sentences = [*profile_sentences(points, paper["efficiency"]), *filter(None, [unfinished])]
    rows = [row | {"variant": Link(row["variant"], origin.anchor)} for row in profile_rows(points)]
    figure = Figure(draw_profile(points, results / "profile"), caption)
    return Section("fig3a", TITLE, [*map(Text, sentences), figure, Table(rows)], [origin])


def load_points(profiled: Path) -> list[dict[str, Any]]:
    """Points of the profile that finished last; empty where there is none."""
    directory, _ = newest_run(profiled, "*")
    return read_rows(directory / POINTS) if directory else []


def profile_rows(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a point, bytes in MiB; a dash where a figure is unknown."""
    return [
        {
            "variant": title_of(point["variant"]),
            "length": point["length"],
            "batch": point["batch"],
            "device": point["device"],
            "weights, MiB": mib(point["weights_bytes"]),
            "device KV, MiB": mib(point["device_kv_bytes"]),
            "analytic KV, MiB": mib(point["analytic_kv_bytes"]),
            "host KV, MiB": mib(point["host_kv_bytes"]),
            "transient peak, MiB": mib(point["transient_peak_bytes"]),
            "RSS peak, MiB": mib(point["rss_peak_bytes"]),
            "tokens/s": f"{point['tokens_per_s']:.1f}",
        }
        for point in points
    ]


def mib(size: int | None) -> str:
    """Bytes as MiB."""
    return "-" if size is None else f"{size / MIB:.1f}"


def profile_sentences(points: list[dict[str, Any]], paper: dict[str, Any]) -> list[str]:
    """Ratios at the longest length and the largest batch, beside the paper's."""
    last = {point["variant"]: point for point in largest(points) if point["length"] == longest(points)}
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
    return max(point["length"] for point in points)


def draw_profile(points: list[dict[str, Any]], stem: Path) -> Path:
    """Draw device memory and throughput against length at the largest batch."""
    plt = house_style()
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 2.8))
    wide = largest(points)
    for variant in dict.fromkeys(point["variant"] for point in wide):
        line = sorted((point for point in wide if point["variant"] == variant), key=lambda point: point["length"])
        lengths = [point["length"] for point in line]
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
        axis.set_xlabel(f"generated tokens, batch {wide[0]['batch']}")
        axis.set_ylim(bottom=0)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=7)
    return save(figure, stem)
