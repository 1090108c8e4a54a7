"""Nodes above labels: counties above tracts above blocks, each a range of neighbouring cells.

Labels are declared from the top down, so the cells of every node are a range. `read_tree` takes what is
declared apart into labels and nodes, and `LabelTree` checks nodes and names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from partita.errors import InvalidParameter, check
from partita.lazy import cached_property

MOST_LEVELS: Final = 12
"""Of a hierarchy, the labels' own level among them: levels share epsilon."""

MOST_NODES: Final = 2**22
"""Above the labels of one column."""

SEPARATOR: Final = " > "
"""Between the labels of a path from the top."""

_EXAMPLE: Final = 'pass for example {"Kent": {"Tract 1": ["Block 1", "Block 2"]}, "Essex": ["Block 9"]}'


class LabelNode(NamedTuple):
    """A label with others below it, and the first and the last cell of those."""

    label: str
    first: int
    last: int


def nest_ranges(ranges: Sequence[tuple[int, int]], size: int) -> npt.NDArray[np.int64]:
    """The level of each of some ranges of the cells 0, ..., size-1, which lie inside or beside each other.

    They are in the order of their first cells, each before those inside of it.

    >>> nest_ranges([(0, 3), (0, 1), (5, 6)], 8).tolist()
    [0, 1, 0]
    """
    rule, fix = "must be ranges of cells inside or beside each other", "list each before those inside of it"
    depths, outer, before = np.zeros(len(ranges), np.int64), [(0, size - 1)], (0, size)
    for number, (first, last) in enumerate(ranges):
        while len(outer) > 1 and first > outer[-1][1]:
            outer.pop()
        inside = outer[-1][0] <= first <= last <= outer[-1][1]
        check(inside and (first, -last) >= (before[0], -before[1]), "nodes", rule, given=number, fix=fix)
        depths[number], before = len(outer) - 1, (first, last)
        outer.append(before)
        most = f"must have at most {MOST_LEVELS} levels"
        check(len(outer) <= MOST_LEVELS, "nodes", most, given="more", fix="leave some levels out")
    return depths


