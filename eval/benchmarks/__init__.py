"""Problems with known answers, from the hub, from a file, or made here."""

from eval.benchmarks.choices import ChoiceTable
from eval.benchmarks.drawn import DrawnBenchmark
from eval.benchmarks.math_table import MathTable
from eval.benchmarks.problem import Benchmark, Problem, checksum

__all__ = ["Benchmark", "ChoiceTable", "DrawnBenchmark", "MathTable", "Problem", "checksum"]
