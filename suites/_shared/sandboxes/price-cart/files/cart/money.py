"""Amounts of single lines; the rules are in PRICING.md."""


def line_amount(price: str, quantity: int, discount: str = "0") -> str:
    """Return what a line costs before tax, as text with two decimals.

    The quantity of a refund is negative; the discount is in per cent.
    """
    amount = float(price) * quantity
    amount -= amount * float(discount) / 100
    return f"{round(amount, 2):.2f}"


def line_tax(amount: str, rate: str) -> str:
    """Return the tax on a line's amount at a rate in per cent, as text with two decimals."""
    return f"{round(float(amount) * float(rate) / 100, 2):.2f}"
