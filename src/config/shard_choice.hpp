// How many logical shards a job's steps have, and how many workers may share them: pure functions.
#pragma once

namespace dtrain::config {

// How many workers an elastic job takes at most without --max-workers: twice those of the start, at least 8.
int default_max_workers(int hosts);

struct ShardNeeds {
  int workers = 1;        // of the start
  int max_workers = 0;    // of an elastic job; 0: it is none
  int accumulate = 1;     // batches that a worker computes one after the other
  bool replicas = false;  // shards are replicas, of which each worker should have one
  int global_batch = 1;
};

// A power of two. Elastic: 4, or one replica, for each of the most workers, so that N workers share them evenly enough
// for every N, as far as shards keep 16 samples; never fewer than one for each worker of the start and batch of it.
// Else so many.
int choose_shards(const ShardNeeds& needs);

}  // namespace dtrain::config
