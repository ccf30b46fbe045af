"""--gradient-compression powersgd beside PowerSGD with error feedback (Vogels, Karimireddy and Jaggi 2019, algorithms 1 and
2), written here anew in float64 with numpy's QR. The errors of the workers are replaced by their mean where dtrain's window
ends, and Q by one step of the power method on it from the first Q."""

import os
import pathlib
import subprocess

import numpy as np

ROWS, COLUMNS, SHARDS, WINDOW, STEPS = 24, 40, 4, 8, 30
RANKS = (1, 2, 5)
TOLERANCE = 2e-3  # of the largest value: float32 beside float64, over many steps of feedback


def gradients() -> np.ndarray:
    """Gradients as layers have them: a few directions that many steps share, and noise. [step, shard, row, column]"""
    random = np.random.default_rng(4)
    shared = random.normal(size=(ROWS, 6)) * 0.5 ** np.arange(6) @ random.normal(size=(6, COLUMNS))
    drawn = random.normal(size=(STEPS, SHARDS, ROWS, COLUMNS)) * 0.2
    return (shared + drawn).astype(np.float32)


def orthogonalise(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.qr(matrix)[0]


def by_the_paper(given: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The sums over the workers that each step applies."""
    errors = np.zeros((SHARDS, ROWS, COLUMNS))
    q, applied = first, []
    for number, step in enumerate(given.astype(np.float64), start=1):
        deltas = step + errors
        p = orthogonalise(np.mean([delta @ q for delta in deltas], axis=0))
        of_each = [delta.T @ p for delta in deltas]
        q = np.mean(of_each, axis=0)
        applied.append(SHARDS * p @ q.T)
        errors = deltas - np.array([p @ own.T for own in of_each])
        if number % WINDOW == 0:
            held = errors.sum(axis=0)
            errors[:] = held / SHARDS
            q = held.T @ orthogonalise(held @ first)
    return np.array(applied)


def by_dtrain(given: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """The first Q, and what by_the_paper() gives."""
    program = pathlib.Path(os.environ["DTRAIN"]).parent / "tests" / "dtrain_dump_factors"
    words = [program, *map(str, (rank, ROWS, COLUMNS, SHARDS, WINDOW))]
    answer = subprocess.run(words, input=given.tobytes(), check=True, stdout=subprocess.PIPE)
    numbers = np.frombuffer(answer.stdout, np.float32).astype(np.float64)
    size = COLUMNS * rank
    return numbers[:size].reshape(COLUMNS, rank), numbers[size:].reshape(STEPS, ROWS, COLUMNS)


def main() -> None:
    given = gradients()
    for rank in RANKS:
        first, ours = by_dtrain(given, rank)
        theirs = by_the_paper(given, first)
        error = np.abs(ours - theirs).max(axis=(1, 2)) / np.abs(theirs).max()
        if not (error < TOLERANCE).all():
            raise SystemExit(f"rank {rank}: step {error.argmax()} differs by {error.max():.1e} of the largest value")
        print(f"rank {rank}: {STEPS} steps of {SHARDS} workers agree within {error.max():.1e}")


if __name__ == "__main__":
    main()
