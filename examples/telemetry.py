"""Browser telemetry in the local model: which home page, how long to start, and nobody's answer is known.

The browsers are made up, from a hash, so that everybody sees the same ones; only therefore may the truth
be printed beside the estimates. The noise is real: it differs from run to run.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np

from partita import BudgetExceeded, InvalidParameter
from partita.local import Device, Frequency, Mean

BROWSERS = 200_000
PAGES = 1024
PARTS = 4


def main() -> None:
    """A server asks, one browser answers with care, two hundred thousand answer, and the server estimates."""
    pages = Frequency(PAGES, epsilon=1)
    seconds = Mean(0, 10, epsilon=1)
    print(f"Two questions to {BROWSERS:,} browsers, about {PAGES:,} home pages and about seconds to start.")
    print(f"Each report: {pages.guarantee}.")
    one_browser(pages)
    show_pages(pages)
    show_seconds(seconds)


def one_browser(pages: Frequency) -> None:
    """What a single browser does, and what it refuses."""
    print("\nOne browser, with a budget of 2 for life")
    sent = pages.to_json()
    with tempfile.TemporaryDirectory(prefix="partita-telemetry-") as folder:
        device = Device(Path(folder) / "device.json", budget=2)
        question = device.verify(json.dumps(sent))
        first = device.answer(question, 42, name="week 1")
        again = device.answer(question, 43, name="week 1")
        print(f"  verified epsilon {question.epsilon}; sends {len(first.to_bytes())} bytes")
        print(f"  asked again, it says the same: {again == first}; {device.left} left")
        device.answer(question, 43, name="week 2")
        try:
            device.answer(question, 43, name="week 3")
        except BudgetExceeded as refusal:
            print(f"  week 3: {refusal}")
    sent["randomizer"]["threshold"] = str(int(sent["randomizer"]["threshold"]) + 1)
    try:
        Device.verify(sent)
    except InvalidParameter:
        print("  a threshold raised by 2^-64 is refused")


def show_pages(pages: Frequency) -> None:
    """Reports counted in four places, merged, and the most frequent pages."""
    held = home_pages()
    counted = pages.aggregator()
    for part in np.array_split(held, PARTS):
        place = pages.aggregator()
        place.add_many(pages.randomize_many(part))
        counted = counted.merge(place)
    estimate = counted.estimate()
    truth = np.bincount(held, minlength=PAGES) / BROWSERS
    low, high = estimate.interval(0.95)
    print(f"\n{'home page':>9}  {'share':>7}  {'± error':>7}  {'95% interval':^16}  {'(truth)':>7}")
    for each in estimate.heavy_hitters(top=8):
        cell = each.cell
        bars = f"{low[cell]:.4f} to {high[cell]:.4f}"
        print(f"{cell:>9}  {each.frequency:>7.4f}  {estimate.error[cell]:>7.4f}  {bars}  {truth[cell]:>7.4f}")
    print("  All of these are held by somebody, but for a chance of 5%.")


def show_seconds(seconds: Mean) -> None:
    """One bit from each browser, and the mean of all."""
    taken = start_times()
    counted = seconds.aggregator()
    counted.add_many(seconds.randomize_many(taken))
    mean = counted.estimate()
    print(f"\nMean seconds to start: {mean.value:.3f} ± {mean.error:.3f} (truth {taken.mean():.3f}),")
    print(f"  from {seconds.randomizer.report_bytes} byte a browser, of which one bit is used.")


def home_pages() -> np.ndarray:
    """A few pages that very many have, and many that few have."""
    return (PAGES ** (shares("page") ** 1.5)).astype(np.int64) - 1


def start_times() -> np.ndarray:
    """Most start within two seconds, some take long."""
    slow: np.ndarray = 1.2 - 1.5 * np.log(shares("start"))
    return slow.clip(0, 10)


def shares(label: str) -> np.ndarray:
    """A number strictly between 0 and 1 for each browser, the same in every run."""
    words = np.frombuffer(hashlib.shake_256(label.encode()).digest(4 * BROWSERS), dtype=np.uint32)
    return (words + 0.5) / 2**32


if __name__ == "__main__":
    main()
