// The flat buffer of a reduction, cut into buckets (see comm/tree.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/comm/communicator.hpp>

namespace dtrain::comm {

struct Bucket {
  std::int64_t first = 0, size = 0;  // floats
  bool rounded = false;              // to bfloat16, all of it
  Packing packing = Packing::none;   // of all of it
};

// In ascending order, none empty, none partly rounded or packed. Depends on the shape alone.
std::vector<Bucket> cut_into_buckets(const ReductionShape& shape);

// Index of the bucket that holds float `position`.
int bucket_of(const std::vector<Bucket>& buckets, std::int64_t position);

// Of so many floats of a bucket that is not packed, as they travel.
inline std::uint64_t travelling_bytes(const Bucket& bucket, std::int64_t floats) {
  return static_cast<std::uint64_t>(floats) * (bucket.rounded ? sizeof(bfloat16_bits) : sizeof(float));
}

// The range of a bucket that rank `owner` of `ranks` adds up: positions in the flat buffer. May be empty.
using Chunk = FloatRange;
Chunk chunk_of(const Bucket& bucket, int owner, int ranks);

// Which rank adds up which floats. Each bucket is cut into a chunk for every rank. With many ranks these would be too
// small to be worth a frame: then some neighbouring buckets, a stripe, are cut together, so that an owner has one chunk
// in a stripe, in one bucket or over the border of two. All owners have equally much of every stripe.
class Owners {
 public:
  Owners(const std::vector<Bucket>& buckets, int ranks);
  // May be empty.
  Chunk chunk(std::size_t bucket, int owner) const;

 private:
  struct Part {
    Bucket bucket, stripe;
  };
  std::vector<Part> parts_;  // [bucket]
  int ranks_;
};

}  // namespace dtrain::comm
