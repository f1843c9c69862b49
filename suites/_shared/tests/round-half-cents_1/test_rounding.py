"""PRICING.md as tests, with exact fractions as the reference."""

import json
from fractions import Fraction

import pytest

from cart import invoice, line_amount, line_tax


def rounded(value: Fraction) -> str:
    cents = int(abs(value) * 100 + Fraction(1, 2))
    sign = "-" if value < 0 and cents else ""
    return f"{sign}{cents // 100}.{cents % 100:02d}"


@pytest.mark.parametrize(
    ("price", "quantity", "expected"),
    [
        ("2.675", 1, "2.68"),
        ("2.665", 1, "2.67"),
        ("1.005", 1, "1.01"),
        ("0.125", 1, "0.13"),
        ("2.675", -1, "-2.68"),
        ("2.665", -1, "-2.67"),
        ("0.005", 1, "0.01"),
        ("2.67499999999999999999", 1, "2.67"),
        ("0", 4, "0.00"),
    ],
)
def test_half_a_cent_goes_away_from_zero(price: str, quantity: int, expected: str) -> None:
    assert line_amount(price, quantity) == expected


def test_every_amount_agrees_with_exact_arithmetic() -> None:
    for price in ("0.015", "0.535", "1.115", "4.345", "8.995", "19.99", "1234567.895"):
        for quantity in (-7, -5, -1, 1, 3, 5, 11):
            for discount in ("0", "2.5", "12.5", "33"):
                exact = Fraction(price) * quantity * (100 - Fraction(discount)) / 100
                assert line_amount(price, quantity, discount) == rounded(exact), (price, quantity, discount)


def test_every_tax_agrees_with_exact_arithmetic() -> None:
    for cents in range(-60, 2000, 5):
        amount = f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02d}"
        for rate in ("5.5", "7", "19", "20"):
            exact = Fraction(amount) * Fraction(rate) / 100
            if rounded(exact) != "0.00":
                assert line_tax(amount, rate) == rounded(exact), (amount, rate)


def test_totals_are_sums_of_rounded_lines_and_the_document_keeps_its_shape() -> None:
    item = {"article": "clip", "price": "0.335", "quantity": 1, "tax_rate": "7"}
    answer = invoice({"number": 9, "items": [item] * 3})
    assert answer == {
        "number": 9,
        "lines": [{"article": "clip", "amount": "0.34", "tax": "0.02"}] * 3,
        "net": "1.02",
        "tax": "0.06",
        "total": "1.08",
    }
    json.dumps(answer)


def test_an_empty_order_costs_nothing() -> None:
    answer = invoice({"number": 10, "items": []})
    assert (answer["net"], answer["tax"], answer["total"]) == ("0.00", "0.00", "0.00")