def count_covers(ranges: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """How many of some ranges hold each of the cells 0, ..., size-1."""
    first, last = ranges.reshape(-1, 2).T
    steps = np.bincount(first, minlength=size + 1) - np.bincount(last + 1, minlength=size + 1)
    return np.asarray(np.cumsum(steps)[:-1], np.int64)


@final
@dataclass(frozen=True)
class LabelTree:
    """Nodes above some labels, in the order of their cells, and each before the nodes inside of it.

    Level 0 is the top. A label that has fewer nodes above it than others stands for itself on all levels
    below its own. `levels` may name the levels.
    """

    labels: tuple[str, ...]
    nodes: tuple[LabelNode, ...]
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        fix = "name each level once, from the top to that of the labels"
        rule = f"must be {self.number} different names, one for each level, or none"
        fits = not self.levels or len(self.levels) == len(set(self.levels)) == self.number
        check(fits, "levels", rule, given=", ".join(self.levels), fix=fix)
        for name, times in Counter(self._paths).items():
            taken = times > 1 or name in self._cells
            rule, fix = "must have names unlike those of others", "rename the node, or the label"
            check(not taken, "nodes", rule, given=name, fix=fix)

    @cached_property
    def depths(self) -> npt.NDArray[np.int64]:
        """The level of each node."""
        return nest_ranges(self.ranges, len(self.labels))

    @cached_property
    def label_depths(self) -> npt.NDArray[np.int64]:
        """The level of each label: the number of nodes above it."""
        return count_covers(np.array(self.ranges), len(self.labels))

    @property
    def number(self) -> int:
        """How many levels there are, that of the labels among them."""
        return int(self.depths.max()) + 2

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The first and the last cell of each node."""
        return tuple((node.first, node.last) for node in self.nodes)

    def level(self, given: object, name: str) -> int:
        """The number of a level, by its name or its number from the top."""
        if isinstance(given, str) and given in self.levels:
            return self.levels.index(given)
        text = given if isinstance(given, str) else ""
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 3 else given
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < self.number:
            return number
        named = f", or one of {', '.join(self.levels)}" if self.levels else ""
        rule = f"must be a level from 0 (the top) to {self.number - 1} (the labels){named}"
        raise InvalidParameter(name, rule, given=given, fix="choose one of them")

    def groups(self, level: int) -> list[tuple[str, int, int]]:
        """All of one level in order: the name, the first and the last cell of each. All cells are in one."""
        alone = np.flatnonzero(self.label_depths <= level).tolist()
        found = [(self.labels[cell], cell, cell) for cell in alone]
        for number in np.flatnonzero(self.depths == level).tolist():
            _, first, last = self.nodes[number]
            found.append((self.names[number], first, last))
        return sorted(found, key=lambda each: each[1])

    def count(self, level: int) -> int:
        """How many `groups` there are of a level."""
        return int((self.label_depths <= level).sum()) + int((self.depths == level).sum())

    @cached_property
    def names(self) -> list[str]:
        """What each node is called: its label, or its path where something else has that label, too."""
        times, paths = Counter(node.label for node in self.nodes), set(self._paths)
        taken = {label for label, number in times.items() if number > 1} | paths | self._cells.keys()
        named = zip(self.nodes, self._paths, strict=True)
        return [path if node.label in taken else node.label for node, path in named]

    def find(self, text: str) -> tuple[int, int] | None:
        """The first and the last cell of a node by its name or its path, or of a label by its path."""
        if text in self._named:
            node = self.nodes[self._named[text]]
            return node.first, node.last
        above, separator, label = text.rpartition(SEPARATOR)
        cell, whole = self._cells.get(label, -1), self._named.get(above, -1)
        inside = separator and cell >= 0 and whole >= 0
        if inside and self.nodes[whole].first <= cell <= self.nodes[whole].last:
            return cell, cell
        return None

    @property
    def known(self) -> Iterator[str]:
        """All names of nodes."""
        return iter(self._named)

    def ending(self, label: str) -> str | None:
        """The path of a node with this label."""
        return next((path for path in self._paths if path.endswith(f"{SEPARATOR}{label}")), None)

    def nested(self) -> dict[str, Any]:
        """The declaration: nodes as tables, and labels side by side as a list."""
        found: dict[str, Any] = {}
        stack, cell, last = [found], 0, [len(self.labels) - 1]
        for (label, first, behind), depth in zip(self.nodes, self.depths.tolist(), strict=True):
            for at in range(cell, first):
                self._place(stack, last, at)[self.labels[at]] = None
            cell = max(cell, first)
            del stack[depth + 1 :], last[depth + 1 :]
            stack.append({})
            stack[-2][label] = stack[-1]
            last.append(behind)
        for at in range(cell, len(self.labels)):
            self._place(stack, last, at)[self.labels[at]] = None
        return {label: _shorten(each) for label, each in found.items()}

    @staticmethod
    def _place(stack: list[dict[str, Any]], last: list[int], cell: int) -> dict[str, Any]:
        """The innermost table that holds a cell."""
        while last[-1] < cell:
            stack.pop()
            last.pop()
        return stack[-1]

    @cached_property
    def _paths(self) -> list[str]:
        """The labels of each node and those above it."""
        found, above = list[str](), list[str]()
        for (label, _, _), depth in zip(self.nodes, self.depths.tolist(), strict=True):
            del above[depth:]
            above.append(f"{above[-1]}{SEPARATOR}{label}" if above else label)
            found.append(above[-1])
        return found

    @cached_property
    def _named(self) -> dict[str, int]:
        """The number of each node by its name and by its path."""
        named = {name: number for number, name in enumerate(self.names)}
        return named | {path: number for number, path in enumerate(self._paths)}

    @cached_property
    def _cells(self) -> dict[str, int]:
        return {label: cell for cell, label in enumerate(self.labels)}


def _shorten(nested: Any) -> Any:
    """Labels without others below them as a list."""
    if nested is None:
        return None
    if all(each is None for each in nested.values()):
        return list(nested)
    return {label: _shorten(each) for label, each in nested.items()}


# Declarations: tables inside tables, paths, and texts of a spec.


def read_nested(given: Mapping[Any, Any]) -> tuple[list[str], list[LabelNode]]:
    """The labels and the nodes of tables inside tables; labels that stand twice are named by their paths."""
    paths: list[tuple[str, ...]] = []
    nodes: list[LabelNode] = []
    _walk(given, (), paths, nodes)
    check(paths, "labels", "must not be empty", given="no labels", fix=_EXAMPLE)
    labels = [path[-1] for path in paths]
    if len(set(labels)) < len(labels):
        labels = [SEPARATOR.join(path) for path in paths]
    return labels, nodes


def _walk(given: Any, above: tuple[str, ...], paths: list[tuple[str, ...]], nodes: list[LabelNode]) -> None:
    """Add what a table or a list holds."""
    if isinstance(given, Mapping):
        entries: Iterable[tuple[Any, Any]] = given.items()
    else:
        listed = isinstance(given, Sequence) and not isinstance(given, str | bytes)
        shown = SEPARATOR.join(above)
        check(listed, "labels", "must be tables of tables, and lists of labels", given=shown, fix=_EXAMPLE)
        entries = ((label, None) for label in given)
    rule, fix = f"must have at most {MOST_LEVELS} levels", "leave some levels out"
    check(len(above) < MOST_LEVELS, "labels", rule, given="more", fix=fix)
    for label, below in entries:
        if not isinstance(label, str) or not label:
            raise InvalidParameter("labels", "must be texts, none empty", given=label, fix=_EXAMPLE)
        path = (*above, label)
        if below is None or (isinstance(below, list | tuple) and not below):
            paths.append(path)
            continue
        number, first = len(nodes), len(paths)
        nodes.append(LabelNode(label, first, first))
        _walk(below, path, paths, nodes)
        rule, fix = "must have labels below each node", "pass None, or an empty list, for a label"
        check(len(paths) > first, "labels", rule, given=label, fix=fix)
        nodes[number] = LabelNode(label, first, len(paths) - 1)
        rule, fix = f"must have at most {MOST_NODES:,} nodes", "leave the lowest nodes out"
        check(len(nodes) <= MOST_NODES, "labels", rule, given="more", fix=fix)


def nest_paths(paths: Iterable[Sequence[str]], shown: str) -> dict[str, Any]:
    """Paths from the top, one after another, as tables inside tables; empty texts at the end are left out.

    No error shows a path: it may be data.
    """
    found: dict[str, Any] = {}
    for path in paths:
        length = max((place for place, label in enumerate(path, 1) if label), default=0)
        rule, fix = f"must be whole paths from the top in {shown}", "leave out lower levels only"
        check(length and all(path[:length]), "labels", rule, given=shown, fix=fix)
        at: Any = found
        for label in path[: length - 1]:
            at = at.setdefault(label, {})
            rule, fix = "must not be both a label and a node above others", "give it a path of its own"
            check(at is not None, "labels", rule, given=shown, fix=fix)
        rule, fix = f"must name each label once in {shown}", "remove what is listed twice"
        check(path[length - 1] not in at, "labels", rule, given=shown, fix=fix)
        at[path[length - 1]] = None
    return found


def write_nodes(nodes: Iterable[LabelNode]) -> list[str]:
    """Each node as text: its first cell, its last cell, its label.

    >>> write_nodes([LabelNode("Kent", 0, 7)]), read_nodes(["0 7 Kent"])
    (['0 7 Kent'], (LabelNode(label='Kent', first=0, last=7),))
    """
    return [f"{first} {last} {label}" for label, first, last in nodes]


def read_nodes(given: object) -> tuple[LabelNode, ...]:
    """The nodes that `write_nodes` wrote."""
    fix = "pass what to_spec returned"
    listed = given if isinstance(given, list | tuple) and 0 < len(given) <= MOST_NODES else None
    rule = f"must be a list of 1 to {MOST_NODES:,} texts"
    check(listed is not None, "nodes", rule, given=type(given).__name__, fix=fix)
    found = [_read_node(each) for each in listed or ()]
    for node, each in zip(found, listed or (), strict=True):
        rule = 'must each be text like "0 7 Kent"'
        if node is None:
            raise InvalidParameter("nodes", rule, given=each, fix=fix)
    return tuple(node for node in found if node is not None)


def _read_node(given: object) -> LabelNode | None:
    first, _, rest = given.partition(" ") if isinstance(given, str) else ("", "", "")
    last, _, label = rest.partition(" ")
    numbers = all(each.isascii() and each.isdigit() and len(each) <= 10 for each in (first, last))
    if not numbers or not label or (str(int(first)), str(int(last))) != (first, last):
        return None
    return LabelNode(label, int(first), int(last))
