// What travels between two ranks once both have proved the job's token: frames, in order, each a header and its bytes.
#pragma once

#include <bit>
#include <cstdint>

namespace dtrain::comm {

static_assert(std::endian::native == std::endian::little, "frames travel as they lie in memory");

enum class FrameKind : std::uint32_t {
  begin = 0x64740001,    // a rank enters a reduction: ReductionBegin
  piece = 0x64740002,    // an owner's chunk of a bucket of a node of the merge plan
  final = 0x64740003,    // an owner's chunk of a bucket, added up
  gather = 0x64740004,   // a rank's bytes for all_gather
  message = 0x64740005,  // send() to receive()
  lost = 0x64740006,     // the last frame of a rank that gives up: why
  taken = 0x64740007,    // by shared memory: the oldest lent frame that was not given back is no longer read
};

constexpr const char* kind_name(FrameKind kind) {
  switch (kind) {
    case FrameKind::begin:
      return "begin";
    case FrameKind::piece:
      return "piece";
    case FrameKind::final:
      return "final";
    case FrameKind::gather:
      return "gather";
    case FrameKind::message:
      return "message";
    case FrameKind::lost:
      return "lost";
    case FrameKind::taken:
      return "taken";
  }
  return "of an unknown kind";
}

// In which order a rank serves the others, `step` from 1: each begins with its right neighbour, so that not all send to
// the same one.
constexpr int peer_of_step(int rank, int step, int ranks) { return (rank + step) % ranks; }

// Frames that say in their header all that they are: with several connections to a peer, they take whichever is free.
// The others stay in order, on the first.
constexpr bool may_overtake(FrameKind kind) { return kind == FrameKind::piece || kind == FrameKind::final; }

struct FrameHeader {
  FrameKind kind{};
  std::uint32_t node = 0;  // number in the merge plan
  std::uint32_t bucket = 0;
  std::uint32_t owner = 0;     // of the chunk: a rank
  std::uint64_t sequence = 0;  // collectives since the mesh was made, the same on all ranks; 0 in messages
  std::uint64_t bytes = 0;     // that follow, unless they are lent
  std::uint64_t lent_at = 0;   // where the bytes are in the sender's shared memory, plus 1; 0: they follow
};
static_assert(sizeof(FrameHeader) == 40);

struct ReductionBegin {
  std::int64_t shards = 0, size = 0, rounded = 0, packed = 0, packing = 0;
  std::uint64_t spans = 0;  // a hash of them; 0: even
  std::uint64_t note[4] = {};
};

}  // namespace dtrain::comm
