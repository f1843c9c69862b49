from cart import invoice, line_amount, line_tax


def test_a_plain_line() -> None:
    assert line_amount("4.50", 3) == "13.50"
    assert line_tax("10.00", "7") == "0.70"


def test_a_discount_in_per_cent() -> None:
    assert line_amount("34.90", 1, "12.5") == "30.54"


def test_the_totals_are_sums_of_the_lines() -> None:
    order = {
        "number": 7,
        "items": [
            {"article": "bucket", "price": "9.99", "quantity": 2, "tax_rate": "19"},
            {"article": "spade", "price": "24.00", "quantity": 1, "tax_rate": "19"},
        ],
    }
    assert invoice(order)["net"] == "43.98"
    assert invoice(order)["tax"] == "8.36"
    assert invoice(order)["total"] == "52.34"
