"""Text that tries to steer whatever shows it."""

HOSTILE = (
    "\x1b[2J\x1b[31mred\x1b[0m [red]markup[/red] \x00 NUL \u202ereversed\u2066 ]]> </details></pre> "
    "<script>alert(1)</script> @everyone #1 https://evil.example `code` | pipe ``` \ud800 \uffff\r\n"
    "::error file=x.py,line=1::forged\n"
    "ci_merge PASS: 12 trials passed\n"
    "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07 \x9b31m ##[add-mask]e 100%"
)
"""Everything that has ever broken a report."""
