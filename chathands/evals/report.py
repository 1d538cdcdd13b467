"""A report as Markdown and as one HTML file that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from chathands.conversation import Message, canonical_json
from chathands.evals.metrics import LAYERS, Report, Share, VariantReport
from chathands.evals.runner import CaseResult

PLOTTED = ("format", "tool choice", "arguments", "completion", "right", "kept")


def failures(report: Report) -> list[CaseResult]:
    return [result for result in report.results if not result.verdict.completed]


def markdown(report: Report, *, transcripts: bool = True) -> str:
    """Tables per variant, paired differences, cost, and every failure with its transcript."""
    parts = ["# Evaluation", _summary(report)]
    for variant in report.variants:
        parts.append(f"## {variant.name}")
        parts.append(_table(["category", *LAYERS], _rows(variant.rows)))
        if len(report.variants) == 1 or variant is report.variants[0]:
            parts.append(_table(["half", *LAYERS], _rows(variant.halves)))
        parts.append(str(variant.cost))
    if report.differences:
        rows = [[ours, other, layer, str(d)] for ours, other, layer, d in report.differences]
        parts.append("## Paired differences")
        parts.append(_table(["variant", "against", "layer", "difference (95 %)"], rows))
    if transcripts and (bad := failures(report)):
        parts.append("## Failures")
        parts += [_failure(result) for result in bad]
    return "\n\n".join(parts) + "\n"


def _summary(report: Report) -> str:
    rows = [
        [
            v.name,
            *(str(v.all[layer]) for layer in ("right", "kept", "completion")),
            f"{v.call_seconds:.1f}",
        ]
        for v in report.variants
    ]
    return _table(["variant", "right", "kept", "completion", "seconds (call cases)"], rows)


def _rows(rows: Iterable[tuple[str, dict[str, Share]]]) -> list[list[str]]:
    return [[name, *(str(share) for share in shares.values())] for name, shares in rows]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _failure(result: CaseResult) -> str:
    lines = [f"### {result.case.id} ({result.variant}, {result.case.category})"]
    lines += [f"- {why}" for why in result.verdict.why]
    for role, text in transcript(result):
        lines += ["", f"**{role}**", "", *(f"    {line}" for line in text.split("\n"))]
    return "\n".join(lines)


def transcript(result: CaseResult) -> list[tuple[str, str]]:
    """(role, text) of everything that was said; the raw replies stand beside what was read."""
    said = [(_role(message), _text(message)) for message in result.transcript]
    said += [
        (f"raw reply {n} → {exchange.outcome}", exchange.reply or "(empty)")
        for n, exchange in enumerate(result.exchanges, 1)
    ]
    return said


def _role(message: Message) -> str:
    tag = "" if message.tag == "plain" else f" ({message.tag})"
    return f"{message.role}{tag}"


def _text(message: Message) -> str:
    calls = [f"{call.name} {canonical_json(dict(call.arguments))}" for call in message.calls]
    head = [f"[{message.result.name}: {message.result.status}]"] if message.result else []
    given = [message.head] if message.head else []
    return "\n".join(part for part in [*given, *head, message.text, *calls] if part)


# --- HTML

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;
color:#1d2733}
table{border-collapse:collapse;margin:1rem 0;font-size:13px}
th,td{border:1px solid #d4dae1;padding:.3rem .5rem;text-align:left;white-space:nowrap}
th{background:#f1f4f7}tr:last-child td{font-weight:600}
pre{background:#f6f8fa;padding:.6rem;white-space:pre-wrap;overflow-wrap:anywhere;
margin:.2rem 0 .6rem}
summary{cursor:pointer}.why{color:#a32020}h2{margin-top:2.5rem}
svg text{font:12px system-ui,sans-serif;fill:#1d2733}
"""
_COLOURS = ("#2f6db3", "#c9703a", "#4d9960", "#8a5fb0", "#b04a5a", "#6b7a88", "#b59a2f", "#3a9aa0")


