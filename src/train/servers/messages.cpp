#include "messages.hpp"

#include <cstring>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

void require_whole(const std::string& frame) {
  if (frame.size() < sizeof(MessageHead) || (frame.size() - sizeof(MessageHead)) % sizeof(float) != 0)
    throw DataError("a message of parameter servers is cut off");
}

}  // namespace

std::string frame_of(const MessageHead& head, std::span<const float> floats) {
  std::string frame(reinterpret_cast<const char*>(&head), sizeof head);
  frame.append(reinterpret_cast<const char*>(floats.data()), floats.size_bytes());
  return frame;
}

MessageHead head_of(const std::string& frame) {
  require_whole(frame);
  MessageHead head;
  std::memcpy(&head, frame.data(), sizeof head);
  return head;
}

// A string longer than its own few bytes is aligned as all memory, and a head is as long as 16 floats.
std::span<const float> floats_of(const std::string& frame) {
  require_whole(frame);
  const char* const floats = frame.data() + sizeof(MessageHead);
  return {reinterpret_cast<const float*>(floats), (frame.size() - sizeof(MessageHead)) / sizeof(float)};
}

}  // namespace dtrain::train
