// How floats that say little travel (Packing), without loss: what unpack() gives has the bits that pack() was given, so
// a packed reduction has the sums of one that is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dtrain/comm/communicator.hpp>

namespace dtrain::comm {

// The bytes that so many packed floats of a node at `level` may have.
struct PackedSizes {
  std::uint64_t least = 0, most = 0;
  bool has(std::uint64_t bytes) const { return least <= bytes && bytes <= most; }
};
PackedSizes packed_sizes(Packing packing, int level, std::int64_t floats);

// counts: whole numbers from -2^level to 2^level, each as the bits of its distance from -2^level, low bits first.
// sparse: a bit for each 64 floats, whether any is not 0; 8 bytes of mask for those where one is; the floats that are
// not 0. Not for Packing::none.
std::vector<std::byte> pack(Packing packing, int level, const float* values, std::int64_t size);
// False: no pack() of so many floats gives these bytes; then `values` have any content.
bool unpack(Packing packing, int level, std::span<const std::byte> bytes, float* values, std::int64_t size);

}  // namespace dtrain::comm
