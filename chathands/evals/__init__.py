"""Cases kept as data, run through the same `Turn` as everything else; four layers of figures."""

from chathands.evals.case import Case as Case
from chathands.evals.case import load_cases as load_cases
from chathands.evals.metrics import Report as Report
from chathands.evals.metrics import summarise as summarise
from chathands.evals.runner import CaseResult as CaseResult
from chathands.evals.runner import run_case as run_case

__all__ = ["Case", "CaseResult", "Report", "load_cases", "run_case", "summarise"]
