"""Writes filing.txt, always the same: a long annual filing of a company that does not exist (400 kB)."""

import pathlib

state = 7
segments = ["Pumps", "Valves", "Sensors", "Service"]
years = [2023, 2024, 2025]
risks = ["one customer's orders", "the price of copper", "a recall", "tariffs", "a strike", "currency", "attacks on computers"]
words = "the company group board market region customer supplier plant contract period result demand order cost".split()
lines = ["NORDVALE FLOW SYSTEMS PLC", "Annual filing for the year 2025", ""]


def pick(n):
    global state
    state = (state * 1103515245 + 12345) % 2**31
    return (state >> 16) % n


def prose(paragraphs):
    for _ in range(paragraphs):
        text = " ".join(words[pick(len(words))] for _ in range(80))
        lines.extend([text.capitalize() + ".", ""])


for number, segment in enumerate(segments, 1):
    lines.append(f"Item {number}. Segment {segment}")
    prose(150)
    for year in years:
        revenue = 100 + 10 * number + (year - 2023) * (8 + pick(20))
        lines.append(f"In {year}, revenue of {segment} was EUR {revenue} million, operating profit EUR {revenue // 7} million.")
    lines.append("")
for number, risk in enumerate(risks, 1):
    lines.append(f"Item 9.{number}. Risk: {risk}")
    prose(25)
    lines.extend([f"The board puts the possible loss from {risk} at EUR {10 + pick(90)} million.", ""])
(pathlib.Path(__file__).parent / "filing.txt").write_text("\n".join(lines))
