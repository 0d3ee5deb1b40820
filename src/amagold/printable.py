"""Texts from elsewhere, made safe to print: a terminal shows their control characters instead of obeying them."""


def printable(text: str) -> str:
    """The text with everything but printable characters and line ends spelt out."""
    return "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text)
