"""Problems with known answers, from the hub, from a file, or made here."""

from data_gen.benchmarks.choices import ChoiceTable
from data_gen.benchmarks.drawn import DrawnBenchmark
from data_gen.benchmarks.math_table import MathTable
from data_gen.benchmarks.problem import Benchmark, Problem, checksum

__all__ = ["Benchmark", "ChoiceTable", "DrawnBenchmark", "MathTable", "Problem", "checksum"]
