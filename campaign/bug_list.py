"""The bugs: in every layer mistakes that an engineer could make, each with quick tests that see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

__all__ = ["BUGS", "Bug"]


@final
@dataclass(frozen=True)
class Bug:
    """A mistake: its layer and name, the file, the right text, which is there once, and the wrong one.

    `tests` is a path for pytest: some of these tests must fail.
    """

    layer: str
    name: str
    file: str
    right: str
    wrong: str
    tests: str


NOISE: Final = (
    Bug(
        "noise",
        "samples have half of the scale",
        "noise/laplace.py",
        "self.rate = 1 / scale",
        "self.rate = 2 / scale",
        "tests/noise/test_enumeration.py::test_discrete_laplace_noise_has_its_law",
    ),
    Bug(
        "noise",
        "one draw is added to every entry of an array",
        "noise/system.py",
        "noise = self._integers(scale, values.size, signed=True).reshape(values.shape)",
        "noise = np.full(values.shape, self._integers(scale, 1, signed=True)[0])",
        "tests/noise/test_range.py::test_noise_takes_the_shape_of_the_data",
    ),
    Bug(
        "noise",
        "better scores are chosen too often",
        "noise/selection.py",
        "[-int(gap) / scale for gap in classes]",
        "[-2 * int(gap) / scale for gap in classes]",
        "tests/noise/test_enumeration.py::test_a_candidate_has_the_probability_of_its_score",
    ),
    Bug(
        "noise",
        "a walk is off by one level",
        "noise/hazard.py",
        "return lambda: -((-(enclose(-rate * (level + 1)).exp())).log1p())",
        "return lambda: -((-(enclose(-rate * (level + 2)).exp())).log1p())",
        "tests/noise/test_enumeration.py::test_the_first_success_has_its_law",
    ),
    Bug(
        "noise",
        "a uniform number is a remainder",
        "noise/kernel.py",
        "        if drawn < count:\n            return drawn",
        "        return drawn % count",
        "tests/noise/test_kernel.py::test_below_is_uniform_over_all_byte_values",
    ),
    Bug(
        "noise",
        "what holds noise can be copied",
        "noise/words.py",
        "def __reduce_ex__(self, protocol: Any) -> NoReturn:",
        "def _refuse_copies(self, protocol: Any) -> NoReturn:",
        "tests/noise/test_sessions.py::test_what_holds_noise_cannot_be_copied",
    ),
    Bug(
        "noise",
        "a forked child goes on with the key of its parent",
        "noise/words.py",
        "self._stream = Cipher(",
        'self._stream = getattr(self, "_stream", None) or Cipher(',
        "tests/noise/test_faults.py::test_a_child_has_words_of_its_own",
    ),
)

GUARANTEES: Final = (
    Bug(
        "guarantees",
        "a changed row counts as one",
        "guarantee.py",
        "each = 2 if neighbors == CHANGE_ONE else 1",
        "each = 1",
        "tests/intervals/test_additive_privacy.py::test_moves_and_persons_are_paid_for",
    ),
    Bug(
        "guarantees",
        "the rows of a person count as one",
        "mechanisms/base.py",
        "return self.epsilon / self.rows_changed",
        "return self.epsilon / rows_changed(self.neighbors, 1)",
        "tests/intervals/test_additive_privacy.py::test_moves_and_persons_are_paid_for",
    ),
    Bug(
        "guarantees",
        "a histogram of persons with more rows is taken",
        "mechanisms/checks.py",
        "if data.contributions > contributions:",
        "if data.contributions < contributions:",
        "tests/tree/test_tree.py::test_other_universes_and_looser_bounds_are_refused_before_any_draw",
    ),
    Bug(
        "guarantees",
        "parts compose in parallel where rows move between them",
        "guarantee.py",
        "        if self.neighbors != ADD_REMOVE:\n            raise IncompatibleGuarantees(\n"
        '                f"parallel',
        "        if not self.neighbors:\n            raise IncompatibleGuarantees(\n"
        '                f"parallel',
        "tests/core/test_guarantee.py::test_parallel_composition_needs_add_remove_neighbors",
    ),
    Bug(
        "guarantees",
        "concentrated losses cost half",
        "accounting.py",
        "_converts(weight * rate**2 / 2, whole, log)",
        "_converts(weight * rate**2 / 4, whole, log)",
        "tests/core/test_accounting.py::test_rates_are_the_largest_that_the_theorem_allows",
    ),
)

AXES: Final = (
    Bug(
        "axes",
        "counts have half of the noise",
        "mechanisms/additive.py",
        "return self.sensitivity / self.rate",
        "return self.sensitivity / (2 * self.rate)",
        "tests/intervals/test_additive_privacy.py::test_no_neighbors_lose_more_than_epsilon_and_some_do",
    ),
    Bug(
        "axes",
        "a scale is rounded to a float",
        "mechanisms/additive.py",
        "return self.sensitivity / self.rate",
        "return Fraction(float(self.sensitivity / self.rate))",
        "tests/intervals/test_additive_privacy.py::test_every_row_of_every_neighbor_is_paid_for",
    ),
    Bug(
        "axes",
        "the sensitivity of all intervals is off by one",
        "mechanisms/laplace.py",
        "(self.size + 1) // 2 * ((self.size + 2) // 2)",
        "(self.size + 1) // 2 * ((self.size + 1) // 2)",
        "tests/intervals/test_additive_privacy.py::test_no_neighbors_lose_more_than_epsilon_and_some_do",
    ),
    Bug(
        "axes",
        "every level of a tree spends all of epsilon",
        "mechanisms/tree.py",
        "tuple(total / (weight * self.rate) for weight in self.weights)",
        "tuple(total / (len(self.weights) * weight * self.rate) for weight in self.weights)",
        "tests/intervals/test_additive_privacy.py::test_every_row_of_every_neighbor_is_paid_for",
    ),
    Bug(
        "axes",
        "the threshold of a segment has no noise",
        "mechanisms/partition.py",
        "partition.threshold + noise.draw(partition.law, partition.scale)",
        "partition.threshold",
        "tests/partition/test_planted_bugs.py::test_the_shipped_cut_passes",
    ),
    Bug(
        "axes",
        "items count from the position after theirs on",
        "mechanisms/partition.py",
        "seal = segment.seal_before(position)\n",
        "seal = segment.seal_before(position + 1)\n",
        "tests/partition/test_behavior.py::test_a_heavy_cell_is_sealed_at_its_own_position",
    ),
    Bug(
        "axes",
        "a tool is chosen by the true number of rows",
        "mechanisms/intervals.py",
        "self.tool(total=total).release(counts",
        "self.tool(total=counts.total).release(counts",
        "tests/intervals/test_intervals.py::test_only_the_noisy_total_reaches_the_choice",
    ),
    Bug(
        "axes",
        "the tree over segments spends all of epsilon",
        "mechanisms/paper_intervals.py",
        "return Tree(size=segments, epsilon=self.epsilon / 2, **self.protected)",
        "return Tree(size=segments, epsilon=self.epsilon, **self.protected)",
        "tests/intervals/test_paper_law.py::test_the_whole_law_loses_at_most_epsilon",
    ),
    Bug(
        "axes",
        "tents of higher levels have the noise of the lowest",
        "mechanisms/tents.py",
        "[2 ** (GRAIN_BITS * level) / (share * rate) for level, share in enumerate(shares)]",
        "[1 / (share * rate) for level, share in enumerate(shares)]",
        "tests/tents/test_tents.py::test_every_row_costs_exactly_epsilon",
    ),
    Bug(
        "axes",
        "a second look at pairs is not paid for",
        "mechanisms/partition_tents.py",
        "self._rate(units - self.budget.pairs)",
        "self._rate(units)",
        "tests/tents/test_planted_bugs.py::test_the_shipped_code_passes",
    ),
    Bug(
        "axes",
        "looks at a node are half paid",
        "inference/spending_rule.py",
        "self.left[nodes] -= units\n",
        "self.left[nodes] -= -(-units // 2)\n",
        "tests/spending/test_spending_privacy.py::test_one_row_of_a_deep_tree_costs_at_most_epsilon",
    ),
    Bug(
        "axes",
        "special cells have no noise",
        "mechanisms/with_specials.py",
        "session.add(specials, self.scale)",
        "specials",
        "tests/publish/test_with_specials.py::test_a_row_costs_epsilon_wherever_it_is",
    ),
)

BOXES: Final = (
    Bug(
        "boxes",
        "cells of a grid have half of the noise",
        "mechanisms/grid_counts.py",
        "return 1 / self.rate",
        "return 1 / (2 * self.rate)",
        "tests/boxes/test_grid_privacy.py::test_no_neighbors_lose_more_than_epsilon_and_some_do",
    ),
    Bug(
        "boxes",
        "every pair of axes is scored with all that scores have",
        "mechanisms/rank_boxes.py",
        "return len(pairs(len(self.axes))) * self.rows_changed / self.scores_epsilon",
        "return self.rows_changed / self.scores_epsilon",
        "tests/boxes/test_rank_privacy.py::test_one_row_costs_epsilon_whatever_it_is",
    ),
    Bug(
        "boxes",
        "nodes of a tree of trees have all of epsilon",
        "mechanisms/paper_rectangles.py",
        "return 2 * nodes_over_one_point(",
        "return nodes_over_one_point(",
        "tests/boxes/test_paper_rectangles_law.py::test_given_the_cuts_the_counts_cost_exactly_half",
    ),
    Bug(
        "boxes",
        "the true total steers the tree",
        "mechanisms/spending_boxes.py",
        "return _Front(plan.root, evidence.left, evidence.counts)",
        "return _Front(plan.root, evidence.left, looks._counts.astype(float))",
        "tests/boxes/test_spending_boxes_privacy.py::test_one_row_costs_at_most_epsilon",
    ),
)

SUMS: Final = (
    Bug(
        "sums and queries",
        "levels of a tree of sums share no budget",
        "mechanisms/level_trees.py",
        "return tree.levels * controls.unit / self._rate",
        "return controls.unit / self._rate",
        "tests/sums/test_level_trees.py::test_all_levels_together_cost_epsilon",
    ),
    Bug(
        "sums and queries",
        "the cap of values comes from true counts",
        "mechanisms/value_cap.py",
        "session.add(points.folded(partial(_bucketed, self.buckets)), self.scale)",
        "points.folded(partial(_bucketed, self.buckets))",
        "tests/sums/test_level_trees.py::test_one_row_costs_exactly_epsilon",
    ),
    Bug(
        "sums and queries",
        "levels of a tree of values share no budget",
        "mechanisms/log_tree.py",
        "return self.tree.levels / self.rate",
        "return 1 / self.rate",
        "tests/sums/test_log_tree.py::test_a_row_costs_exactly_epsilon",
    ),
    Bug(
        "sums and queries",
        "the number of rows is released without noise",
        "mechanisms/projected_laplace.py",
        "rows=int(session.add(data.total, self.rows_scale))",
        "rows=int(data.total)",
        "tests/projection/test_projected_laplace.py::test_all_neighbors_couple_within_epsilon",
    ),
    Bug(
        "sums and queries",
        "sums are cut at the true largest octave",
        "mechanisms/single_truncation.py",
        "[top_octave(noisy, self.octave_scale)]",
        "[top_octave(rows.octaves(self.tops), self.octave_scale)]",
        "tests/numerical/test_truncation.py::test_the_law_of_thresholds_and_sums_loses_exactly_epsilon",
    ),
    Bug(
        "sums and queries",
        "queries are chosen at half of the scale",
        "mechanisms/weights_rounds.py",
        "selection=2 * answer / rates.selection",
        "selection=answer / rates.selection",
        "tests/weights/test_weights_privacy.py::test_every_look_is_paid_for",
    ),
    Bug(
        "sums and queries",
        "the threshold of a session has no noise",
        "mechanisms/online_weights.py",
        'terms.threshold_units + noise.draw("laplace", terms.threshold_scale)',
        "terms.threshold_units",
        "tests/weights/test_online_weights.py::test_a_run_loses_at_most_its_rate",
    ),
    Bug(
        "sums and queries",
        "a run of a session is not charged",
        "mechanisms/online_weights.py",
        "            self._account.act()\n            self._run = AboveThreshold",
        "            self._run = AboveThreshold",
        "tests/weights/test_online_weights.py::test_a_run_is_charged_before_it_compares",
    ),
    Bug(
        "sums and queries",
        "answers to people with several rows have the noise of one",
        "inference/weights/change.py",
        "return Change(contributions * row, 2 if neighbors == CHANGE_ONE else 1)",
        "return Change(row, 2 if neighbors == CHANGE_ONE else 1)",
        "tests/projection/test_projected_laplace.py::test_people_with_several_rows_are_paid_for",
    ),
)

STREAMS: Final = (
    Bug(
        "streams",
        "nodes of a tree share one noise",
        "streams/supply.py",
        "return self._ready.pop()",
        "return self._ready[-1]",
        "tests/streams/test_tree_counter_privacy.py::test_the_shipped_trees_pass",
    ),
    Bug(
        "streams",
        "every level of a tree over time spends all of epsilon",
        "streams/tree_counter.py",
        "self._scale = shape.levels / rate",
        "self._scale = 1 / rate",
        "tests/streams/test_tree_counter_privacy.py::test_the_shipped_trees_pass",
    ),
    Bug(
        "streams",
        "nodes of a centred tree below the top have no noise",
        "streams/centred.py",
        "self._kept(self._noise.add(zeros, self._scale(self.plan.low, taper)))",
        "self._kept(zeros)",
        "tests/streams/test_centred_privacy.py::test_the_shipped_counter_passes",
    ),
    Bug(
        "streams",
        "the threshold of a sparse counter has no noise",
        "streams/sparse_counter.py",
        "self.plan.threshold + self._noise.draw(self.plan.law, self.scale)",
        "self.plan.threshold",
        "tests/streams/test_sparse_privacy.py::test_seals_lose_no_more_than_their_share",
    ),
    Bug(
        "streams",
        "sealed segments are counted with all of epsilon",
        "streams/sparse_inner.py",
        "epsilon=terms.epsilon * (PARTS - plan.seals) / PARTS",
        "epsilon=terms.epsilon",
        "tests/streams/test_sparse_privacy.py::test_seals_and_counts_together_lose_no_more_than_epsilon",
    ),
    Bug(
        "streams",
        "all siblings of a level have the noise of the first",
        "streams/columns.py",
        "if self.shape.opens(each, self.position):",
        "if self.shape.opens(each, self.position) and each not in self._rows:",
        "tests/streams/test_sliding_privacy.py::test_the_shipped_counter_passes",
    ),
    Bug(
        "streams",
        "a user counts once more than agreed",
        "streams/capping.py",
        "if seen == self.contributions:",
        "if seen > self.contributions:",
        "tests/streams/test_capping.py::test_a_user_moves_no_more_than_the_cap",
    ),
    Bug(
        "streams",
        "a counter goes on in a forked child",
        "streams/stepping.py",
        "            counter._abandon()\n\n    @property",
        "            counter._broken = counter._broken\n\n    @property",
        "tests/streams/test_every_counter.py::test_after_a_fork_no_counter_goes_on",
    ),
    Bug(
        "streams",
        "an event closes a period",
        "streams/durable/durable_stream.py",
        "                    self._keeper.add(some, complete=place == len(portions))\n",
        "                    self._keeper.add(some, complete=place == len(portions))\n"
        "                    self._keeper.close_period()\n",
        "tests/streams/durable/test_time.py::test_adding_returns_nothing_and_closes_nothing",
    ),
    Bug(
        "streams",
        "each portion of a call counts in the period in which it is stored",
        "streams/durable/durable_stream.py",
        "complete=place == len(portions)",
        "complete=True",
        "tests/streams/durable/test_calls.py::test_one_event_more_changes_one_cell",
    ),
    Bug(
        "streams",
        "requests share a transaction according to what they hold",
        "streams/durable/events.py",
        "        if not isinstance(call, Fed):\n            yield call\n",
        "        if not isinstance(call, Fed) and len(call) == 1:\n            singles += call\n"
        "        elif not isinstance(call, Fed):\n            yield call\n",
        "tests/streams/durable/test_calls.py::test_one_event_more_in_a_request_moves_no_other_request",
    ),
    Bug(
        "streams",
        "a call that was cut off is known after a restart, and never counts",
        "streams/durable/journal.py",
        "            while drop_portion(connection, settings):\n                pass\n",
        "",
        "tests/streams/durable/test_calls.py::test_a_call_that_is_killed_counts_nothing_and_is_forgotten",
    ),
    Bug(
        "streams",
        "a call that was cut off counts with the next one",
        "streams/durable/journal.py",
        "        self._partial = False\n        self._call.clear()\n",
        "",
        "tests/streams/durable/test_calls.py::test_a_call_that_the_disk_refuses_counts_nothing",
    ),
    Bug(
        "streams",
        "the public sees a period before the ledger hears of it",
        "streams/durable/durable_stream.py",
        "            if self._writer is not None:\n"
        "                self._writer.reach(closed, self._witness(closed))\n"
        "            self._file.write(self._published, self._keeper.records(since=self._published))\n",
        "            self._file.write(self._published, self._keeper.records(since=self._published))\n"
        "            if self._writer is not None:\n"
        "                self._writer.reach(closed, self._witness(closed))\n",
        "tests/streams/durable/test_opening.py::test_the_ledger_hears_of_a_period_before_the_public",
    ),
    Bug(
        "streams",
        "a person has one event more than agreed in a stream on disk",
        "streams/durable/memory.py",
        "WHERE person = ?1) < ?3",
        "WHERE person = ?1) <= ?3",
        "tests/streams/durable/test_events.py::test_a_person_counts_no_more_often_than_agreed",
    ),
)

PAN: Final = (
    Bug(
        "pan-privacy",
        "an output has no noise of its own",
        "streams/pan_blocks.py",
        "            self._pour(cells[level : level + 1])\n",
        "",
        "tests/streams/test_pan_planted_bugs.py::test_the_shipped_counters_are_safe",
    ),
    Bug(
        "pan-privacy",
        "open intervals hold plain counts",
        "streams/pan_blocks.py",
        "if begun > self._first_noisy:",
        "if begun < self._first_noisy:",
        "tests/streams/test_pan_planted_bugs.py::test_the_shipped_counters_are_safe",
    ),
    Bug(
        "pan-privacy",
        "the bit of somebody who came is set",
        "pan/bit_sketch.py",
        "self._bits[places] = chances(self._noise, self._coin.redraw, places.size)",
        "self._bits[places] = True",
        "tests/pan/test_planted_bugs.py::test_the_shipped_sketches_are_safe",
    ),
    Bug(
        "pan-privacy",
        "the fraction of ones is released without noise",
        "pan/density.py",
        "noisy = self._noise.add(int(self._bits.sum()), readout.scale(self.output))",
        "noisy = int(self._bits.sum())",
        "tests/pan/test_planted_bugs.py::test_the_shipped_sketches_are_safe",
    ),
    Bug(
        "pan-privacy",
        "an epoch goes on with the table of the one before",
        "pan/sketch.py",
        "        self._erase()\n        if not self._over:\n            self._fill()",
        "        if self._over:\n            self._erase()",
        "tests/pan/test_joint_loss.py::test_an_announced_look_sees_nothing_old",
    ),
    Bug(
        "pan-privacy",
        "the cells of a durable counter are on disk beside those in memory",
        "streams/durable/slots.py",
        "_joined(self._settings, counter.restart_state()), sequence",
        "_joined(self._settings, counter.state()), sequence",
        "tests/streams/durable/test_pan_file.py",
    ),
    Bug(
        "pan-privacy",
        "what a restart needs has the cells of the block",
        "streams/pan_private.py",
        "carried=self._noises(), cells=_zeros()",
        "carried=self._noises(), cells=self._cells",
        "tests/streams/durable/test_pan_file.py",
    ),
    Bug(
        "pan-privacy",
        "a file of an earlier version keeps its cells",
        "streams/durable/slots.py",
        "        if counter.state() != state:\n            self._save(counter)\n",
        "",
        "tests/streams/durable/test_pan_file.py::test_old_files_are_read_and_lose_their_cells_at_once",
    ),
    Bug(
        "pan-privacy",
        "the cells of a counter that was dropped stay in memory",
        "streams/durable/slots.py",
        "        if self._counter is not None:\n            self._counter.abandon()\n",
        "        return\n",
        "tests/streams/durable/test_pan_file.py::test_a_counter_that_is_closed_or_dropped_leaves_no_cells_in_memory",
    ),
    Bug(
        "pan-privacy",
        "ids lie in the clear beside a pan-private counter",
        "streams/capping.py",
        "if isinstance(counter, PanPrivateCounter):",
        "if isinstance(counter, PanPrivateCounter) and counter.guarantee is None:",
        "tests/streams/test_capping.py::test_a_pan_private_counter_is_refused",
    ),
    Bug(
        "pan-privacy",
        "places of those who came stay in memory",
        "pan/draws.py",
        "        places.fill(0)",
        "        places.fill(0) if not places.size else None",
        "tests/pan/test_memory.py::test_the_places_of_a_batch_are_overwritten",
    ),
)

LOCAL: Final = (
    Bug(
        "local model",
        "the truth is told a little too often",
        "local/response.py",
        "truth = draws.chance(self.threshold)",
        "truth = draws.chance(self.threshold + 1)",
        "tests/local/test_laws.py::test_a_device_samples_exactly_its_law",
    ),
    Bug(
        "local model",
        "the bucket that stands for a lie may be the true one",
        "local/hashing.py",
        "other + (other >= bucket)",
        "other + (other > bucket)",
        "tests/local/test_laws.py::test_a_device_samples_exactly_its_law",
    ),
    Bug(
        "local model",
        "a server may raise the probability of the truth",
        "local/randomizer.py",
        'if not least <= integer(given, "threshold") <= most:',
        'if not least <= integer(given, "threshold"):',
        "tests/local/test_laws.py::test_the_threshold_is_the_largest_private_one",
    ),
    Bug(
        "local model",
        "a device answers the same question afresh",
        "local/device.py",
        "if asked.digest not in memo:",
        "if asked.digest is not memo:",
        "tests/local/test_planted_bugs.py::test_the_device_that_ships_is_cautious",
    ),
    Bug(
        "local model",
        "a device answers beyond its budget",
        "local/device.py",
        "if question.epsilon > left:",
        "if question.epsilon > self.budget:",
        "tests/local/test_device.py::test_a_budget_of_three_thirds_pays_three_times",
    ),
)

LEDGER: Final = (
    Bug(
        "ledger",
        "amounts are added as floats",
        "ledger/amount.py",
        "return Amount(self.epsilon + other.epsilon, self.delta + other.delta)",
        "return Amount(Fraction(float(self.epsilon) + float(other.epsilon)), self.delta + other.delta)",
        "tests/ledger/test_arithmetic.py::test_random_debits_never_pass_the_total",
    ),
    Bug(
        "ledger",
        "charges are rounded down",
        "ledger/debit.py",
        "str(debit.charged.epsilon),",
        "str(Fraction(int(debit.charged.epsilon * 10**9), 10**9)),",
        "tests/ledger/test_arithmetic.py::test_three_thirds_are_one",
    ),
    Bug(
        "ledger",
        "a larger delta fits",
        "ledger/amount.py",
        "return self.epsilon <= room.epsilon and self.delta <= room.delta",
        "return self.epsilon <= room.epsilon",
        "tests/ledger/test_arithmetic.py::test_delta_adds_up_as_epsilon_does",
    ),
    Bug(
        "ledger",
        "parts of different columns are taken to be disjoint",
        "ledger/spending.py",
        "return sum(columns.values(), start=self.sums.get(None, _NOTHING))",
        "return reduce(or_, columns.values(), _NOTHING) + self.sums.get(None, _NOTHING)",
        "tests/ledger/test_parts.py::test_spent_is_the_most_that_any_person_lost",
    ),
    Bug(
        "ledger",
        "the same key is charged again",
        "ledger/book.py",
        'earlier = None if debit.key is None else find_debit(connection, "key", debit.key)',
        "earlier = None",
        "tests/ledger/test_keys.py::test_a_done_debit_comes_back_without_a_charge",
    ),
    Bug(
        "ledger",
        "a key pays for another request",
        "ledger/book.py",
        "if not earlier.same_request(debit):",
        "if earlier.dataset != debit.dataset:",
        "tests/ledger/test_keys.py::test_a_key_for_another_request_is_refused",
    ),
    Bug(
        "ledger",
        "lost budget is given back",
        "ledger/tables.py",
        'FROM entries WHERE dataset = ?"\n',
        "FROM entries WHERE dataset = ? AND state <> 'lost'\"\n",
        "tests/ledger/test_keys.py::test_lost_budget_stays_spent",
    ),
)

PUBLISHING: Final = (
    Bug(
        "publishing",
        "noise is drawn before the debit",
        "publishing/account.py",
        '        debit = self._debit()\n        if debit.state == "done":\n'
        "            return self._loaded(store.place, debit)\n        try:\n            release = make()\n",
        '        release = make()\n        debit = self._debit()\n        if debit.state == "done":\n'
        "            return self._loaded(store.place, debit)\n        try:\n            pass\n",
        "tests/publish/test_spending.py::test_a_failure_after_the_debit_loses_it",
    ),
    Bug(
        "publishing",
        "a release names the path that it was stored at",
        "publishing/pipeline.py",
        "version=partita.__version__,",
        'version=f"{partita.__version__} {path}",',
        "tests/publish/test_publish.py::test_provenance_holds_public_facts_only",
    ),
    Bug(
        "publishing",
        "a release names the number of rows",
        "publishing/pipeline.py",
        "return store.keep(draw(request, counted, provenance))",
        "about = {**vars(provenance), 'version': f'{counted[0].histogram.total} rows'}\n"
        "    return store.keep(draw(request, counted, Provenance(**about)))",
        "tests/publish/test_publish.py::test_provenance_holds_public_facts_only",
    ),
)

SHOWN: Final = (
    Bug(
        "what is shown",
        "progress shows how many rows there are",
        "publishing/making.py",
        "            counted.append(view.counted(rows(first[frozenset(view.columns)])))\n",
        "            counted.append(view.counted(rows(first[frozenset(view.columns)])))\n"
        '        with phase(f"{counted[0].histogram.total} rows"):\n            pass\n',
        "tests/publish/test_publish.py::test_progress_on_a_terminal_shows_phases_and_time_only",
    ),
    Bug(
        "what is shown",
        "an error shows what was counted",
        "streams/base.py",
        'InvalidData("x", "must be an integer between -2^62 and 2^62", fix',
        'InvalidData("x", f"must be an integer between -2^62 and 2^62, not {x!r}", fix',
        "tests/streams/test_base.py::test_only_integers_are_counted_and_none_is_shown",
    ),
    Bug(
        "what is shown",
        "an error drags along the one that it stands for",
        "unchained.py",
        "        pass\n    raise failure",
        "        raise failure from None\n    raise failure",
        "tests/core/test_unchained.py::test_an_error_about_data_has_no_cause_and_no_context",
    ),
    Bug(
        "what is shown",
        "a printed histogram shows its number of rows",
        "histogram.py",
        "contributions={self.contributions}, secret)",
        "contributions={self.contributions}, rows={self.total})",
        "tests/core/test_histogram.py::test_printing_shows_public_facts_only",
    ),
)

SOURCES: Final = (
    Bug(
        "sources",
        "a person keeps one row too many",
        "sources/bounding.py",
        "heapq.nsmallest(limit, ",
        "heapq.nsmallest(limit + 1, ",
        "tests/sources/test_bounding.py::test_the_rows_with_the_smallest_numbers_are_kept",
    ),
    Bug(
        "sources",
        "rows without an id are several persons",
        "sources/bounding.py",
        'return b"" if math.isnan(value) else str(value).encode()',
        "return str(value).encode()",
        "tests/sources/test_bounding.py::test_rows_without_an_id_are_one_person",
    ),
    Bug(
        "sources",
        "a quote that is left open swallows the rows after it",
        "sources/lines.py",
        "feeds = np.flatnonzero(data == _FEED)",
        "feeds = np.flatnonzero((data == _FEED) & (np.cumsum(data == ord('\"')) % 2 == 0))",
        "tests/sources/test_lines.py::test_an_open_quote_spoils_its_own_row_only",
    ),
    Bug(
        "sources",
        "rows of other parts are counted too",
        "sources/tally.py",
        "encoded.special == Special.ORDINARY)",
        "encoded.special != Special.NULL)",
        "tests/sources/test_where.py::test_every_row_is_in_one_part_at_most",
    ),
    Bug(
        "sources",
        "a library's error, with rows in it, is the context of ours",
        "sources/quiet.py",
        "        interrupted = _is_interrupt(error)\n    raise KeyboardInterrupt if interrupted else failure",
        "        raise KeyboardInterrupt if _is_interrupt(error) else failure from None",
        "tests/sources/test_errors.py::test_no_value_is_ever_shown",
    ),
    Bug(
        "sources",
        "a number that is rounded to a bound counts as beyond it",
        "domain/grid.py",
        "(2 * rest == over and whole % 2)",
        "(2 * rest == over and (whole % 2 or whole == self.high))",
        "tests/domain/test_numbers.py::test_rounding_comes_before_the_bounds",
    ),
)

FILES: Final = (
    Bug(
        "files",
        "a checksum is not compared",
        "releases/spec.py",
        'if self.spec["checksum"] != checksum(self.spec, self.values):',
        'if not self.spec["checksum"]:',
        "tests/release_file/test_refusals.py::test_any_changed_number_breaks_the_checksum",
    ),
    Bug(
        "files",
        "a file may promise more than its noise keeps",
        "releases/promise.py",
        "if not all(view.keeps_its_promise for view in views):",
        "if not views:",
        "tests/release_file/test_refusals.py::test_a_forged_guarantee_is_refused_even_where_it_adds_up",
    ),
    Bug(
        "files",
        "a signature covers the context only",
        "releases/signing.py",
        'return _CONTEXT + bytes.fromhex(text(stored.spec["checksum"])) + to_canonical(stored.spec)',
        "return _CONTEXT",
        "tests/release_file/test_signing.py::test_a_signature_belongs_to_one_release",
    ),
)

SERVICE: Final = (
    Bug(
        "service",
        "an output is shown without the delay",
        "service/reading/watching.py",
        "settings.schedule.ended(self.moment - self._every)",
        "settings.schedule.ended(self.moment)",
        "tests/service/streams/test_public_time.py::test_the_public_side_is_the_same_but_for_the_values",
    ),
    Bug(
        "service",
        "whoever asks has the service look anew",
        "service/reading/watching.py",
        "        if not self.moment:\n            self.look()",
        "        self.look()",
        "tests/service/streams/test_public_time.py::test_an_output_that_is_later_than_the_delay_is_shown_at_a_whole_multiple_of_it",
    ),
    Bug(
        "service",
        "the public number of a token proves its name",
        "service/access/tokens.py",
        "proven = hmac.compare_digest(expected, _digest(text))",
        "proven = hmac.compare_digest(expected, expected)",
        "tests/service/access/test_tokens.py::test_a_token_proves_its_name",
    ),
    Bug(
        "service",
        "a token has every scope",
        "service/access/guard.py",
        "if need.scope not in caller.scopes:",
        "if not caller.scopes:",
        "tests/service/access/test_guard.py::test_scopes_are_separate",
    ),
    Bug(
        "service",
        "an unexpected error is shown in its own words",
        "service/web/errors.py",
        'return Refusal(500, "InternalError", _INTERNAL)',
        'return Refusal(500, "InternalError", str(error))',
        "tests/service/web/test_errors.py::test_no_error_carries_a_secret",
    ),
)

BUGS: Final = (
    *NOISE,
    *GUARANTEES,
    *AXES,
    *BOXES,
    *SUMS,
    *STREAMS,
    *PAN,
    *LOCAL,
    *LEDGER,
    *PUBLISHING,
    *SHOWN,
    *SOURCES,
    *FILES,
    *SERVICE,
)
