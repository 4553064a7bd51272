"""What follows a quantity: its unit, the modulus that it is a residue of, the base that it is written in."""

import re
from dataclasses import dataclass

# Names of a unit in lower case, then what it is compared as. A unit that is not here is dropped and never compared.
_NAMES = {
    **dict.fromkeys(("mm", "millimeter", "millimetre"), "mm"),
    **dict.fromkeys(("cm", "centimeter", "centimetre"), "cm"),
    **dict.fromkeys(("m", "meter", "metre"), "m"),
    **dict.fromkeys(("km", "kilometer", "kilometre"), "km"),
    **dict.fromkeys(("in", "inch", "inches", "''"), "in"),
    **dict.fromkeys(("ft", "foot", "feet"), "ft"),
    **dict.fromkeys(("yd", "yard"), "yd"),
    **dict.fromkeys(("mi", "mile"), "mi"),
    **dict.fromkeys(("s", "sec", "second"), "s"),
    **dict.fromkeys(("min", "minute"), "min"),
    **dict.fromkeys(("h", "hr", "hour"), "h"),
    **dict.fromkeys(("day",), "day"),
    **dict.fromkeys(("week",), "week"),
    **dict.fromkeys(("month",), "month"),
    **dict.fromkeys(("yr", "year"), "year"),
    **dict.fromkeys(("mg", "milligram"), "mg"),
    **dict.fromkeys(("g", "gram"), "g"),
    **dict.fromkeys(("kg", "kilogram"), "kg"),
    **dict.fromkeys(("lb", "pound"), "lb"),
    **dict.fromkeys(("oz", "ounce"), "oz"),
    **dict.fromkeys(("ml", "milliliter", "millilitre"), "ml"),
    **dict.fromkeys(("l", "liter", "litre"), "l"),
    **dict.fromkeys(("n", "newton"), "N"),
    **dict.fromkeys(("j", "joule"), "J"),
    **dict.fromkeys(("w", "watt"), "W"),
    **dict.fromkeys(("v", "volt"), "V"),
    **dict.fromkeys(("a", "amp", "ampere"), "A"),
    **dict.fromkeys(("k", "kelvin"), "K"),
    **dict.fromkeys(("c", "celsius"), "C"),
    **dict.fromkeys(("f", "fahrenheit"), "F"),
    **dict.fromkeys(("hz", "hertz"), "Hz"),
    **dict.fromkeys(("pa", "pascal"), "Pa"),
    **dict.fromkeys(("mol", "mole"), "mol"),
    **dict.fromkeys(("ohm", "\\omega"), "ohm"),
    **dict.fromkeys(("am", "a.m"), "am"),
    **dict.fromkeys(("pm", "p.m"), "pm"),
    **dict.fromkeys(("degree", "deg"), "degree"),
    **dict.fromkeys(("radian", "rad"), "radian"),
    **dict.fromkeys(("dollar", "usd", "buck"), "dollar"),
    **dict.fromkeys(("cent",), "cent"),
    **dict.fromkeys(("percent",), "percent"),
}
_SHORT = {"mph": "mi/h", "kph": "km/h", "mps": "m/s", "fps": "ft/s", "sq": "square", "cu": "cubic"}
_BEFORE = {"square": 2, "cubic": 3}
_AFTER = {"squared": 2, "cubed": 3}
_TOKEN = re.compile(r"/|[A-Za-z.]+|''|\\Omega|\^ ?\{? ?-?\d")
# A single letter is a unit in these cases only (5 m), since 5 x is a product.
_LETTERS = frozenset("mshgLlNJWVAKCF")
_NOT_UNITS = frozenset(
    "and or to of if is are at by for from than not nor with where when plus minus times mod base half dozen hundred "
    "thousand million billion trillion pi sqrt sin cos tan csc cot log ln exp max gcd lcm infinity".split()
)
_EXPONENT = r"(?: ?\^ ?(?:\{ ?-?\d ?\}|-?\d))?"
_WORD = rf"(?:[A-Za-z][A-Za-z]*(?:\.[a-z]\.?|\.)?|''|\\Omega){_EXPONENT}"
_TAIL = re.compile(rf" ?-?{_WORD}(?:(?: ?(?:/|\\cdot|\*) ?| per |-| ){_WORD})*$")
_TAIL_START = re.compile(r"(?:(?<=[\d)}\].]) ?-?|(?<=[A-Za-z]) )(?=[A-Za-z'\\])")
MOST_STARTS = 12  # words that a unit may have
_ORDINAL = re.compile(r"(?<=\d) ?\^? ?\{? ?(?:st|nd|rd|th) ?\}?(?= |$)")
_IN_BRACKETS = re.compile(r"\(([A-Za-z ]{3,})\)$")
_MICRO = re.compile(r" ?\\mu ?(?=[a-z]+$)")
_MODULUS = re.compile(r" ?(?:\\p?b?mod|\\pod|\(? ?mod)(?![A-Za-z]) ?\{? ?(\w+) ?\}? ?\)?$")
_BASE = re.compile(
    r"^\(?([0-9A-Za-z][0-9A-Za-z,. ]*?)\)? ?"
    r"(?:_ ?\{? ?\(? ?(\w+) ?\)? ?\}?|\(? ?\{? ?(?:in )?base[ -]?(\w+) ?\}? ?\)?)$"
)
_BASE_WORDS = dict(
    zip("two three four five six seven eight nine ten eleven twelve sixteen".split(), (*range(2, 13), 16), strict=True)
)


