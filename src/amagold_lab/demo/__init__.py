"""`amagold demo`: the paper's double well and a real table, sampled, compared with the truth and
drawn.
"""

from pathlib import Path

from rich.console import Console

from amagold.core.devices import use_all_cores
from amagold.report._part_progress import show_progress
from amagold.report._requirements import check_matplotlib
from amagold.report._result_files import make_folder, write_json, write_picture
from amagold_lab.demo import demo_double_well, demo_heart, demo_tables
from amagold_lab.demo.demo_settings import FULL, DemoSettings

__all__ = ["run"]


def run(output: str | Path = "amagold-demo", seed: int = 0, settings: DemoSettings = FULL) -> None:
    """Sample, print the tables, and write the pictures and the numbers into the folder `output`.

    Args:
      output: folder for the files; made if it is missing.
      seed: seed of all random numbers.
      settings: how much is drawn.
    """
    check_matplotlib()  # before the work, not after it
    folder = make_folder(output)
    use_all_cores()
    console = Console()
    with show_progress(console, demo_double_well.NUM_RUNS + demo_heart.NUM_RUNS + 3) as report:
        wells = demo_double_well.sample(seed, settings.double_well, report)
        patients = demo_heart.sample(seed, settings.heart, report)
        report("Drawing the pictures")
        from amagold_lab.demo import demo_double_well_picture, demo_heart_picture

        write_picture(folder / "double-well.png", demo_double_well_picture.draw(wells))
        report("Drawing the pictures")
        write_picture(folder / "heart.png", demo_heart_picture.draw(patients))
        report("Drawing the pictures")
        write_picture(folder / "run.png", patients.run.plot())
    write_json(
        folder / "demo.json",
        {
            "seed": seed,
            "double_well": demo_double_well.numbers(wells),
            "heart": demo_heart.numbers(patients),
        },
    )
    console.print("[bold]Heart disease: amagold.sample(posterior)[/]")
    console.print("\n".join(patients.run.plan.sentences()), highlight=False)
    console.print(patients.run, highlight=False, markup=False)
    console.print()
    for table in (
        demo_tables.double_well(wells),
        demo_tables.heart(patients),
        demo_tables.heart_errors(patients),
    ):
        console.print(table)
        console.print()
    console.print(
        f"Written to {folder}: double-well.png, heart.png, run.png, demo.json",
        soft_wrap=True,
        highlight=False,
    )
