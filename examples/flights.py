"""Late flights: a month of journeys, several for each passenger, by time of departure and by delay.

Run it from top to bottom, or open it as a notebook: `# %%` begins a cell. The passengers are made up, and
only because they are made up may the truth be printed beside what is published. The noise is real: it
differs from run to run.
"""

# %% The secret: who flew when, and how late they arrived. One row for each journey.

import datetime

import numpy as np
from matplotlib import pyplot
from telling import PUBLISHED, SURE, TRUTH, Told

import partita as pt

told = Told("flights")
INTERVALS = "published, with 95% intervals"
PASSENGERS, MOST, DAYS = 100_000, 3, 28
made_up = np.random.default_rng(20260201)

passenger = np.repeat(np.arange(PASSENGERS), made_up.choice([1, 2, 3], PASSENGERS, p=[0.7, 0.2, 0.1]))
JOURNEYS = passenger.size
day = made_up.integers(0, DAYS, JOURNEYS)
waves = made_up.choice([7.0, 12.5, 18.0], JOURNEYS, p=[0.4, 0.25, 0.35])
time = (waves + 1.8 * made_up.standard_normal(JOURNEYS)).clip(5, 23.9)
storm = (day == 11) & (time > 10) | (day == 12) & (time < 14)
usual = 4 + 1.2 * (time - 5) + 70 * storm
delay = (made_up.gamma(1.3, usual / 1.3) - 12).round().clip(-30, 600).astype(np.int64)
departure = np.datetime64("2026-02-01T00:00:00") + (86_400 * day + 3_600 * time).astype("timedelta64[s]")
journeys = {"passenger": passenger, "departure": departure, "hour": time.astype(np.int64), "delay": delay}

told.chapter("1. What is secret, and what is public")
told.say(
    f"""{JOURNEYS:,} made-up journeys in February 2026. What must be hidden is a passenger with all of their
    journeys, not one journey. So the office says beforehand that at most {MOST} journeys of a passenger
    count. Nobody here has more; of somebody who had, a public rule would keep {MOST} that looks at this
    passenger's rows alone. Departures are counted in quarters of an hour, delays in minutes, from an
    hour early to ten hours late."""
)

# %% Publish: two views, of departure and delay, and of the hour of the day and delay.

schema = {
    "departure": pt.Timestamp("2026-02-01", "2026-02-28T23:59:59", "15m"),
    "hour": pt.Integer(0, 23),
    "delay": pt.Integer(-60, 600),
}
views = [("departure", "delay"), ("hour", "delay")]
release = pt.publish(journeys, schema, epsilon=2, views=views, person="passenger", contributions=MOST)

told.chapter("2. Publish once")
print(release.report())

# %% A rectangle: two days of storm, and everybody who was an hour late or more in it.

told.chapter("3. A storm")
start, end = datetime.datetime(2026, 2, 12, 10), datetime.datetime(2026, 2, 13, 13)  # of whole hours
stranded = release.count(departure=(start, end), delay=(60, None))
within = (departure >= np.datetime64(start)) & (departure < np.datetime64("2026-02-13T14:00"))
truth = int((within & (delay >= 60)).sum())
print(
    f"an hour late or more in the storm: {stranded:,.0f} ± {1.96 * stranded.error:,.0f}   (truth {truth:,})"
)
told.check("journeys an hour late or more in the storm", truth, stranded.worst(SURE))

everybody = release.count(departure=(start, end))
print(f"of {everybody:,.0f} ± {1.96 * everybody.error:,.0f} who flew in it   (truth {within.sum():,})")
told.check("journeys in the storm", int(within.sum()), everybody.worst(SURE))

# %% The month, day by day: half an hour late or more. Each day is a box of the same release.

told.chapter("4. Day by day")
days = [datetime.date(2026, 2, 1 + number) for number in range(DAYS)]
mornings = [datetime.datetime.combine(each, datetime.time()) for each in days]
evenings = [datetime.datetime.combine(each, datetime.time(23, 45)) for each in days]  # the last slot of each
late = release.counts(departure=(mornings, evenings), delay=(30, None))
true_late = np.bincount(day[delay >= 30], minlength=DAYS)

figure, axes = pyplot.subplots(figsize=(8, 3.6))
axes.bar(days, np.maximum(0, late.values), color=PUBLISHED, label="published, with 95% bars")
axes.errorbar(days, late.values, 1.96 * late.error, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
axes.scatter(days, true_late, color=TRUTH, s=14, zorder=3, label="truth")
axes.set_ylabel("journeys half an hour late or more")
axes.set_ylim(bottom=0)
axes.set_title("Two days stand out, and no passenger does")
axes.tick_params(axis="x", rotation=30)
axes.legend()
told.picture("days", figure)

# %% The hour of the day against delay, as a heat map. Where nobody is, nothing stands out.

told.chapter("5. Delays grow over the day")
axes = release.plot("hour", "delay", bins=(24, 110), interactive=False)
axes.set_ylim(-35, 120)
axes.set_title("Departures by hour and delay in minutes, epsilon 1 of 2")
told.picture("heat", axes.figure)

figure, axes = pyplot.subplots(figsize=(8, 3.4))
hours = range(6, 22)
medians = [release.quantile("delay", [0.5, 0.9], hour=each) for each in hours]
for place, share in enumerate((0.5, 0.9)):
    values = np.array([each[place].value for each in medians], float)
    low, high = np.array([each[place].interval(0.95) for each in medians], float).T
    truths = [np.quantile(delay[journeys["hour"] == each], share, method="inverted_cdf") for each in hours]
    axes.fill_between(hours, low, high, color=PUBLISHED, alpha=0.25, lw=0)
    axes.plot(hours, values, color=PUBLISHED, marker="o", ms=3, label=None if place else INTERVALS)
    axes.plot(hours, truths, color=TRUTH, ls="--", lw=1, label=None if place else "truth")
    axes.text(hours[-1] + 0.2, values[-1], f"{share:.0%}", va="center")
axes.set_xlabel("hour of departure")
axes.set_ylabel("delay in minutes")
axes.set_title("Half of all, and nine in ten, are no later than this")
axes.legend(loc="upper left")
told.picture("quantiles", figure)

# %%
told.end(
    "Declare time stamps of your own, with a resolution and a zone; then ask for any stretch of time.",
    "Name the column that says who a row belongs to, and how many rows of a person may count.",
    "Draw heat maps of any two columns that were released together: release.plot('hour', 'delay').",
    "Open this file as a notebook, where pictures are interactive: see docs/notebooks.md.",
)
