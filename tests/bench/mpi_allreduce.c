// Median milliseconds of an MPI_Allreduce of float32: mpi_allreduce MEGABYTES ROUNDS. Rank 0 prints it, after the sum
// was checked.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const int count = (int)(atof(argv[1]) * 250000), rounds = atoi(argv[2]);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  float* values = malloc(sizeof(float) * count);
  float* sums = malloc(sizeof(float) * count);
  double* times = malloc(sizeof(double) * rounds);
  for (int i = 0; i < count; ++i) values[i] = (float)(i % 100 + rank);
  for (int round = -1; round < rounds; ++round) {  // the first one connects, and touches the memory
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    MPI_Allreduce(values, sums, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (round >= 0) times[round] = MPI_Wtime() - begin;
  }
  for (int i = 0; i < count; ++i) {
    if (sums[i] != (float)(i % 100 * size + size * (size - 1) / 2)) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  qsort(times, rounds, sizeof(double), compare);
  if (rank == 0) printf("%.2f\n", 1e3 * times[rounds / 2]);
  MPI_Finalize();
  return 0;
}
