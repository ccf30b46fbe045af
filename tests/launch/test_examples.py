"""Scripts of examples/launch, used as their pages say."""

from launches import REPOSITORY

EXAMPLES = REPOSITORY / "examples" / "launch"

# A program that stops halfway once, and goes on from the checkpoint that it is given.
PROGRAM = """
folder=$1 step=0
if [ "${2:-}" = --load ]; then step=${3##*/model-}; fi
echo "begins at $step"
touch "$folder/model-$((step + 5)).index"
[ "$step" -ge 10 ] || exit 1
"""


def test_resume(world):
    """resume.sh: after each failure the program is given its newest checkpoint, by number and not by name."""
    folder = world.folder / "checkpoints"
    folder.mkdir()
    (folder / "model-notes").touch()
    script = world.folder / "train.sh"
    script.write_text(PROGRAM)
    answer = world.launch("bash", EXAMPLES / "resume.sh", folder, "bash", script, folder, options=["-n", 1, "--max-restarts", 3])
    assert answer.stdout.splitlines() == ["begins at 0", "begins at 5", "begins at 10"], answer.stdout
