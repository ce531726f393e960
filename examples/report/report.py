#!/usr/bin/env python3
"""Read orders.csv and write report.md beside it: what an agent does all day."""

import collections
import csv
import decimal
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def main() -> int:
    by_month = collections.defaultdict(decimal.Decimal)
    by_country = collections.defaultdict(decimal.Decimal)
    by_product = collections.defaultdict(decimal.Decimal)
    rows = refunds = broken = 0

    with open(os.path.join(HERE, "orders.csv"), newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            rows += 1
            if rows % 20_000 == 0:
                print(f"read {rows} orders", flush=True)
            try:
                total = int(row["quantity"]) * decimal.Decimal(row["unit_price"])
            except (ValueError, decimal.InvalidOperation):
                broken += 1
                continue
            refunds += total < 0
            by_month[row["time"][:7]] += total
            by_country[row["country"]] += total
            by_product[row["product"]] += total

    with open(os.path.join(HERE, "report.md"), "w", encoding="utf-8") as out:
        print("# Orders of 2026\n", file=out)
        print(f"{rows} orders, {refunds} refunds, {broken} rows without a usable price.\n", file=out)
        for title, table in (("Month", by_month), ("Country", by_country), ("Product", by_product)):
            print(f"| {title} | Revenue (EUR) |\n| --- | ---: |", file=out)
            order = sorted(table) if title == "Month" else sorted(table, key=table.get, reverse=True)
            for key in order:
                print(f"| {key} | {table[key]:,.2f} |", file=out)
            print(file=out)
    print(f"wrote report.md: {rows} orders, {broken} broken rows, {sum(by_month.values()):,.2f} EUR")
    return 0


if __name__ == "__main__":
    sys.exit(main())
