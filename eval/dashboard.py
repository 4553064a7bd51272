"""The W&B workspace for the ablations, built in code and tested offline; pushing it is a separate step."""

import json
from typing import Any


def dashboard(entity: str, project: str) -> Any:
    """Build the workspace.

    Parameters
    ----------
    entity, project : str
        Where it belongs on W&B.

    Returns
    -------
    wandb_workspaces.workspaces.Workspace
        Four sections: accuracy against memory, the ablations over c and k, lengths and format, and samples to read.
    """
    import wandb_workspaces.reports.v2 as reports
    import wandb_workspaces.workspaces as workspaces

    def scatter(x: str, y: str, title: str) -> Any:
        return reports.ScatterPlot(title=title, x=reports.SummaryMetric(x), y=reports.SummaryMetric(y))

    def bars(metric: str, title: str) -> Any:
        return reports.BarPlot(title=title, metrics=[metric], groupby="label", orientation="h")

    against_memory = [
        scatter("eval/active_tokens_mean", "eval/accuracy", "Accuracy against active KV tokens"),
        bars("eval/accuracy", "Accuracy by method"),
        bars("eval/full_peak_over_peak", "Full cache's peak over each method's"),
    ]
    ablations = [
        reports.ParallelCoordinatesPlot(
            title="c, k, active tokens, accuracy",
            columns=[
                reports.ParallelCoordinatesPlotColumn(metric=metric)
                for metric in (
                    reports.Config("c"),
                    reports.Config("k"),
                    reports.SummaryMetric("eval/active_tokens_mean"),
                    reports.SummaryMetric("eval/accuracy"),
                )
            ],
        ),
        scatter("eval/refreshes", "eval/accuracy", "Accuracy against refreshes"),
    ]
    form = [
        bars("eval/generated_tokens", "Generated tokens"),
        bars("eval/truncated_share", "Share at the token limit"),
        bars("eval/unparsed_share", "Share without an answer"),
        bars("eval/balanced_share", "Share that keeps to the format"),
        bars("eval/tokens_per_s", "Tokens per second"),
    ]
    samples = [reports.WeavePanelSummaryTable(table_name="samples")]
    sections = {
        "Accuracy and memory": against_memory,
        "Ablations": ablations,
        "Lengths and speed": form,
        "Samples": samples,
    }
    return workspaces.Workspace(
        entity=entity,
        project=project,
        name="ZoomR",
        sections=[workspaces.Section(name=name, panels=panels, is_open=True) for name, panels in sections.items()],
    )


def specification(workspace: Any) -> dict[str, Any]:
    """The workspace as plain JSON, as it would be sent."""
    return dict(json.loads(workspace._to_model().model_dump_json()))


def push_dashboard(workspace: Any) -> None:
    """Save the workspace as a new view on W&B; needs a key."""
    workspace.save_as_new_view()
