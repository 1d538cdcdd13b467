"""Shares, intervals, paired differences, and the two reports."""

import pytest

from chathands.errors import ConfigError
from chathands.evals import baseline as baselines
from chathands.evals import html_page, markdown, summarise
from chathands.evals.metrics import Difference, Share
from chathands.evals.suite import sample
from tests.evals.samples import call, case, result

CALLING = {"id": "a", "expect": [{"tool": "lookup", "arguments": {"key": "a"}}]}


def test_the_interval_is_wilsons():
    low, high = Share(9, 10).interval
    assert (round(low, 3), round(high, 3)) == (0.596, 0.982)
    assert Share(0, 0).interval == (0.0, 1.0)


def test_a_difference_that_could_be_chance_has_zero_in_its_interval():
    low, high = Difference(better=6, worse=4, total=40).interval
    assert low < 0 < high
    low, high = Difference(better=16, worse=2, total=60).interval
    assert 0 < low < 14 / 60 < high


def test_right_and_kept_are_counted_apart():
    right = result(case(**CALLING), call(key="a"))
    called = result(case(id="b", category="no_tool"), call(key="x"))
    (report,) = summarise([right, called]).variants
    assert report.all["right"] == Share(1, 1)
    assert report.all["kept"] == Share(0, 1)
    assert report.all["tool choice"] == Share(1, 2)
    assert [name for name, _ in report.rows] == ["no_tool", "single", "all"]
    assert report.cost.cached == 0.4


def test_variants_are_compared_on_the_cases_that_both_have():
    ours = [result(case(**CALLING | {"id": f"c{n}"}), call(key="a")) for n in range(5)]
    theirs = [
        result(case(**CALLING | {"id": f"c{n}"}), call(key="z"), variant="naive") for n in range(4)
    ]
    report = summarise([*ours, *theirs])
    layers = {layer: difference for _, _, layer, difference in report.differences}
    assert layers["right"] == Difference(better=4, worse=0, total=4)
    assert layers["kept"].total == 0


def test_reports_hold_tables_and_every_failure_with_what_was_said():
    bad = result(case(**CALLING), call(key="<b>z</b>"))
    report = summarise([bad, result(case(**CALLING), call(key="a"), variant="naive")])
    text, page = markdown(report), html_page(report)
    assert "| single |" in text
    assert "Paired differences" in text
    assert "raw <reply>" in text
    assert "<svg" in page
    assert "&lt;b&gt;z&lt;/b&gt;" in page
    assert "<b>z</b>" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_nothing_to_summarise_is_an_error():
    with pytest.raises(ValueError, match="no results"):
        summarise([])


def test_a_baseline_names_what_fell(tmp_path):
    path = tmp_path / "baseline.json"
    good = [result(case(**CALLING | {"id": str(n)}), call(key="a")) for n in range(20)]
    baselines.save(summarise(good), path)
    assert baselines.fallen(summarise(good), path) == []
    worse = [result(case(**CALLING | {"id": str(n)}), call(key="b")) for n in range(20)]
    fallen = baselines.fallen(summarise(worse), path)
    assert any(line.startswith("emulated arguments: 0/20") for line in fallen)
    path.write_text("[]", "utf-8")
    with pytest.raises(ConfigError, match="not a baseline"):
        baselines.fallen(summarise(good), path)


def test_floors_are_compared_with_the_lower_bound():
    report = summarise([result(case(**CALLING), call(key="a")) for _ in range(10)])
    assert baselines.under_floor(report, baselines.floors(["right=70%"])) == []
    (line,) = baselines.under_floor(report, baselines.floors(["right=0.9"]))
    assert "right: 10/10" in line
    for bad in ("right", "right=2", "wrong=0.5", "right=x"):
        with pytest.raises(ConfigError, match="bad floor"):
            baselines.floors([bad])


def test_a_sample_takes_evenly_from_every_category_and_is_always_the_same():
    cases = [case(id=f"{kind}{n}", category=kind) for kind in "ab" for n in range(50)]
    cases += [case(id=f"c{n}", category="c") for n in range(3)]
    chosen = sample(cases, 23)
    counts = {kind: sum(c.category == kind for c in chosen) for kind in "abc"}
    assert counts == {"a": 10, "b": 10, "c": 3}
    assert sample(cases, 23) == chosen
    assert sample(cases, None) == cases
