"""The local model: everybody randomizes on their own device, and only reports are collected.

    Frequency(1024, epsilon=1)           how many people hold each of 1,024 values
    Mean(0, 24, epsilon=1)               the mean of numbers between 0 and 24
    Range(1024, epsilon=1)               how many people lie in any range; quantiles
    Rectangles({"x": 32, "y": 32}, ...)  how many people lie in any box of columns
    Device("state.json", budget=4)       what answers on a person's side, with a budget of its own
    question.aggregator()                counts reports, and estimates
    LROracle(values, book)               local randomizers within everybody's budget, for simulations
    SQOracle(oracle, epsilon=1)          statistical queries, each from people who were never asked

Names are loaded when they are first used: a device needs the standard library only.
"""

from partita.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
