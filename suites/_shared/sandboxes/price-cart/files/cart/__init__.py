"""Turns orders into invoices."""

from cart.invoices import invoice
from cart.money import line_amount, line_tax

__all__ = ["invoice", "line_amount", "line_tax"]
