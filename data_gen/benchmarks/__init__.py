"""Problems with known answers, from the hub, from a file, or made here."""

from data_gen.benchmarks.drawn import DrawnBenchmark
from data_gen.benchmarks.problem import Benchmark, Problem, checksum
from data_gen.benchmarks.tables import ChoiceTable, MathTable

__all__ = ["Benchmark", "ChoiceTable", "DrawnBenchmark", "MathTable", "Problem", "checksum"]
