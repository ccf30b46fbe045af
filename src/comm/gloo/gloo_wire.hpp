// Frames over Gloo's buffers. Gloo knows no headers: both sides know from the shape which frames there are, and each
// has a slot of its own.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <list>
#include <span>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>

#include "wire.hpp"

namespace dtrain::comm {

class GlooWire final : public Wire {
 public:
  using Clock = std::chrono::steady_clock;
  GlooWire(std::shared_ptr<::gloo::Context> context, std::vector<std::string> names)
      : context_(std::move(context)), names_(std::move(names)) {}

  int rank() const override { return context_->rank; }
  int ranks() const override { return context_->size; }
  const std::string& name_of(int peer) const override { return names_[static_cast<std::size_t>(peer)]; }
  void send(int peer, Outgoing frame) override;
  void reach(CommPoint) const override {}
  void give_back(int) override { DTRAIN_CHECK(false, "Gloo lends no frames"); }

  // Blocks until the frame is in `bytes`; PeerLost at the deadline, when the peer is gone, or after abort().
  void receive(int peer, const FrameHeader& header, std::span<std::byte> bytes, Clock::time_point deadline);
  void wait_until_sent(Clock::time_point deadline);
  void abort() noexcept;  // from any thread

 private:
  using Buffer = std::unique_ptr<::gloo::transport::UnboundBuffer>;
  struct Sending {
    int peer = -1;
    Outgoing frame;
    Buffer buffer;
  };
  template <typename Wait>
  void wait(::gloo::transport::UnboundBuffer& buffer, int peer, Clock::time_point deadline, Wait wait_for);

  const std::shared_ptr<::gloo::Context> context_;
  const std::vector<std::string> names_;
  std::list<Sending> sending_;
  Mutex mutex_;
  bool aborted_ DTRAIN_GUARDED_BY(mutex_) = false;
  ::gloo::transport::UnboundBuffer* waited_for_ DTRAIN_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace dtrain::comm
