"""Numbers as people read them: no digit that Monte Carlo error makes up."""

import math
import re

MINUS, TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"
MOST_DECIMALS = 12
POWER = re.compile(r"-?\d+(\.\d+)?e[+-]\d{1,3}")
LONG = re.compile(r"(?<![\w.,])\d{5,18}(?![\w])(?!\.\d)")


def decimals_of(error: float, spread: float) -> int:
    """Decimals that a Monte Carlo error leaves standing, but no more than two digits of the spread
    and no fewer than one.

    With an error of 0.003 the second decimal is the last that repeats in another run.
    """
    if not (math.isfinite(spread) and spread > 0.0):
        return 3
    least = -math.floor(math.log10(spread))
    if not (math.isfinite(error) and error > 0.0):
        return _within(least + 1)
    return _within(min(max(least, -math.ceil(math.log10(error))), least + 1))


def rounded(value: float, decimals: int) -> str:
    """The number with so many decimals; negative ones round to tens, hundreds, ..."""
    if not math.isfinite(value):
        return "not finite" if math.isnan(value) else signed("infinite", value)
    # large and small numbers alike would be rows of noughts
    if value != 0.0 and (abs(value) >= 1e7 or decimals > 6):
        digits = max(0, decimals + math.floor(math.log10(abs(value))))
        mantissa, power = f"{abs(value):.{min(digits, 6)}e}".split("e")
        return signed(f"{mantissa} {TIMES} 10{_raised(int(power))}", value)
    text = f"{abs(round(value, decimals)):,.{max(0, decimals)}f}"
    return signed(text, value if any(digit in "123456789" for digit in text) else 0.0)


def signed(text: str, value: float) -> str:
    return f"{MINUS}{text}" if value < 0.0 else text


def short(value: float, digits: int = 3) -> str:
    """A number with so many significant digits."""
    if not math.isfinite(value) or value == 0.0:
        return rounded(value, 0)
    return rounded(value, digits - 1 - math.floor(math.log10(abs(value))))


def plain(value: float, digits: int = 3) -> str:
    """The same without noughts at the end, for numbers that are no estimates."""
    text = short(value, digits)
    return (
        text.rstrip("0").rstrip(".")
        if "." in text and text[-1].isdigit() and TIMES not in text
        else text
    )


def whole(value: float) -> str:
    """A count, with its thousands parted."""
    return f"{round(value):,}" if math.isfinite(value) else "not finite"


def percent(share: float) -> str:
    """A share; one that is neither none nor all does not look like it."""
    if not math.isfinite(share):
        return "not finite"
    if 0.0 < share < 0.001:
        return "< 0.1%"
    if 0.999 < share < 1.0:
        return "> 99.9%"
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    return f"{share:.1%}"


def readable(sentence: str) -> str:
    """The sentence with 1.5e+04 and 15000 as 15,000, and ^2 as a small 2."""
    told = POWER.sub(lambda found: plain(float(found[0]), 4), sentence)
    told = LONG.sub(lambda found: f"{int(found[0]):,}", told)
    return told.replace("^2", "\N{SUPERSCRIPT TWO}")


def seconds(time: float) -> str:
    if time < 0.1:
        return f"{1000.0 * time:.0f} ms"
    if time < 10.0:
        return f"{time:.1f} s"
    if time < 90.0:
        return f"{time:.0f} s"
    return f"{time / 60.0:.0f} min" if time < 5400.0 else f"{time / 3600.0:.1f} h"


def _within(decimals: int) -> int:
    return max(-MOST_DECIMALS, min(MOST_DECIMALS, decimals))


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
