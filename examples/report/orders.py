#!/usr/bin/env python3
"""Write orders.csv: 60,000 orders of an invented shop, about 5 MB.

The same seed gives the same file, so that the report can be checked. Like real
exports it has quoted commas, accents, empty cells, refunds and a few rows that
are broken.
"""

import csv
import datetime
import os
import random

COUNTRIES = [("DE", 30), ("FR", 22), ("NL", 14), ("ES", 12), ("IT", 11), ("AT", 6), ("PT", 5)]
PRODUCTS = [
    ("KB-104", "Keyboard, compact", 5990),
    ("KB-210", "Keyboard, split", 18900),
    ("MS-021", "Mouse, wireless", 2490),
    ("MN-270", 'Monitor 27", matt', 28900),
    ("MN-320", 'Monitor 32", curved', 44900),
    ("CB-002", "Câble USB-C, 2 m", 1290),
    ("DK-009", "Dock, 9 ports", 15900),
    ("HS-330", "Headset, noise-cancelling", 12900),
]
NAMES = ["Müller", "Dubois", "de Vries", "García", "Rossi", "Huber", "Almeida", "O'Neill", "Nowak", "Jensen"]
ROWS = 60_000


def main() -> None:
    rng = random.Random(20261)
    here = os.path.dirname(os.path.abspath(__file__))
    start = datetime.datetime(2026, 1, 1)
    codes = [c for c, _ in COUNTRIES]
    weights = [w for _, w in COUNTRIES]
    with open(os.path.join(here, "orders.csv"), "w", newline="", encoding="utf-8") as out:
        w = csv.writer(out)
        w.writerow(["order_id", "time", "country", "customer", "sku", "product", "quantity", "unit_price", "currency"])
        for i in range(ROWS):
            sku, product, cents = rng.choice(PRODUCTS)
            when = start + datetime.timedelta(minutes=i * 8 + rng.randrange(8))
            quantity = -1 if rng.random() < 0.03 else rng.choice([1, 1, 1, 2, 2, 3, 5])
            price = f"{cents * rng.choice([100, 100, 100, 90, 80]) // 100 / 100:.2f}"
            if rng.random() < 0.0005:
                price = "n/a"
            w.writerow([
                f"PO-{100000 + i}", when.isoformat(timespec="minutes"), rng.choices(codes, weights)[0],
                f"{rng.choice(NAMES)}, {rng.choice('ABCDEFGHIJKLM')}.", sku, product, quantity, price, "EUR",
            ])
    print(f"orders.csv: {ROWS} orders")


if __name__ == "__main__":
    main()
