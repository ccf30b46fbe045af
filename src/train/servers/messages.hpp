// What workers and servers say to each other: frames of net::Channel, each a head and floats behind it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace dtrain::train {

// A worker's question and the answer of the server have the same kind.
enum class MessageKind : std::uint32_t {
  push = 0x70730001,    // gradients: no answer
  pull = 0x70730002,    // parameters [first, first + count) of the shard, once it has `version` updates
  next = 0x70730003,    // of the first server: a batch of the epoch, or count 0
  begin = 0x70730004,   // of the first server: answered once the worker may begin its next step
  done = 0x70730005,    // to the first server: all servers have the gradients of a batch; no answer
  finish = 0x70730006,  // to the first server: nothing more to do; answered when all workers are so far
  copy = 0x70730007,    // of a server to the one with the replica: the sum of a batch, to be applied
};

struct MessageHead {
  MessageKind kind{};
  std::int32_t rank = 0;  // of the worker
  std::int32_t shard = 0;
  std::int32_t leaf = 0;
  std::uint64_t number = 0;   // of a batch
  std::int64_t first = 0;     // of the floats that follow or are asked for; of a batch's samples
  std::int64_t count = 0;     // floats that are asked for; samples of a batch
  std::uint64_t version = 0;  // updates that a shard has, or must have
  std::uint64_t vote = 0;     // of the worker, as in Membership::vote()
  float learning_rate = 0;
  std::uint32_t unused = 0;
};
static_assert(std::is_trivially_copyable_v<MessageHead> && sizeof(MessageHead) == 64);

// Floats of a frame, which stays below net::kMaxFrame.
constexpr std::int64_t kFloatsOfFrame = 1 << 20;

std::string frame_of(const MessageHead& head, std::span<const float> floats = {});
// Both throw DataError for a frame that is cut off.
MessageHead head_of(const std::string& frame);
std::span<const float> floats_of(const std::string& frame);

}  // namespace dtrain::train
