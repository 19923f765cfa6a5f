"""``slackwater lab standing``: replays recorded values through deferred standing queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from slackwater import units
from slackwater.cli.plot_file import require_plot_file
from slackwater.cli.progress import working
from slackwater.control.deferral import DEFAULT_K, DEFAULT_METHOD, deferral_method_names
from slackwater.errors import InvalidData, InvalidOption
from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet
from slackwater.promises import Precision
from slackwater.sim import standing
from slackwater.sim.recorded import read_columns
from slackwater.sim.ticks import TickTable, common_part, tick_table


@click.command("standing")
@click.argument("values", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--key", "stream", required=True, help="The column that names the stream.")
@click.option("--event-time", "time_", required=True, help="The column of times (or numbers, in milliseconds).")
@click.option("--value", required=True, help="The column of values.")
@click.option(
    "--weights",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A Parquet file with the queries: query, stream, weight. Without it, random averages are used.",
)
@click.option("--average-of", type=click.IntRange(1), default=9, show_default=True, help="Streams per random average.")
@click.option("--queries", type=click.IntRange(1), default=10, show_default=True, help="The number of random averages.")
@click.option(
    "--within", default="0.5", show_default=True, help="Error bounds, such as 0.5 or 1%, separated by commas."
)
@click.option("--confidence", default="95%,90%,85%", show_default=True, help="Confidences, separated by commas.")
@click.option("--aggregate", type=click.Choice(["avg", "sum", "max", "min"]), default="avg", show_default=True)
@click.option("--window", help="The window of max and min: 30min or 30ticks.")
@click.option("--interrupt", help="Silence random streams again and again: 2@10min silences two for ten minutes.")
@click.option("--method", type=click.Choice(deferral_method_names()), default=DEFAULT_METHOD, show_default=True)
@click.option("--value-and-drift", is_flag=True, help="Move answers by their drift between evaluations.")
@click.option(
    "--k",
    type=int,
    default=DEFAULT_K,
    show_default=True,
    help="Rows per stream that its drift and diffusion are estimated from.",
)
@click.option("--ticks", type=click.IntRange(2), help="Use only the first ticks.")
@click.option("--seed", default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON on standard output.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.png",
    help="Write a plot of fidelity and evaluations by bound to this file.",
)
def command(
    values: Path,
    stream: str,
    time_: str,
    value: str,
    weights: Path | None,
    average_of: int,
    queries: int,
    within: str,
    confidence: str,
    aggregate: str,
    window: str | None,
    interrupt: str | None,
    method: str,
    value_and_drift: bool,
    k: int,
    ticks: int | None,
    seed: int,
    as_json: bool,
    plot: Path | None,
) -> int:
    """Replay recorded VALUES through deferred standing queries and compare every answer with the truth.

    The exit code is 1 if answers were within a bound for less of the time than its confidence promises.

    \b
    Examples:
      slackwater lab standing prices.parquet --key symbol --event-time ts --value close --within 0.5
      slackwater lab standing air.parquet --key station --event-time ts --value temp --within 2,5 \\
          --aggregate max --window 30ticks --confidence 90%
      slackwater lab standing prices.parquet --key symbol --event-time ts --value close --interrupt 2@10min
    """
    require_plot_file(plot)
    promises = [Precision.of(bound, level) for bound in within.split(",") for level in confidence.split(",")]
    rows = read_columns(values, [stream, time_, value])
    table = common_part(tick_table(rows, stream, time_, value))
    if ticks is not None:
        table = table.head(ticks)
    matrix = _matrix(table, weights, average_of, queries, aggregate, seed)
    options = EvaluatorOptions(
        aggregate=aggregate if aggregate in ("max", "min") else "linear",  # type: ignore[arg-type]
        window=_window(window, aggregate, table),
        method=method,
        k=k,
        value_and_drift=value_and_drift,
    )
    size = matrix.shape[0]
    every = QuerySet.of(
        np.arange(size * len(promises)),
        np.tile(matrix, (len(promises), 1)),
        np.repeat([promise.bound for promise in promises], size),
        np.repeat([promise.confidence for promise in promises], size),
        np.repeat([promise.relative for promise in promises], size),
    )
    console = Console(stderr=as_json)
    run, fewest = _replay(table, every, options, interrupt, seed, console)
    entries = [
        _entry(run, fewest, slice(at * size, (at + 1) * size), promise, aggregate, method, table)
        for at, promise in enumerate(promises)
    ]
    interruption = _interruption_entry(run) if interrupt is not None else None
    if plot is not None:
        _plot(entries, plot)
    if as_json:
        result = [{**entry, "interruption": interruption} if interruption else entry for entry in entries]
        click.echo(json.dumps(result, indent=2))
    else:
        _print(console, entries, interruption, run.normal_ratio, table)
    return 0 if all(entry["kept"] for entry in entries) else 1


def _replay(
    table: TickTable, queries: QuerySet, options: EvaluatorOptions, interrupt: str | None, seed: int, console: Console
) -> tuple[standing.StandingRun, np.ndarray[Any, np.dtype[np.int64]]]:
    """The run and the offline minimum of each query, with a progress bar."""
    replayed = table
    if interrupt is not None:
        count, lasting_ms = _interruption(interrupt)
        replayed = standing.hide(table, count, lasting_ms, seed)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with (
        working("the true answers", spinner=False) as work,
        Progress(*columns, console=console, transient=True) as progress,
    ):

        def report(done: float) -> None:
            progress.update(task, completed=done)
            work.say(f"{100 * done:.0f}% of the ticks")

        task = progress.add_task("ticks", total=1.0)
        truth = standing.true_answers(table, queries, options)
        run = standing.run_standing(
            replayed,
            queries,
            options,
            truth=truth,
            full=table if interrupt else None,
            seed=seed,
            report=report,
        )
        work.say("offline optimum")
        progress.update(task, description="offline optimum")
        return run, standing.optimal_evaluations(truth, queries)


def _matrix(
    table: TickTable, weights: Path | None, average_of: int, queries: int, aggregate: str, seed: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    if weights is None:
        averages = standing.average_queries(len(table.names), average_of, queries, seed)
        return averages * average_of if aggregate == "sum" else averages
    rows = pd.read_parquet(weights)
    missing = {"query", "stream", "weight"} - set(rows.columns)
    if missing:
        raise InvalidData(
            "no-such-column",
            f"{weights} has no column {', '.join(sorted(missing))}",
            "write the columns query, stream, weight",
        )
    if rows.empty:
        raise InvalidData("no-queries", f"{weights} is empty", "write at least one query")
    known = rows[rows["stream"].astype(str).isin(table.names)]
    # A query over a stream without values has no answer to compare with.
    complete = rows.groupby("query").size() == known.groupby("query").size().reindex(rows["query"].unique()).fillna(0)
    known = known[known["query"].isin(complete.index[complete])]
    if known.empty:
        raise InvalidData(
            "no-queries",
            f"no query of {weights} has all its streams among the values",
            "check the stream names",
        )
    wide = known.assign(stream=known["stream"].astype(str)).pivot_table(
        index="query", columns="stream", values="weight", aggfunc="sum", fill_value=0.0
    )
    return wide.reindex(columns=table.names, fill_value=0.0).to_numpy(dtype=np.float64)


def _window(window: str | None, aggregate: str, table: TickTable) -> float | None:
    if aggregate not in ("max", "min"):
        if window is not None:
            raise InvalidOption(
                "window-without-extreme", f"--window {window} has no effect on {aggregate}", "use max or min"
            )
        return None
    if window is None:
        raise InvalidOption("no-window", f"{aggregate} needs a window", "add --window 30min or --window 30ticks")
    count = window.strip().removesuffix("s").removesuffix("tick").strip()
    if count != window.strip() and count.isdigit() and int(count) > 0:
        return int(count) * table.period_ms
    return units.duration_ms(window, option="window")


def _interruption(text: str) -> tuple[int, float]:
    count, at, lasting = text.partition("@")
    if not at or not count.strip().isdigit():
        raise InvalidOption(
            "invalid-interruption",
            f"--interrupt {text} is not a number and a duration",
            "write 2@10min to silence two streams for ten minutes",
        )
    return int(count), units.duration_ms(lasting, option="interrupt")


def _entry(
    run: standing.StandingRun,
    fewest: np.ndarray[Any, np.dtype[np.int64]],
    mine: slice,
    promise: Precision,
    aggregate: str,
    method: str,
    table: TickTable,
) -> dict[str, Any]:
    fidelity = float(np.nanmean(run.fidelity[mine]))
    evaluations = int(run.evaluations[mine].sum())
    naive = int(run.naive_evaluations[mine].sum())
    return {
        "aggregate": aggregate,
        "within": units.percent(promise.bound) if promise.relative else promise.bound,
        "confidence": promise.confidence,
        "fidelity": fidelity,
        "hit_rate": float(np.nanmean(run.hit_rate[mine])),
        "evaluations": evaluations,
        "naive_evaluations": naive,
        "optimal_evaluations": int(fewest[mine].sum()),
        "queries": len(run.fidelity[mine]),
        "ticks": table.ticks,
        "deferral_ticks": naive / evaluations if evaluations else None,
        "method": method,
        "kept": bool(fidelity >= promise.confidence),
        "worst_query_fidelity": float(np.nanmin(run.fidelity[mine])),
        "normality": {
            name: None if np.isnan(p) else round(float(p), 4)
            for name, p in zip(table.names, run.normality, strict=True)
        },
    }


def _interruption_entry(run: standing.StandingRun) -> dict[str, Any]:
    error = np.array([answer.error for answer in run.interrupted_answers])
    error_bound = np.array([answer.error_bound for answer in run.interrupted_answers])
    if len(error) == 0:
        return {"answers": 0, "mean_error": None, "mean_error_bound": None, "inside_ratio": None}
    return {
        "answers": len(error),
        "mean_error": float(error.mean()),
        "mean_error_bound": float(error_bound.mean()),
        "inside_ratio": float(np.mean(error <= error_bound)),
    }


def _print(
    console: Console,
    entries: list[dict[str, Any]],
    interruption: dict[str, Any] | None,
    normal_ratio: float,
    table: TickTable,
) -> None:
    title = f"{len(table.names)} streams, {table.ticks} ticks, {entries[0]['queries']} queries"
    shown = Table(title=title)
    for column in ("aggregate", "within", "confidence", "fidelity", "hit rate", "evaluations", "naive", "optimal"):
        shown.add_column(column, justify="left" if column == "aggregate" else "right")
    for entry in entries:
        shown.add_row(
            entry["aggregate"],
            str(entry["within"]),
            units.percent(entry["confidence"]),
            f"{100 * entry['fidelity']:.2f}%" + ("" if entry["kept"] else " broken"),
            f"{100 * entry['hit_rate']:.2f}%",
            f"{entry['evaluations']:,}",
            f"{entry['naive_evaluations']:,}",
            f"{entry['optimal_evaluations']:,}",
        )
    console.print(shown)
    console.print(f"streams with non-normal increments (Shapiro–Wilk at 5%): {100 * (1 - normal_ratio):.0f}%")
    if interruption is not None and interruption["answers"]:
        console.print(
            f"while interrupted: {interruption['answers']:,} answers, mean error {interruption['mean_error']:.4g}, "
            f"mean error bound {interruption['mean_error_bound']:.4g}, "
            f"within it {100 * interruption['inside_ratio']:.1f}%"
        )


def _plot(entries: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for confidence in sorted({entry["confidence"] for entry in entries}):
        mine = [entry for entry in entries if entry["confidence"] == confidence]
        labels = [str(entry["within"]) for entry in mine]
        left.plot(labels, [entry["fidelity"] for entry in mine], "o-", label=units.percent(confidence))
        left.axhline(confidence, color="grey", linewidth=0.5)
        right.plot(labels, [entry["evaluations"] for entry in mine], "o-", label=units.percent(confidence))
    labels = list(dict.fromkeys(str(entry["within"]) for entry in entries))
    first = {str(entry["within"]): entry for entry in reversed(entries)}
    right.plot(labels, [first[label]["naive_evaluations"] for label in labels], "k--", label="naive")
    right.plot(labels, [first[label]["optimal_evaluations"] for label in labels], "k:", label="optimal")
    left.set(xlabel="within", ylabel="fidelity")
    right.set(xlabel="within", ylabel="evaluations", yscale="log")
    right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
