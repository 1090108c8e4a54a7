"""A statistics office publishes what people earn, by age: once, for everybody, for all questions.

Run it from top to bottom, or open it as a notebook: `# %%` begins a cell. The people are made up, and only
because they are made up may the truth be printed beside what is published. The noise is real: it differs
from run to run.
"""

# %% The secret: one row for each of 200,000 people. Nobody outside the office sees it.

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from telling import FAINT, PUBLISHED, SURE, TRUTH, Told

import partita as pt

told = Told("salaries")
PEOPLE = 200_000
BARS, INTERVALS = "published, with 95% bars", "published, with 95% intervals"
made_up = np.random.default_rng(20260101)

age = made_up.normal(43, 12, PEOPLE).round().clip(16, 75).astype(np.int64)
usual = 34_000 * np.exp(0.02 * (np.minimum(age, 52) - 43))
salary = (usual * np.exp(0.35 * made_up.standard_normal(PEOPLE))).astype(np.int64)
rounded = made_up.random(PEOPLE) < 0.3
salary[rounded] = salary[rounded] // 1_000 * 1_000
salary[:3] = 4_000_000
people = {"age": age, "salary": salary}

told.chapter("1. What is secret, and what is public")
told.say(
    f"""{PEOPLE:,} made-up people, one row each: an age and a yearly salary. Three of them earn four
    million. Public, and said before anybody looks at the data: ages lie between 0 and 120, salaries
    between 0 and ten million, and the release may cost epsilon 1."""
)

# %% The plan needs no data: what would be published, and how far off would answers be?

schema = {"age": pt.Integer(0, 120), "salary": pt.Integer(0, 10_000_000)}
request = {"epsilon": 1, "views": [("age", "salary"), ("salary",)], "sums": ["salary"]}

told.chapter("2. The plan")
print(pt.plan(schema, rows=PEOPLE, **request))

# %% Publish once. The ledger is debited before any noise is drawn, and refuses what is too much.

told.chapter("3. Publish once")
with tempfile.TemporaryDirectory(prefix="partita-salaries-") as folder:
    ledger = pt.Ledger(Path(folder, "budget.db"))
    ledger.open("salaries", epsilon="3/2")
    path = Path(folder, "salaries.release.parquet")
    pt.publish(people, schema, ledger=ledger, dataset="salaries", path=path, **request)
    print(f"published {path.name}, {path.stat().st_size:,} bytes")
    try:
        pt.publish(people, schema, ledger=ledger, dataset="salaries", **request)
    except pt.BudgetExceeded as refusal:
        told.say(f"a second release is refused: {refusal}")
    release = pt.load(path)
print(f"what everybody may know: {release.guarantee}")

# %% From here on everything is public. Counts of any range, with two kinds of error bars.

told.chapter("4. Counts")
poor = release.count(salary=(None, 15_000))
young = release.count(age=(16, 24), salary=(30_000, None))
few, truth = (salary <= 15_000).sum(), ((age >= 16) & (age <= 24) & (salary >= 30_000)).sum()
print(f"earn at most 15,000:              {poor:8,.0f} ± {1.96 * poor.error:.0f}   (truth {few:,})")
print(f"aged 16 to 24, at least 30,000:   {young:8,.0f} ± {1.96 * young.error:.0f}   (truth {truth:,})")
told.check("people who earn at most 15,000", int(few), poor.worst(SURE))
told.check("young people with at least 30,000", int(truth), young.worst(SURE))

# %% The distribution of salaries, beside that of the secret table.

