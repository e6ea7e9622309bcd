"""Reports: runs compared on the terminal and as a self-contained page."""

from fedsbc.report.page import write_report
from fedsbc.report.terminal import table

__all__ = ["table", "write_report"]
