"""What past runs teach: the step cap, results that flood the window, repeats, cache breaks, failures, workflows.

A journal is read run by run. Of each only counts are kept (`Advisor.take`), so ten thousand runs take no more memory
than their tools and paths. `docs/advise.md` says how each number is made and how many runs it needs.
"""

from tenlines.advise.advisor import Advice, Advisor, GroupAdvice
from tenlines.advise.facts import BY, By, Run, read_run
from tenlines.advise.findings import Finding

__all__ = ["BY", "Advice", "Advisor", "By", "Finding", "GroupAdvice", "Run", "read_run"]
