#!/usr/bin/env bash
# README.md and the pages of examples/: every command of dtrain in them parses, and what their blocks `sh run` say runs.
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
top=$(realpath "$here/../..")
mkdir bin
ln -s "$DTRAIN" bin/dtrain
export PATH=$PWD/bin:$PATH
ln -s "$top/examples" examples  # pages name their files as seen from the top folder

mapfile -t pages < <(find "$top/README.md" "$top/examples" -name '*.md')
/usr/bin/python3 "$top/tests/helpers/pages.py" parse "$DTRAIN" "${pages[@]}" >out 2>err
code=$?
check "every command of ${#pages[@]} pages parses" exits 0
printf 'Text.\n```sh\ndtrain train --no-such-option 1 | cat\n```\n' >wrong.md
check "a command that does not parse is seen" bash -c '! /usr/bin/python3 "$1" parse "$2" wrong.md >out' - "$top/tests/helpers/pages.py" "$DTRAIN"

# Pictures of three classes, as a person has them.
photos() {
  /usr/bin/python3 - <<'PYTHON'
import pathlib, random, struct, zlib
def png(path, side, colour):
    rows = b"".join(b"\0" + bytes(max(0, min(255, c + random.randint(-40, 40))) for _ in range(side) for c in colour) for _ in range(side))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for name, colour in {"bird": (200, 60, 60), "cat": (60, 200, 60), "dog": (60, 60, 200)}.items():
    folder = pathlib.Path("photos") / name
    folder.mkdir(parents=True)
    for number in range(8):
        png(folder / f"{number}.png", 72, colour)
PYTHON
}

for page in first-training workers your-images; do
  mkdir "$page"
  cd "$page" || exit 1
  photos
  { echo 'set -euo pipefail'; /usr/bin/python3 "$top/tests/helpers/pages.py" script "$top/examples/$page.md"; } >page.sh
  check "$page has something to run" grep -q '^dtrain ' page.sh
  bash page.sh >out 2>err </dev/null
  code=$?
  check "$page runs as it stands" exits 0
  if [ -d job ]; then run stop --job-dir job --now; fi
  cd ..
done
check "what the pages say is there" bash -c '[ -s first-training/shapes.onnx ] && [ -s workers/run.png ] && [ -s your-images/sheet.png ]'

finish
