"""Invoices: the lines of an order with their amounts, and the totals."""

from typing import Any

from cart.money import line_amount, line_tax


def _line(item: dict[str, Any]) -> dict[str, Any]:
    amount = line_amount(item["price"], item["quantity"], item.get("discount", "0"))
    return {"article": item["article"], "amount": amount, "tax": line_tax(amount, item["tax_rate"])}


def invoice(order: dict[str, Any]) -> dict[str, Any]:
    """Return the invoice of an order: number, lines, net, tax and total."""
    lines = [_line(item) for item in order["items"]]
    net = sum(float(line["amount"]) for line in lines)
    tax = sum(float(line["tax"]) for line in lines)
    return {
        "number": order["number"],
        "lines": lines,
        "net": f"{net:.2f}",
        "tax": f"{tax:.2f}",
        "total": f"{net + tax:.2f}",
    }
