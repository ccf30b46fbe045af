// An operation of a communicator; there is at most one at a time. All members are called on the transport's thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frames.hpp"

namespace dtrain::comm {

class Operation {
 public:
  virtual ~Operation() = default;
  virtual void start() = 0;  // queues the first frames
  virtual std::optional<std::span<std::byte>> place(int peer, const FrameHeader& header) = 0;
  virtual void arrived(int peer, const FrameHeader& header) = 0;
  // Offers a frame whose bytes lie in the peer's shared memory. true: the operation reads them there, and calls
  // Wire::give_back() when it no longer does. false: the caller copies them by place().
  virtual bool borrow(int peer, const FrameHeader& header, const std::byte* bytes) = 0;
  virtual bool needs(int peer) const = 0;       // frames that have not arrived
  virtual bool is_complete() const = 0;         // all but the frames that are queued
  virtual std::vector<int> blamed() const = 0;  // whom it waits for, those who hold up others too first
};

}  // namespace dtrain::comm
