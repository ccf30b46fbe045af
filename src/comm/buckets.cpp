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
// 16 KiB: a frame costs about 2 us on each side beside its bytes, which is then a small part of them.
constexpr std::int64_t kLeastChunk = 4 << 10;

}  // namespace

std::vector<Bucket> cut_into_buckets(const ReductionShape& shape) {
  DTRAIN_CHECK(shape.rounded >= 0 && shape.rounded <= shape.size, "more floats are rounded than there are");
  DTRAIN_CHECK(shape.packed >= 0 && shape.packed <= shape.size, "more floats are packed than there are");
  DTRAIN_CHECK(shape.rounded == 0 || shape.packed == 0, "floats are rounded or packed, not both");
  const std::int64_t border = std::max(shape.rounded, shape.packed);
  std::vector<Bucket> buckets;
  for (std::int64_t first = 0; first < shape.size;) {
    const std::int64_t end = first < border ? border : shape.size;
    const std::int64_t size = std::min(kBucketFloats, end - first);
    buckets.push_back({first, size, first < shape.rounded, first < shape.packed ? shape.packing : Packing::none});
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

Owners::Owners(const std::vector<Bucket>& buckets, int ranks) : ranks_(ranks) {
  const std::size_t least = static_cast<std::size_t>((ranks * kLeastChunk + kBucketFloats - 1) / kBucketFloats);
  for (std::size_t first = 0; first < buckets.size();) {
    // Rounded or packed buckets and others travel in different widths, so they are cut apart.
    std::size_t end = first;
    const auto travels_alike = [&](const Bucket& other) {
      return other.rounded == buckets[first].rounded && other.packing == buckets[first].packing;
    };
    while (end < buckets.size() && travels_alike(buckets[end])) ++end;
    const std::size_t count = end - first, stripes = std::max<std::size_t>(1, count / least);
    for (std::size_t stripe = 0; stripe < stripes; ++stripe) {
      const std::size_t begin = first + count * stripe / stripes, after = first + count * (stripe + 1) / stripes;
      const Bucket& last = buckets[after - 1];
      const Bucket whole{buckets[begin].first, last.first + last.size - buckets[begin].first, last.rounded,
                         last.packing};
      for (std::size_t b = begin; b < after; ++b) parts_.push_back({buckets[b], whole});
    }
    first = end;
  }
}

Chunk Owners::chunk(std::size_t bucket, int owner) const {
  const Part& part = parts_[bucket];
  const Chunk of_stripe = chunk_of(part.stripe, owner, ranks_);
  const std::int64_t first = std::max(of_stripe.first, part.bucket.first);
  const std::int64_t end = std::min(of_stripe.first + of_stripe.size, part.bucket.first + part.bucket.size);
  return {first, std::max<std::int64_t>(0, end - first)};
}

}  // namespace dtrain::comm
