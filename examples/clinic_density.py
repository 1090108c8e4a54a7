"""A clinic counts its visits, and may be made to hand over its computer at any time.

It serves 200,000 registered people, and wants to publish every quarter what fraction of them came, how
often they came, and how many came at least three times. It must not be able to say who came: to nobody, not
even with a subpoena. Run it from top to bottom, or open it as a notebook: `# %%` begins a cell. The people
are made up, and only because they are made up may the truth be printed beside what is published. The noise
is real: it differs from run to run.
"""

# %% What is promised, before anybody comes.

from math import exp

import numpy as np
from matplotlib import pyplot
from telling import FAINT, PUBLISHED, SURE, TRUTH, Told

import partita as pt
from partita.pan.sketch import unpack_bits
from partita.trusted.streams.base import unpack

told = Told("clinic_density")
PEOPLE, QUARTERS, EPSILON = 200_000, 4, 5
NAMES = ("density", "mean-5", "heavy-3")
visits = pt.pan.Registers(universe=PEOPLE, epsilon=EPSILON, most=30, releases=len(NAMES), epochs=QUARTERS + 1)

told.chapter("1. The promise")
told.say(
    f"""The memory of the clinic has one register for each of {PEOPLE:,} registered people. It starts at
    random, and a visit moves it. {visits.guarantee}: that is for one person over the whole year, all
    outputs together with one look at the memory in each quarter, whether or not the clinic knew of it.
    Announced looks come on top, because the clinic forgets before them."""
)

# %% The year: a planned maintenance in the second quarter, a subpoena in the third.


def made_up_visits(quarter: int) -> np.ndarray:
    """Three in ten people come, some of them often."""
    rng = np.random.default_rng(quarter)
    often = rng.geometric(0.5, PEOPLE) * (rng.random(PEOPLE) < 0.3)
    return rng.permutation(np.repeat(np.arange(PEOPLE), often))


def true_answers(ids: np.ndarray) -> list[float]:
    """What only somebody who made up the people can know."""
    times = np.bincount(ids, minlength=PEOPLE)
    return [float((times > 0).mean()), float(np.minimum(times, 5).mean()), float((times >= 3).mean())]


told.chapter("2. A year")
published, truths = [], []
print(f"{'':12}{'came':<16}{'visits, up to 5':<18}came 3 times or more")
for quarter in range(1, QUARTERS + 1):
    ids = made_up_visits(quarter)
    before, after = np.array_split(ids, 2)
    visits.update_many(before)
    if quarter == 2:
        visits.announce_intrusion()
        print("   maintenance: all registers were drawn afresh; this quarter is counted from here on")
    if quarter == 3:
        seized = visits.state()
        print(f"   a subpoena: the memory is handed over as it is, {len(seized):,} bytes; counting goes on")
    visits.update_many(after)
    published.append([visits.release(name) for name in NAMES])
    truths.append(true_answers(after if quarter == 2 else ids))
    answers = [f"{each:.3f} ± {1.96 * each.error:.3f}" for each in published[-1]]
    print(f"quarter {quarter}   {'   '.join(answers)}")
    print("  in truth  " + "           ".join(f"{truth:.3f}" for truth in truths[-1]))
for place, name in enumerate(NAMES):
    told.check(f"{name} in the first quarter", truths[0][place], published[0][place].worst(SURE))

# %% The picture that goes to the newspapers.

figure, axes = pyplot.subplots(figsize=(8, 3.4))
quarters = np.arange(1, QUARTERS + 1)
labels = {"came at all": PUBLISHED, "visits of each, up to 5": "#54a24b", "came 3 times or more": "#b279a2"}
for place, (label, color) in enumerate(labels.items()):
    values = [each[place].value for each in published]
    errors = [1.96 * each[place].error for each in published]
    shift = quarters + 0.06 * (place - 1)
    axes.errorbar(shift, values, errors, fmt="o", ms=4, capsize=3, label=label, color=color)
    axes.scatter(shift, [each[place] for each in truths], marker="_", s=160, color=TRUTH, zorder=3)
