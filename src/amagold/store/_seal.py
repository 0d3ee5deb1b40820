"""A checksum within a metadata document, as one of its attributes, so that damage is found.

It is no signature: whoever edits a store on purpose can make it again.
"""

import hashlib
import json
from typing import Any

OURS = "amagold"  # the attribute that holds it, and what else only amagold reads


class UnreadableError(ValueError):
    """The folder is not a run, or its description does not fit its arrays."""


def canonical(document: Any) -> str:
    """One text for one document, in which 1, 1.0 and true differ."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def seal(document: dict[str, Any], **facts: Any) -> dict[str, Any]:
    """The document with facts for amagold alone, and the checksum of both."""
    ours = {**facts, "sha256": _checksum(document, facts)}
    return {**document, "attributes": {**document["attributes"], OURS: ours}}


def unseal(document: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document without its seal, and the facts in it; raises unless they are what was
    written.
    """
    if not isinstance(document, dict) or not isinstance(document.get("attributes"), dict):
        raise UnreadableError("it is not the metadata of a run")
    attributes = dict(document["attributes"])
    facts = attributes.pop(OURS, None)
    if not isinstance(facts, dict) or "sha256" not in facts:
        raise UnreadableError("it has no checksum of amagold's; this version did not store it")
    facts, bare = dict(facts), {**document, "attributes": attributes}
    if facts.pop("sha256") != _checksum(bare, facts):
        raise UnreadableError("its checksum does not match: it was damaged, or edited by hand")
    return bare, facts


def _checksum(document: dict[str, Any], facts: dict[str, Any]) -> str:
    return hashlib.sha256(canonical([document, facts]).encode()).hexdigest()
