"""`amagold data prepare SOURCE DESTINATION`: convert a table to a row store."""

from amagold.core.printable import printable


def run(action: str, source: str, destination: str, columns: list[str] | None = None) -> None:
    """Convert, unless that was done before, and say what is there.

    Args:
      action: "prepare".
      source: Parquet or Arrow files, or Zarr.
      destination: the folder to make.
      columns: which to keep; None keeps all.
    """
    from amagold.data import prepare
    from amagold.data._row_store import read_manifest

    folder = prepare(source, destination, columns=columns)
    manifest = read_manifest(folder)
    print(printable(f"{folder}: {manifest.num_rows:,} rows, {manifest.file.num_bytes:,} bytes"))
    for field in manifest.fields:
        kind = "texts" if field.levels is not None else field.kind
        levels = f", {len(field.levels):,} of them" if field.levels is not None else ""
        shape = f" x {list(field.shape)}" if field.shape else ""
        print(printable(f"  {field.name or 'rows'}: {kind}{levels}{shape}"))
