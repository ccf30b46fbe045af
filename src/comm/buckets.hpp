// The flat buffer of a reduction, cut into buckets (see comm/tree.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/comm/communicator.hpp>

namespace dtrain::comm {

struct Bucket {
  std::int64_t first = 0, size = 0;  // floats
  bool rounded = false;              // to bfloat16, all of it
};

// In ascending order, none empty, none partly rounded. Depends on the shape alone.
std::vector<Bucket> cut_into_buckets(const ReductionShape& shape);

// Index of the bucket that holds float `position`.
int bucket_of(const std::vector<Bucket>& buckets, std::int64_t position);

// The range of a bucket that rank `owner` of `ranks` adds up: positions in the flat buffer. May be empty.
using Chunk = FloatRange;
Chunk chunk_of(const Bucket& bucket, int owner, int ranks);

}  // namespace dtrain::comm
