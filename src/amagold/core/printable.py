"""Texts from elsewhere, made safe to print: a terminal shows control characters, and obeys none."""


def printable(text: str) -> str:
    """The text with everything but printable characters and line ends spelt out."""
    return "".join(
        sign if sign == "\n" or sign.isprintable() else repr(sign)[1:-1] for sign in text
    )
