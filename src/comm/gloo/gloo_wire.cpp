#include "gloo_wire.hpp"

#include <dtrain/base/error.hpp>

namespace dtrain::comm {
namespace {

// Node and owner are below 2^12, buckets below 2^16.
std::uint64_t slot_of(const FrameHeader& header) {
  constexpr std::uint32_t kFinal = 0xfff;
  const std::uint32_t node = header.kind == FrameKind::final ? kFinal : header.node;
  DTRAIN_CHECK(node <= kFinal && header.owner <= kFinal && header.bucket <= 0xffff, "more nodes than slots of Gloo");
  return header.sequence << 40 | std::uint64_t{header.bucket} << 24 | std::uint64_t{header.owner} << 12 | node;
}

}  // namespace

void GlooWire::send(int peer, Outgoing frame) {
  Sending& sending = sending_.emplace_back(Sending{peer, std::move(frame), nullptr});
  const FrameHeader& header = sending.frame.header;
  try {
    sending.buffer = context_->createUnboundBuffer(const_cast<std::byte*>(sending.frame.bytes), header.bytes);
    sending.buffer->send(peer, slot_of(header));
  } catch (const std::exception& error) {
    throw PeerLost(name_of(peer) + ": Gloo: " + error.what());
  }
}

void GlooWire::receive(int peer, const FrameHeader& header, std::span<std::byte> bytes, Clock::time_point deadline) {
  try {
    const Buffer buffer = context_->createUnboundBuffer(bytes.data(), bytes.size());
    buffer->recv(peer, slot_of(header));
    wait(*buffer, peer, deadline, [](auto& b, auto left) { return b.waitRecv(left); });
  } catch (const PeerLost&) {
    throw;
  } catch (const std::exception& error) {
    throw PeerLost(name_of(peer) + ": Gloo: " + error.what());
  }
}

void GlooWire::wait_until_sent(Clock::time_point deadline) {
  for (; !sending_.empty(); sending_.pop_front()) {
    const Sending& first = sending_.front();
    try {
      wait(*first.buffer, first.peer, deadline, [](auto& b, auto left) { return b.waitSend(left); });
    } catch (const PeerLost&) {
      throw;
    } catch (const std::exception& error) {
      throw PeerLost(name_of(first.peer) + ": Gloo: " + error.what());
    }
  }
}

template <typename Wait>
void GlooWire::wait(::gloo::transport::UnboundBuffer& buffer, int peer, Clock::time_point deadline, Wait wait_for) {
  {
    const MutexLock lock(mutex_);
    if (aborted_) throw PeerLost("the communicator was aborted");
    waited_for_ = &buffer;
  }
  struct Forget {
    GlooWire& wire;
    ~Forget() {
      const MutexLock lock(wire.mutex_);
      wire.waited_for_ = nullptr;
    }
  };
  const Forget forget{*this};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  if (!wait_for(buffer, std::max(left, std::chrono::milliseconds(1)))) {
    throw PeerLost("the communicator was aborted while it waited for " + name_of(peer));
  }
}

void GlooWire::abort() noexcept {
  const MutexLock lock(mutex_);
  aborted_ = true;
  if (!waited_for_) return;
  waited_for_->abortWaitRecv();
  waited_for_->abortWaitSend();
}

}  // namespace dtrain::comm
