#include "buckets.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::comm {
namespace {

// 1 MiB: large enough that a frame costs little, small enough that most of a model is on its way before the last
// gradient is there.
constexpr std::int64_t kBucketFloats = 256 << 10;
// Chunks begin at whole cache lines of the bucket.
constexpr std::int64_t kChunkUnit = 16;

}  // namespace

std::vector<Bucket> cut_into_buckets(const ReductionShape& shape) {
  DTRAIN_CHECK(shape.rounded >= 0 && shape.rounded <= shape.size, "more floats are rounded than there are");
  std::vector<Bucket> buckets;
  for (std::int64_t first = 0; first < shape.size;) {
    const bool rounded = first < shape.rounded;
    const std::int64_t end = rounded ? shape.rounded : shape.size;
    const std::int64_t size = std::min(kBucketFloats, end - first);
    buckets.push_back({first, size, rounded});
    first += size;
  }
  return buckets;
}

int bucket_of(const std::vector<Bucket>& buckets, std::int64_t position) {
  const auto after = std::upper_bound(buckets.begin(), buckets.end(), position,
                                      [](std::int64_t p, const Bucket& bucket) { return p < bucket.first; });
  return static_cast<int>(after - buckets.begin()) - 1;
}

Chunk chunk_of(const Bucket& bucket, int owner, int ranks) {
  const std::int64_t units = (bucket.size + kChunkUnit - 1) / kChunkUnit;
  const auto boundary = [&](int r) { return std::min(bucket.size, units * r / ranks * kChunkUnit); };
  return {bucket.first + boundary(owner), boundary(owner + 1) - boundary(owner)};
}

}  // namespace dtrain::comm
