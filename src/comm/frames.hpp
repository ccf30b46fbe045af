// What travels between two ranks once both have proved the job's token: frames, in order, each a header and its bytes.
#pragma once

#include <bit>
#include <cstdint>

namespace dtrain::comm {

static_assert(std::endian::native == std::endian::little, "frames travel as they lie in memory");

enum class FrameKind : std::uint32_t {
  begin = 0x64740001,    // a rank enters a reduction: ReductionBegin
  piece = 0x64740002,    // the receiver's chunk of a bucket of a node of the merge plan
  final = 0x64740003,    // the sender's chunk of a bucket, added up
  gather = 0x64740004,   // a rank's bytes for all_gather
  message = 0x64740005,  // send() to receive()
  lost = 0x64740006,     // the last frame of a rank that gives up: why
};

// A sum overtakes pieces of which no byte was sent: it is still in the cache, and what it completes is over for the
// peer.
constexpr bool overtakes(FrameKind later, FrameKind earlier) {
  return later == FrameKind::final && earlier == FrameKind::piece;
}

// In which order a rank serves the others, `step` from 1: each begins with its right neighbour, so that not all send to
// the same one.
constexpr int peer_of_step(int rank, int step, int ranks) { return (rank + step) % ranks; }

struct FrameHeader {
  FrameKind kind{};
  std::uint32_t node = 0;  // number in the merge plan
  std::uint32_t bucket = 0;
  std::uint32_t unused = 0;
  std::uint64_t sequence = 0;  // collectives since the mesh was made, the same on all ranks; 0 in messages
  std::uint64_t bytes = 0;     // that follow
};
static_assert(sizeof(FrameHeader) == 32);

struct ReductionBegin {
  std::int64_t shards = 0, size = 0, rounded = 0, packed = 0, packing = 0;
  std::uint64_t spans = 0;  // a hash of them; 0: even
  std::uint64_t note[4] = {};
};

}  // namespace dtrain::comm
