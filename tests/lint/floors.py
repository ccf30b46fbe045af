#!/usr/bin/env python3
"""The picture of the floors in src/README.md: which folder of src stands on which.

    python3 tests/lint/floors.py            prints the picture of this tree
    python3 tests/lint/floors.py --write    writes it between the two marker lines of src/README.md

It is drawn from the LINK lists of src/**/CMakeLists.txt and the order in the top CMakeLists.txt. A folder stands one
floor above the highest folder that it links. check_floors.py compares.
"""

import pathlib
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

from check_direction import ORDER, read_rows  # noqa: E402  (found through the line above)
from lint import Tree  # noqa: E402

PAGE = "src/README.md"
BEGIN = "<!-- floors: begin (python3 tests/lint/floors.py --write) -->"
END = "<!-- floors: end -->"
WIDTH = 78


def block(tree: Tree) -> list[str]:
    """The lines between the markers."""
    order, rows, places = read(tree)
    links = folder_links(rows, places)
    return ["```text", *boxes(order, links), "", *lists(order, rows, places), "```"]


def read(tree: Tree):
    """order of the folders, rows {library: libraries it links}, places {library: path of its folder inside src}."""
    order = (ORDER.search(tree.text("CMakeLists.txt")) or [None, ""])[1].split()
    rows, homes, _, _ = read_rows(tree)
    places = {name: path.removeprefix("src/") for path, name in homes.items()}
    return order, rows, {name: places.get(name, name) for name in rows}


def folder_links(rows: dict[str, set[str]], places: dict[str, str]) -> dict[str, set[str]]:
    """{folder: folders that its libraries link}: what lies in a sub-folder counts for the folder."""
    links: dict[str, set[str]] = {}
    for name, others in rows.items():
        top = places[name].split("/")[0]
        tops = {places[other].split("/")[0] for other in others if other in places}
        links.setdefault(top, set()).update(tops - {top})
    return links


def floor_of(folder: str, links: dict[str, set[str]], above: tuple[str, ...] = ()) -> int:
    """0 for a folder that links none. A circle, which check_direction finds, ends where it closes."""
    below = [other for other in links.get(folder, set()) if other not in above]
    return max((1 + floor_of(other, links, (*above, folder)) for other in below), default=0)


def boxes(order: list[str], links: dict[str, set[str]]) -> list[str]:
    floors: dict[int, list[str]] = {}
    for folder in order:
        floors.setdefault(floor_of(folder, links), []).append(folder)
    edge = "+" + "-" * WIDTH + "+"
    lines = [edge]
    for floor in sorted(floors, reverse=True):
        lines += ["|" + "|".join(cells(floors[floor])) + "|", edge]
    return lines


def cells(names: list[str]) -> list[str]:
    """Names in the middle of cells of equal width; what does not divide goes to the first ones."""
    width, rest = divmod(WIDTH - (len(names) - 1), len(names))
    return [name.center(width + (1 if number < rest else 0)) for number, name in enumerate(names)]


def lists(order: list[str], rows: dict[str, set[str]], places: dict[str, str]) -> list[str]:
    """One line a library, `folder: what it may use`, in the order of the folders and sub-folders behind their folder."""
    def rank(name: str):
        top = places[name].split("/")[0]
        return (order.index(top) if top in order else len(order), places[name])
    names = sorted(rows, key=rank)
    margin = max(len(places[name]) for name in names) + 2
    lines = []
    for name in names:
        known = sorted((other for other in rows[name] if other in places), key=rank)
        used = " ".join(places[other] for other in known) or "-"
        lines += textwrap.wrap(places[name].ljust(margin) + used, WIDTH + 2, subsequent_indent=" " * margin,
                               break_on_hyphens=False)
    return lines


def find(lines: list[str]) -> tuple[int, int] | None:
    """Indices of the two marker lines of a page; None where one is missing."""
    if BEGIN not in lines or END not in lines or lines.index(BEGIN) > lines.index(END):
        return None
    return lines.index(BEGIN), lines.index(END)


def write(tree: Tree) -> None:
    lines = tree.text(PAGE).split("\n")
    markers = find(lines)
    if not markers:
        sys.exit(f"{PAGE}: no lines\n{BEGIN}\n{END}")
    lines[markers[0] + 1:markers[1]] = block(tree)
    (tree.root / PAGE).write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    this = Tree(HERE.parent.parent)
    write(this) if "--write" in sys.argv[1:] else print("\n".join(block(this)))
