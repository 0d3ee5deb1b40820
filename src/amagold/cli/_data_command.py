"""`amagold data prepare SOURCE DESTINATION`: convert a table to a row store; `split` cuts it."""

from amagold.core.printable import printable


def run(
    action: str,
    source: str,
    destination: str,
    columns: list[str] | None = None,
    shards: int = 2,
) -> None:
    """Convert, unless that was done before, or cut, and say what is there.

    Args:
      action: "prepare" or "split".
      source: Parquet or Arrow files, or Zarr; for "split" a row store.
      destination: the folder to make.
      columns: which to keep; None keeps all.
      shards: of "split".
    """
    from amagold.data import prepare, split
    from amagold.data._row_store import read_manifest

    if action == "split":
        made = split(source, destination, shards)
        print(printable(f"{made}: {shards} shards"))
        return
    folder = prepare(source, destination, columns=columns)
    manifest = read_manifest(folder)
    print(printable(f"{folder}: {manifest.num_rows:,} rows, {manifest.file.num_bytes:,} bytes"))
    for field in manifest.fields:
        kind = "texts" if field.levels is not None else field.kind
        levels = f", {len(field.levels):,} of them" if field.levels is not None else ""
        shape = f" x {list(field.shape)}" if field.shape else ""
        print(printable(f"  {field.name or 'rows'}: {kind}{levels}{shape}"))