@dataclass(frozen=True)
class Quantity:
    """A quantity and what is said of it.

    Attributes
    ----------
    text : str
        The quantity without the rest.
    unit : dict of str to int, or None
        Powers of the known units; None where there is no unit, or one that is not known.
    modulus : str or None
        What it is a residue of.
    base : int or None
        The base that it is written in.
    """

    text: str
    unit: dict[str, int] | None = None
    modulus: str | None = None
    base: int | None = None

    def agrees(self, other: "Quantity") -> bool:
        """Whether unit, modulus and base are the same; what only one side names is dropped."""
        pairs = ((self.unit, other.unit), (self.modulus, other.modulus), (self.base, other.base))
        return all(ours is None or theirs is None or ours == theirs for ours, theirs in pairs)


def read_quantity(text: str) -> Quantity:
    """Part a plain text into the quantity and its unit, modulus and base."""
    modulus = base = None
    if match := _MODULUS.search(text):
        text, modulus = text[: match.start()].strip(" ,("), match[1]
    if match := _BASE.fullmatch(text):
        named = match[2] or match[3]
        base = int(named) if named.isdigit() else _BASE_WORDS.get(named.lower())
        if base is not None and 1 < base <= 36 and any(sign.isdigit() for sign in match[1]):
            return Quantity(match[1].replace(",", "").replace(" ", "").lower(), None, modulus, base)
        base = None
    text = _IN_BRACKETS.sub(r"\1", _MICRO.sub(" micro", _ORDINAL.sub("", text)))
    if not re.search(r"\d|\\pi|\\sqrt", text):
        return Quantity(text, None, modulus)
    for match in _tails(text):
        words = match.group().strip(" -")
        if _is_unit(words):
            return Quantity(text[: match.start()].strip(), _powers(words), modulus)
    return Quantity(text, None, modulus)


def apart(text: str) -> str:
    """Put commas between the parts of a compound quantity: 5 hours 30 minutes has two."""
    return re.sub(
        r"(?<=\d) ?([A-Za-z]+) (?=\d)", lambda m: f" {m[1]}, " if _singular(m[1]) in _NAMES else m.group(), text
    )


def _tails(text: str) -> list[re.Match[str]]:
    """Runs of words at the end of a text, the longest first."""
    starts = [match.start() for match in _TAIL_START.finditer(text)]
    return [match for start in starts[-MOST_STARTS:] if (match := _TAIL.match(text, start))]


def _is_unit(words: str) -> bool:
    parts = [part for part in re.split(r"[ /*^{}0-9-]+|\\cdot", words) if part]
    if any(part.lower() in _NOT_UNITS for part in parts):
        return False
    return all(
        len(part) > 2 or part in _LETTERS or (len(part) == 2 and (_singular(part) in _NAMES or part in _SHORT))
        for part in parts
    )


def _singular(word: str) -> str:
    word = word.lower().rstrip(".")
    return word if word in _NAMES else word.removesuffix("s")


def _powers(words: str) -> dict[str, int] | None:
    """Powers of the known units: centimetres squared and square cm are both cm to the 2; None if one is not known."""
    for short, spelled in _SHORT.items():
        words = re.sub(rf"(?<![A-Za-z]){short}\.?(?![A-Za-z])", spelled, words)
    powers: dict[str, int] = {}
    sign, following, last = 1, 1, ""
    for token in _TOKEN.findall(words.replace("\\cdot", " ")):
        if token in ("/", "per"):
            sign = -1
        elif token in _BEFORE:
            following = _BEFORE[token]
        elif token in _AFTER or token.startswith("^"):
            if not last:
                return None
            powers[last] *= _AFTER.get(token) or int(token.strip("^{ "))
        elif _singular(token) in _NAMES:
            last = _NAMES[_singular(token)]
            powers[last] = powers.get(last, 0) + sign * following
            following = 1
        else:
            return None
    if len(powers) > 1:
        powers.pop("degree", None)
    return powers
