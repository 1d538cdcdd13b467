"""Cases kept as data, run through the same `Turn` as everything else; four layers of figures."""

from chathands.evals.case import Case as Case
from chathands.evals.case import load_cases as load_cases
from chathands.evals.case import shipped_cases as shipped_cases
from chathands.evals.metrics import Report as Report
from chathands.evals.metrics import summarise as summarise
from chathands.evals.public import READERS as READERS
from chathands.evals.report import html_page as html_page
from chathands.evals.report import markdown as markdown
from chathands.evals.runner import CaseResult as CaseResult
from chathands.evals.runner import run_case as run_case
from chathands.evals.suite import run_suite as run_suite

__all__ = [
    *("READERS", "Case", "CaseResult", "Report", "html_page", "load_cases", "markdown"),
    *("run_case", "run_suite", "shipped_cases", "summarise"),
]
