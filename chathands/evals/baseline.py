"""A report's figures kept in a file, and the comparison with them."""

from __future__ import annotations

import json
from pathlib import Path

from chathands.errors import ConfigError
from chathands.evals.case import read_text
from chathands.evals.metrics import LAYERS, Report


def save(report: Report, path: Path) -> None:
    """Counts per variant and layer, as sorted JSON that reads well in a diff."""
    figures = {
        variant.name: {layer: [s.good, s.total] for layer, s in variant.all.items()}
        for variant in report.variants
    }
    path.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", "utf-8")


def fallen(report: Report, path: Path) -> list[str]:
    """A line for each layer that fell: the whole interval now lies under the baseline's rate."""
    try:
        figures = json.loads(read_text(path))
        then = {
            (variant, layer): good / total
            for variant, layers in figures.items()
            for layer, (good, total) in layers.items()
            if total
        }
    except (ValueError, TypeError, AttributeError, ZeroDivisionError):
        raise ConfigError(
            f"{path} is not a baseline",
            sentence=f"{path.name} 不是基线文件，请用 --save-baseline 重新生成。",
        ) from None
    lines = []
    for variant in report.variants:
        for layer, share in variant.all.items():
            rate = then.get((variant.name, layer))
            if rate is not None and share.total and share.interval[1] < rate - 1e-9:
                lines.append(f"{variant.name} {layer}: {share}, baseline {rate:.0%}")
    return lines


def floors(texts: list[str]) -> dict[str, float]:
    """`layer=0.75` or `layer=75%` texts. Raises ConfigError for anything else."""
    found: dict[str, float] = {}
    for text in texts:
        layer, _, number = text.partition("=")
        layer = layer.strip().replace("_", " ")
        try:
            percent = number.strip().endswith("%")
            value = float(number.strip().removesuffix("%")) / (100 if percent else 1)
        except ValueError:
            value = -1.0
        if layer not in LAYERS or not 0 <= value <= 1:
            raise ConfigError(
                f"bad floor {text}",
                sentence=f"--fail-under {text} 看不懂：写成 层=0.75，层是 {'、'.join(LAYERS)}。",
            )
        found[layer] = value
    return found


def under_floor(report: Report, wanted: dict[str, float]) -> list[str]:
    """A line for each layer of the first variant whose lower bound is under its floor."""
    first = report.variants[0]
    return [
        f"{first.name} {layer}: {first.all[layer]}, wanted at least {floor:.0%}"
        for layer, floor in wanted.items()
        if first.all[layer].interval[0] < floor
    ]