line = release.histogram("salary", 1_000)
shown = slice(0, 12)
figure, axes = pyplot.subplots(figsize=(8, 3.8))
widths = np.asarray(line.highs, float)[shown] + 1 - np.asarray(line.lows, float)[shown]
counts, error = line.counts.values[shown], line.counts.error[shown]
lows = np.asarray(line.lows, float)[shown]
true_counts = np.histogram(salary, bins=[*lows, lows[-1] + widths[-1]])[0]
axes.bar(lows, counts, widths, align="edge", color=PUBLISHED, edgecolor="white", label=BARS)
axes.errorbar(lows + widths / 2, counts, 1.96 * error, fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
axes.stairs(true_counts, [*lows, lows[-1] + widths[-1]], color=TRUTH, label="truth")
axes.set_xlabel("yearly salary")
axes.set_ylabel("people")
axes.xaxis.set_major_formatter("{x:,.0f}")
axes.set_title("Who earns how much, epsilon 1 for everything in this story")
axes.legend()
told.picture("histogram", figure)

# %% Quantiles by age, from the same release: no new noise, no new cost.

told.chapter("5. Quantiles by age")
groups = [(low, low + 4) for low in range(20, 65, 5)]
shares = [0.1, 0.5, 0.9]
found = [release.quantile("salary", shares, age=group) for group in groups]
middles = [(low + high) / 2 for low, high in groups]
inside = [salary[(age >= low) & (age <= high)] for low, high in groups]

figure, axes = pyplot.subplots(figsize=(8, 3.8))
for place, share in enumerate(shares):
    values = np.array([float(each[place].value) for each in found])
    bounds = np.array([each[place].interval(0.95) for each in found], float)
    true_values = [np.quantile(values, share, method="inverted_cdf") for values in inside]
    axes.fill_between(middles, bounds[:, 0], bounds[:, 1], color=PUBLISHED, alpha=0.25, lw=0)
    axes.plot(middles, values, color=PUBLISHED, marker="o", ms=3, label=None if place else INTERVALS)
    axes.plot(middles, true_values, color=TRUTH, lw=1, ls="--", label=None if place else "truth")
    axes.text(middles[-1] + 0.6, values[-1], f"{share:.0%}", va="center")
axes.set_xlabel("age, in groups of five years")
axes.set_ylabel("yearly salary")
axes.yaxis.set_major_formatter("{x:,.0f}")
axes.set_ylim(0, 1.3 * max(float(each[-1].value) for each in found))
axes.set_title("A tenth, half and nine tenths earn no more than this")
axes.legend(loc="upper left")
told.picture("quantiles", figure)
for group, each in zip(groups[::3], found[::3], strict=True):
    print(f"median salary at {group[0]} to {group[1]}: {each[1].value:,}")

# %% Sums and means. Bounds were declared far too wide: the error follows the values that are there.

told.chapter("6. Sums and means")
payroll = release.sum("salary", age=(30, 39))
thirties = (age >= 30) & (age <= 39)
print(f"all salaries of people in their thirties: {payroll:,.0f} ± {1.96 * payroll.error:,.0f}")
print(f"  (truth {salary[thirties].sum():,}; covers {payroll.covers})")
told.check(
    "salaries of people in their thirties, as far as covered",
    float(payroll.covers.counted(salary[thirties]).sum()),
    payroll.worst(SURE),
)
means = [release.mean("salary", age=group) for group in groups]
figure, axes = pyplot.subplots(figsize=(8, 3.4))
values, errors = np.array([each.value for each in means]), np.array([each.error for each in means])
axes.errorbar(middles, values, 1.96 * errors, color=PUBLISHED, marker="o", ms=4, capsize=3, label=BARS)
axes.plot(middles, [values.mean() for values in inside], color=TRUTH, ls="--", lw=1, label="truth")
covered = [
    each.covers.counted(values).sum() / each.covers.share(values).sum()
    for each, values in zip(means, inside, strict=True)
]
axes.plot(middles, covered, color=TRUTH, ls=":", lw=1.5, label="truth of what is covered")
axes.axhline(release.mean("salary").value, color=FAINT, lw=1, label="all ages, published")
axes.set_xlabel("age, in groups of five years")
axes.set_ylabel("mean salary")
axes.yaxis.set_major_formatter("{x:,.0f}")
axes.set_title("Mean salary by age")
axes.legend()
told.picture("means", figure)
told.say(
    """A sum says which values it covers. What lies beyond counts as the largest covered value, in part or
    not at all, so that nobody's millions need noise of millions; `payroll.beyond` tells about how many
    rows that concerns."""
)

# %%
told.end(
    "Publish a table of your own: pass the path of a Parquet or CSV file, and declare its columns.",
    "Ask the release anything about ages and salaries, as often as you like: every question is free.",
    "Give the file away. Readers need no account, and nothing that they compute costs more privacy.",
    "Read docs/questions.md for heat maps, differences and regions, docs/command-line.md for the shell.",
)