axes.set_xticks(quarters, [f"quarter {each}" + (", second half" if each == 2 else "") for each in quarters])
axes.set_ylim(bottom=0)
axes.set_title("Published with 95% bars; the red marks are the truth, which the clinic does not know")
axes.legend(fontsize="small")
axes.set_xlim(0.5, QUARTERS + 1.6)
told.picture("year", figure)

# %% What the intruder sees. A small ward keeps one bit for each of 2,500 people: who came is drawn again.

told.chapter("3. What an intruder sees")
SIDE = 50
ward = pt.pan.Density(universe=SIDE * SIDE, epsilon=1)
came = np.zeros((SIDE, SIDE), bool)
rows, columns = np.indices(came.shape)
came[(rows - 25) ** 2 + (columns - 25) ** 2 < 260] = True
came[(rows - 20) ** 2 + (columns - 18) ** 2 < 9] = came[(rows - 20) ** 2 + (columns - 32) ** 2 < 9] = False
ward.update_many(np.flatnonzero(came))
seized = ward.state()
bits = unpack_bits(unpack(seized, ward.name, 1)["bits"], SIDE * SIDE).reshape(SIDE, SIDE)
share = ward.release("density")

chance = [float(ward.coin.q0), float(ward.coin.q1)]
told.say(
    f"""The bit of somebody who came is 1 with probability {chance[1]:.3f}, that of somebody who did not
    with probability {chance[0]:.3f}. Ones and zeros are seen everywhere in the seized memory. A crowd
    of hundreds can be made out if it happens to live side by side, as here: how many came is what the
    clinic publishes anyway. A person cannot. Whoever thought before that the marked person came with
    probability 0.5, and learns nothing of them from others, thinks so afterwards with a probability
    between {1 / (1 + exp(1)):.2f} and {1 / (1 + exp(-1)):.2f}, even with all that was published: that
    is what epsilon 1 says."""
)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 4.2))
left.set_title("Who came: nobody's memory holds this", fontsize="medium")
right.set_title("What the seized memory holds", fontsize="medium")
for axes, field in ((left, came), (right, bits)):
    axes.add_patch(pyplot.Rectangle((29.5, 29.5), 1, 1, fill=False, edgecolor=TRUTH, lw=2))
    axes.imshow(field, cmap="Greys", interpolation="nearest", vmin=0, vmax=1.3)
    axes.set_xticks([])
    axes.set_yticks([])
told.picture("seized", figure)
print(f"published all the same: {share:.2f} ± {1.96 * share.error:.2f} came   (truth {came.mean():.2f})")
told.check("the fraction of the ward that came", float(came.mean()), share.worst(SURE))

# %% How much a bit may say about its person: the posterior, for every prior, and the bound of the promise.

likely = np.linspace(0.001, 0.999, 200)
figure, axes = pyplot.subplots(figsize=(5, 4.4))
least, most = (likely * ratio / (likely * ratio + 1 - likely) for ratio in (exp(-1), exp(1)))
axes.fill_between(likely, least, most, color=FAINT, alpha=0.4, lw=0, label="what epsilon 1 allows")
for bit, color in ((1, PUBLISHED), (0, "#54a24b")):
    q0, q1 = (each if bit else 1 - each for each in chance)
    axes.plot(likely, likely * q1 / (likely * q1 + (1 - likely) * q0), color=color, label=f"the bit is {bit}")
axes.plot(likely, likely, color="black", lw=0.8, ls=":")
axes.set_xlabel("belief that a person came, before")
axes.set_ylabel("and after the memory was read")
axes.set_title("What a look is worth")
axes.legend(fontsize="small")
told.picture("belief", figure)

# %%
told.end(
    "Count people in a memory that may be read: pt.pan.Density, Distinct and Registers.",
    "Keep the sketch in a file, and feed it from a shell: partita pan create, update, release (docs/pan.md).",
    "Before a maintenance call announce_intrusion; after a subpoena go on as before.",
    "Tell the court, in one sentence, what the memory can and cannot say about anybody.",
)