def html_page(report: Report) -> str:
    """The whole report; plots are inline SVG, failures fold out with their transcripts."""
    body = ["<h1>Evaluation</h1>", _html_summary(report), _plot(report)]
    for variant in report.variants:
        body.append(f"<h2>{_e(variant.name)}</h2>")
        body.append(_html_table(["category", *LAYERS], _rows(variant.rows)))
        body.append(_html_table(["half", *LAYERS], _rows(variant.halves)))
        body.append(f"<p>{_e(str(variant.cost))}</p>")
    if report.differences:
        rows = [[ours, other, layer, str(d)] for ours, other, layer, d in report.differences]
        body.append("<h2>Paired differences</h2>")
        body.append(_html_table(["variant", "against", "layer", "difference (95 %)"], rows))
    bad = failures(report)
    body.append(f"<h2>Failures ({len(bad)})</h2>")
    body += [_html_failure(result) for result in bad]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Evaluation</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _e(text: str) -> str:
    return html.escape(text, quote=True)


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{_e(cell)}</th>" for cell in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{_e(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"


def _html_summary(report: Report) -> str:
    layers = ("right", "kept", "completion")
    rows = [
        [v.name, *(str(v.all[layer]) for layer in layers), f"{v.call_seconds:.1f}", str(v.cost)]
        for v in report.variants
    ]
    return _html_table(["variant", *layers, "seconds (call cases)", "cost"], rows)


def _plot(report: Report) -> str:
    """Bars per layer and variant, 0 to 100 %, each with its interval."""
    bar, gap, left, width = 16, 18, 150, 520
    rows: list[str] = []
    y = 10
    for layer in PLOTTED:
        shares = [(v, v.all[layer]) for v in report.variants if v.all[layer].total]
        if not shares:
            continue
        middle = y + len(shares) * bar / 2 + 4
        rows.append(f'<text x="{left - 10}" y="{middle:.0f}" text-anchor="end">{_e(layer)}</text>')
        for variant, share in shares:
            rows.append(_bar(share, left, y, width, bar, _colour(report, variant)))
            y += bar
        y += gap
    for at in range(0, 101, 25):
        x = left + width * at / 100
        rows.append(f'<line x1="{x}" x2="{x}" y1="0" y2="{y - 8}" stroke="#e2e7ec"/>')
        rows.append(f'<text x="{x}" y="{y + 6}" text-anchor="middle">{at} %</text>')
    legend = ""
    for number, variant in enumerate(report.variants):
        x = left + number * 150
        legend += (
            f'<rect x="{x}" y="{y + 18}" width="12" height="12" fill="{_colour(report, variant)}"/>'
            f'<text x="{x + 18}" y="{y + 28}">{_e(variant.name)}</text>'
        )
    total = max(left + width + 40, left + 150 * len(report.variants))
    return f'<svg width="{total}" height="{y + 40}" role="img">{"".join(rows)}{legend}</svg>'


def _colour(report: Report, variant: VariantReport) -> str:
    return _COLOURS[report.variants.index(variant) % len(_COLOURS)]


def _bar(share: Share, left: int, y: int, width: int, height: int, colour: str) -> str:
    low, high = (left + width * edge for edge in share.interval)
    middle = y + height / 2
    return (
        f'<rect x="{left}" y="{y + 2}" width="{width * share.rate:.1f}" height="{height - 4}" '
        f'fill="{colour}"><title>{_e(str(share))}</title></rect>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}" '
        'stroke="#1d2733" stroke-width="1.5"/>'
    )


def _html_failure(result: CaseResult) -> str:
    why = "".join(f'<p class="why">{_e(line)}</p>' for line in result.verdict.why)
    said = "".join(f"<b>{_e(role)}</b><pre>{_e(text)}</pre>" for role, text in transcript(result))
    title = f"{result.case.id} · {result.variant} · {result.case.category}"
    return f"<details><summary>{_e(title)}</summary>{why}{said}</details>"
