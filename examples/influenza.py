"""A winter of influenza, published every evening: the count so far, the last seven days, and a rare disease.

People who feel ill answer a few questions on a page of the health office, which publishes counts every
evening [DR14, section 12.3]. Run it from top to bottom, or open it as a notebook: `# %%` begins a cell. The
people are made up, and only because they are made up may the truth be printed beside what is published. The
noise is real: it differs from run to run.
"""

# %% The secret: how many ill people came on each day of the season.

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from telling import FAINT, PUBLISHED, SURE, TRUTH, Told

import partita as pt

told = Told("influenza")
DAYS, WEEK = 180, 7
made_up = np.random.default_rng(20260301)

day = np.arange(DAYS)
wave = 30 + 350 * np.exp(-(((day - 70) / 18) ** 2))
visits = made_up.poisson(wave * np.where(day % WEEK >= 5, 0.6, 1.0))
rare = made_up.poisson(np.where((day > 100) & (day < 112), 4.0, 0.05))

told.chapter("1. Why noise on each day is not enough")
told.say(
    f"""Over {DAYS} days {visits.sum():,} made-up people come. Each evening the office publishes the number
    so far. Noise of scale 1/epsilon on every day's count protects a visit, but the errors add up: the
    total of t days is off by about the square root of t times as much. Fresh noise on every total would
    have to be shared between {DAYS} outputs. A counter under continual observation puts noise on a tree
    of sums of days, of which a total needs only a few."""
)

# %% Two counters see the same visits and share epsilon: all outputs of both are epsilon 1 for each visit.

total = pt.Counter(epsilon="1/2", horizon=DAYS)
week = pt.SlidingCounter(epsilon="1/2", window=WEEK)
print(f"each counter: {total.guarantee}; both together: {total.guarantee + week.guarantee}")

published, low, high, weekly, weekly_error = [], [], [], [], []
for count in visits.tolist():
    published.append(total.update(count))
    bounds = total.answer(beta=0.05)
    low.append(bounds.low)
    high.append(bounds.high)
    weekly.append(week.update(count))
    weekly_error.append(week.answer().error)

so_far = np.cumsum(visits)
last_week = so_far - np.concatenate([np.zeros(WEEK, int), so_far[:-WEEK]])

told.chapter("2. Every evening")
print("day   so far  published     low - high     last week  published")
for each in range(14, DAYS, 28):
    print(
        f"{each + 1:3}  {so_far[each]:7,}  {published[each]:9,.0f}  {low[each]:7,.0f} - {high[each]:7,.0f}"
        f"  {last_week[each]:9,}  {weekly[each]:9,.0f}"
    )
certain = total.answer(SURE)
told.check("visits of the whole season", int(so_far[-1]), (certain.low, certain.high))
print(f"all {DAYS} totals at once are off by at most {bounds.everywhere:.0f}, in 19 of 20 winters")

# %% What the public sees. Errors stay as they are, however long the season is.

naive, reach = pt.PerStepCounter(epsilon="1/2", horizon=DAYS), []
for count in visits.tolist():
    naive.update(count)
    bounds_of_naive = naive.answer(beta=0.05)
    reach.append((bounds_of_naive.high - bounds_of_naive.low) / 2)
figure, (above, below) = pyplot.subplots(2, 1, figsize=(8, 5.4), sharex=True, height_ratios=[3, 2])
above.plot(day, last_week, color=TRUTH, lw=1, label="truth")
above.plot(day, weekly, color=PUBLISHED, lw=1.2, label="published, with 95% bands")
half = 1.96 * np.array(weekly_error)
above.fill_between(day, np.array(weekly) - half, np.array(weekly) + half, color=PUBLISHED, alpha=0.25, lw=0)
above.set_ylabel("visits in the last seven days")
above.set_title("The wave, as it is published day by day")
above.legend()
below.axhline(0, color=TRUTH, lw=1)
below.fill_between(
    day, np.array(low) - published, np.array(high) - published, color=PUBLISHED, alpha=0.2, lw=0
)
below.plot(day, np.array(published) - so_far, color=PUBLISHED, lw=1.2, label="counter, and its 95% bounds")
below.plot(day, reach, color=FAINT, lw=1.2, label="bounds of noise on each day, added up")
below.plot(day, -np.array(reach), color=FAINT, lw=1.2)
below.set_ylabel("error of the total")
below.set_xlabel("day of the season")
below.legend(loc="lower left", fontsize="small", ncols=2)
told.picture("season", figure)

# %% A rare disease: long quiet, and then an outbreak. A sparse counter moves only when something happened.

told.chapter("3. A rare disease")
sparse = pt.SparseCounter(epsilon=1, horizon=DAYS * 24, expected=60)
hourly = np.zeros((DAYS, 24), np.int64)
hourly[:, 12] = rare
outputs = sparse.update_many(hourly.ravel())[23::24]
dense = pt.Counter(epsilon=1, horizon=DAYS * 24).update_many(hourly.ravel())[23::24]
told.say(
    f"""{rare.sum()} made-up cases in {DAYS * 24:,} hours, one output for each hour. The sparse counter
    seals a stretch of time once enough cases came, which is a private decision, and counts sealed
    stretches only: quiet hours cost almost nothing."""
)
figure, axes = pyplot.subplots(figsize=(8, 3.4))
axes.step(day, np.cumsum(rare), where="post", color=TRUTH, lw=1, label="truth")
axes.step(day, outputs, where="post", color=PUBLISHED, lw=1.4, label="sparse counter")
axes.step(day, dense, where="post", color=FAINT, lw=1, label="counter")
axes.set_xlabel("day of the season")
axes.set_ylabel("cases so far")
axes.set_title("An outbreak after a hundred quiet days")
axes.legend()
told.picture("outbreak", figure)
certain = sparse.answer(SURE)
told.check("cases of the rare disease", int(rare.sum()), (certain.low, certain.high))

# %% The office does this for real: a counter in a file goes on after a crash and publishes by the clock.
# The season lies far ahead, so that the clock of your machine closes nothing by itself.

told.chapter("4. A counter that survives a crash")
with tempfile.TemporaryDirectory(prefix="partita-influenza-") as folder:
    ledger = pt.Ledger(Path(folder, "budget.db"))
    ledger.open("influenza", epsilon=1, unit="event")
    terms = {"epsilon": 1, "period": "1d", "start": "2099-10-01", "horizon": DAYS}
    path = Path(folder, "visits.db")
    with pt.open_counter(path, ledger=ledger, dataset="influenza", **terms) as durable:
        durable.add(int(visits[0]), feeder="page", sequence=1)
        durable.tick("2099-10-02")
    with pt.resume_counter(path, ledger=ledger) as durable:
        durable.add(int(visits[0]), feeder="page", sequence=1)
        durable.add(int(visits[1]), feeder="page", sequence=2)
        durable.tick("2099-10-03")
        print(f"{durable.periods} days are published; what was sent twice is counted once")
        print(f"left in the ledger: {ledger.balance('influenza').left}")

# %%
told.end(
    "Count anything that comes day by day or second by second: one output for each period of a clock.",
    "Open a durable counter with a ledger, and let partita stream or partita serve close its periods.",
    "Count a thousand regions at once with pt.CounterFamily, at the error of one.",
    "Read docs/streams.md for which counter suits which stream.",
)
