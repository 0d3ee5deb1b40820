"""Random effects are parted from a formula, whatever stands around them."""

import itertools

import pytest

pytest.importorskip("formulaic")

from amagold.tables._formula_text import parsed_formula
from amagold.tables._group_text import parted

# fixed terms as formulaic expands them
FIXED = {"": ["1"], "x": ["1", "x"], "0 + x": ["x"], "a*b": ["1", "a", "b", "a:b"]}
FIXED |= {"(a + b)**2": ["1", "a", "b", "a:b"], "C(m, levels=['(1 | g)', 'b'])": None}
FIXED |= {"`odd (|) name` + log(x)": ["1", "odd (|) name", "log(x)"]}
RANDOM = {
    "(1 | g)": [(["1"], ("g",))],
    "(1|g)": [(["1"], ("g",))],
    "(1 + x | g)": [(["1", "x"], ("g",))],
    "(x | g)": [(["1", "x"], ("g",))],
    "(0 + x | g)": [(["x"], ("g",))],
    "(x - 1 | g)": [(["x"], ("g",))],
    "(1 | g:h)": [(["1"], ("g", "h"))],
    "(1 | g/h)": [(["1"], ("g",)), (["1"], ("g", "h"))],
    "(1 | g/h/k)": [(["1"], ("g",)), (["1"], ("g", "h")), (["1"], ("g", "h", "k"))],
    "(1 | g:h/k)": [(["1"], ("g", "h")), (["1"], ("g", "h", "k"))],
    "(log(x) | C(g))": [(["1", "log(x)"], ("g",))],
    "(x*z | `a / b: (c)`)": [(["1", "x", "z", "x:z"], ("a / b: (c)",))],
    "(I((x + 1) ** 2) | g)": [(["1", "I((x + 1) ** 2)"], ("g",))],
}


def told(formula):
    found = parsed_formula(formula)
    return (
        [str(term) for term in found.right],
        [([str(term) for term in each.varying.right], each.columns) for each in found.groups],
    )


@pytest.mark.parametrize("fixed", FIXED)
@pytest.mark.parametrize("random", RANDOM)
def test_effects_are_found_wherever_they_stand(fixed, random):
    others = [part for part in (fixed,) if part]
    for order in itertools.permutations([*others, random]):
        terms, groups = told(f"y ~ {' + '.join(order)}")
        assert groups == RANDOM[random]
        if FIXED[fixed] is not None:
            assert terms == FIXED[fixed]


@pytest.mark.parametrize("first", RANDOM)
def test_several_effects_are_found_in_order(first):
    terms, groups = told(f"y ~ {' + '.join([first, 'x', *RANDOM])} - 1")
    assert terms == ["x"]
    assert groups == [*RANDOM[first], *(each for many in RANDOM.values() for each in many)]


def test_names_are_bambis():
    found = parsed_formula("y ~ x + (1 + x | g) + (1 | g:`h h`)")
    assert [each.name for each in found.groups] == ["g", "g:h h"]
    assert found.columns == ("x",)
    assert found.all_columns == ("g", "h h", "x")


BROKEN = {
    "y ~ (1 || g)": "must not hold '||', .*write effects without correlation as",
    "y ~ (1 | g) * x": "must add random effects to its terms, but '\\(1 | g\\)' is multiplied",
    "y ~ x:(1 | g)": "must add random effects",
    "y ~ (1 | g)/x": "must add random effects",
    "y ~ (1 | g)**2": "must add random effects",
    "y ~ x - (1 | g)": "must add random effects",
    "y ~ (1 | g) (1 | h)": "must add random effects",
    "y ~ 1 | g": "in brackets",
    "y ~ x + (1 | g": "in brackets",
    "y ~ log(1 | g)": "in brackets",
    "y ~ {1 | g}": "in brackets",
    "y ~ [1 | g]": "in brackets",
    "y ~ ((1 | g))": "one '\\|' in the brackets",
    "y ~ (1 | g | h)": "one '\\|' in the brackets",
    "y ~ (x + (1 | g))": "one '\\|' in the brackets",
    "y ~ ( | g)": "has nothing before",
    "y ~ (. | g)": "has nothing before",
    "y ~ (1 | )": "must group by columns",
    "y ~ (1 | g + h)": "must group by columns, .*each group in brackets of its own",
    "y ~ (1 | g * h)": "must group by columns",
    "y ~ (1 | log(g))": "must group by columns, .*make a column of it first",
    "y ~ (1 | 3)": "must group by columns",
    "y ~ (1 | g:g)": "at most 5 different columns",
    "y ~ (1 | a/b/c/d/e/f)": "at most 5 different columns",
    "y ~ (open('/etc/passwd') | g)": "must not call 'open'",
    "y ~ (I(x.values) | g)": "must not reach into",
    "y ~ (I(x + 9**9**9) | g)": "finite numbers",
    "y ~ (bs(x, df=10000) | g)": "at most 1,000 columns",
    "y ~ ((a + b + c)**30 | g)": "expand to at most",
    "y ~ (1 | `a\nb`)": "names without",
    "y ~ (a ~ b | g)": "must be a text such as",
    "y ~ " + " + ".join(f"(1 | g{place})" for place in range(21)): "at most 20 random effects",
}


@pytest.mark.parametrize("formula", BROKEN)
def test_what_is_not_covered_is_said_in_a_line(formula):
    with pytest.raises(ValueError, match=BROKEN[formula]) as raised:
        parsed_formula(formula)
    assert "\n" not in str(raised.value)


def test_formulas_without_bars_are_left_as_they_are():
    for right in ("x", "a + b:c - 1", "C(m, levels=['a|b'])", "`a | b`"):
        assert parted(right) == (right, ())


@pytest.mark.parametrize("length", [10, 20_000])
def test_long_formulas_take_no_time_without_end(length):
    for text in ("(" * length, "(1 | g" * length, "(1 | g) + " * length, "|" * length):
        with pytest.raises(ValueError, match="formula must"):
            parsed_formula(f"y ~ {text}")
