"""What must not be used, and why: shown by tests, offered to nobody.

The book lets a bit start fair and draws it again with bias 1/2 + epsilon, and says that this is (epsilon, 0)
private [DR14, section 12.2]. It is not: a bit that shows 0 is rarer by 1 - 2 epsilon if its user came, a loss
of -ln(1 - 2 epsilon): 0.69 at epsilon 0.25, and without bound as epsilon goes to 1/2. Its estimate
2 (y - m/2) / m is also too small by the factor 2 epsilon. `Density(variant="book")` has the bias
(1 - e^-epsilon) / 2, and divides by it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from partita.errors.checks import check
from partita.numbers import rational
from partita.pan.sketch.coin import Coin
from partita.pan.sketch.draws import WORD


def literal_book_coin(epsilon: object) -> Coin:
    """The biases as they are printed: 1/2, then 1/2 + epsilon.

    >>> float(literal_book_coin("0.25").q1)
    0.75
    """
    bias = _bias(epsilon)
    return Coin(start=WORD // 2, redraw=WORD // 2 + int(bias * WORD))


def literal_book_loss(epsilon: object) -> float:
    """What that loses at one look, of which it is said that it is epsilon.

    >>> round(literal_book_loss("0.25"), 2)
    0.69
    """
    return -math.log(1 - 2 * float(_bias(epsilon)))


def _bias(epsilon: object) -> Fraction:
    exact = rational(epsilon, "epsilon")
    check(0 < exact < Fraction(1, 2), "epsilon", "must lie between 0 and 1/2", given=epsilon, fix="pass 0.25")
    return exact
