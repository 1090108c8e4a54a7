"""Browser telemetry in the local model: which home page, how long to start, and nobody's answer is known.

Run it from top to bottom, or open it as a notebook: `# %%` begins a cell. The browsers are made up, and
only because they are made up may the truth be printed beside the estimates. The noise is real: it differs
from run to run.
"""

# %% What 200,000 browsers hold, each for itself. Nobody collects this.

import json
import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from telling import FAINT, PUBLISHED, SURE, TRUTH, Told

from partita import BudgetExceeded, InvalidParameter
from partita.local import Device, Frequency, Mean, Range

told = Told("browser_telemetry")
BROWSERS, PAGES, PARTS = 200_000, 1024, 4
made_up = np.random.default_rng(20260401)
home = (PAGES ** (made_up.random(BROWSERS) ** 1.5)).astype(np.int64) - 1
seconds = (1.2 - 1.5 * np.log1p(-made_up.random(BROWSERS))).clip(0, 10)

pages, start = Frequency(PAGES, epsilon=1), Mean(0, 10, epsilon=1)
told.chapter("1. Two questions")
told.say(
    f"""A maker of browsers asks {BROWSERS:,} of them which of {PAGES:,} home pages they open, and how many
    seconds they take to start. Each report: {pages.guarantee}. Noise is added on the device: the maker,
    its clouds and whoever breaks into them see noisy reports and nothing else."""
)

# %% What a single browser does, and what it refuses.

told.chapter("2. One browser, with a budget of 2 for life")
sent = pages.to_json()
with tempfile.TemporaryDirectory(prefix="partita-telemetry-") as folder:
    device = Device(Path(folder, "device.json"), budget=2)
    question = device.verify(json.dumps(sent))
    first = device.answer(question, 42, name="week 1")
    again = device.answer(question, 43, name="week 1")
    print(f"verified epsilon {question.epsilon}; sends {len(first.to_bytes())} bytes")
    print(f"asked again, it says the same: {again == first}; {device.left} left")
    device.answer(question, 43, name="week 2")
    try:
        device.answer(question, 43, name="week 3")
    except BudgetExceeded as refusal:
        told.say(f"week 3: {refusal}")
sent["randomizer"]["threshold"] = str(int(sent["randomizer"]["threshold"]) + 1)
try:
    Device.verify(sent)
except InvalidParameter:
    print("a server that raises a threshold by 2^-64 is refused")

# %% All browsers answer. Reports are counted in four places and merged.

told.chapter("3. Home pages")
counted = pages.aggregator()
for part in np.array_split(home, PARTS):
    place = pages.aggregator()
    place.add_many(pages.randomize_many(part))
    counted = counted.merge(place)
estimate = counted.estimate()
truth = np.bincount(home, minlength=PAGES) / BROWSERS
low, high = estimate.interval(0.95)
found = [each.cell for each in estimate.heavy_hitters(top=8)]
print(f"{'page':>5}  {'share':>7}  {'± 95%':>7}  {'95% interval':^16}  {'(truth)':>7}")
for cell in found:
    half, bars = 1.96 * estimate.error[cell], f"{low[cell]:.4f} to {high[cell]:.4f}"
    print(f"{cell:>5}  {estimate.values[cell]:>7.4f}  {half:>7.4f}  {bars}  {truth[cell]:>7.4f}")
print("all of these are held by somebody, but for a chance of 5%")
told.check("the share of page 0", float(truth[0]), estimate[0].worst(SURE))

figure, axes = pyplot.subplots(figsize=(8, 3.6))
top = np.arange(25)
axes.bar(top, estimate.values[top].clip(0), color=PUBLISHED, label="estimated, with 95% intervals")
spread = [estimate.values[top] - low[top], high[top] - estimate.values[top]]
axes.errorbar(
    top, estimate.values[top], np.maximum(0, spread), fmt="none", ecolor="black", elinewidth=0.8, capsize=2
)
axes.scatter(top, truth[top], color=TRUTH, s=14, zorder=3, label="truth")
axes.set_ylim(bottom=0)
axes.set_xlabel("home page")
axes.set_ylabel("share of browsers")
axes.set_title(f"The first 25 of {PAGES:,} pages, epsilon 1 on each device")
axes.legend()
told.picture("pages", figure)

# %% How long browsers take to start: the mean from one bit of each, the distribution from one range of each.

told.chapter("4. Seconds to start")
halves = np.array_split(made_up.permutation(BROWSERS), 2)
asked = start.aggregator()
asked.add_many(start.randomize_many(seconds[halves[0]]))
mean = asked.estimate()
print(
    f"mean seconds to start: {mean:.3f} ± {1.96 * mean.error:.3f}   (truth {seconds[halves[0]].mean():.3f})"
)
told.check("the mean seconds to start of those asked", float(seconds[halves[0]].mean()), mean.worst(SURE))

tenths = np.minimum(10 * seconds[halves[1]], 99).astype(np.int64)
ranges = Range(100, epsilon=1)
collected = ranges.aggregator()
collected.add_many(ranges.randomize_many(tenths))
spread = collected.estimate()
curve = [spread.cdf(tenth) for tenth in range(100)]
values, errors = np.array([each.value for each in curve]), np.array([each.error for each in curve])
figure, axes = pyplot.subplots(figsize=(8, 3.4))
place = np.arange(1, 101) / 10
axes.fill_between(place, values - 1.96 * errors, values + 1.96 * errors, color=PUBLISHED, alpha=0.25, lw=0)
axes.plot(place, values, color=PUBLISHED, label="estimated, with 95% bands")
axes.plot(
    place,
    np.cumsum(np.bincount(tenths, minlength=100)) / tenths.size,
    color=TRUTH,
    lw=1,
    ls="--",
    label="truth",
)
axes.set_xlabel("seconds")
axes.set_ylabel("share that has started")
axes.set_title("How long browsers take to start, from half of them")
axes.legend(loc="lower right")
told.picture("start", figure)

# %% What it costs that nobody has to be trusted: the error of a share, here and with a trusted curator.

told.chapter("5. The price of trusting nobody")
numbers = np.logspace(3, 7, 9)
local = estimate.error[found[0]] * np.sqrt(BROWSERS / numbers)
central = 2 * np.sqrt(2) / numbers
figure, axes = pyplot.subplots(figsize=(6, 3.6))
axes.loglog(numbers, local, color=PUBLISHED, marker="o", ms=3, label="local: each device adds noise")
axes.loglog(numbers, central, color=FAINT, marker="o", ms=3, label="central: a curator adds noise once")
axes.set_xlabel("number of browsers")
axes.set_ylabel("standard error of a share")
axes.set_title("Epsilon 1 in both models")
axes.legend(fontsize="small")
told.picture("price", figure)
told.say(
    """The local line is the error estimated above, scaled by the square root of the number of browsers;
    the central one is that of counts with Laplace noise of scale 2, which hides a changed answer too.
    The local model needs many people. See docs/local.md."""
)

# %%
told.end(
    "Ask devices which of many values they hold, where on a line they are, or for a mean.",
    "Let devices verify what they are asked, and keep a budget for life: partita.local.Device.",
    "Count reports in as many places as you like and merge them; malformed reports are refused or skipped.",
    "Decide with the last picture whether you have people enough, or need a curator whom all trust.",
)
