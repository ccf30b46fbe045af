// Operations that move a few bytes at a time.
#pragma once

#include <dtrain/base/files.hpp>

#include "exchange.hpp"

namespace dtrain::comm::tcp {

class GatherOperation final : public Operation {
 public:
  GatherOperation(Exchange& exchange, std::uint64_t sequence, ByteView mine);
  std::vector<std::string> take() { return std::move(texts_); }

  void start() override;
  std::optional<std::span<std::byte>> place(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader&) override { arrived_[static_cast<std::size_t>(peer)] = true; }
  bool borrow(int, const FrameHeader&, const std::byte*) override { return false; }
  bool needs(int peer) const override { return !arrived_[static_cast<std::size_t>(peer)]; }
  bool is_complete() const override { return blamed().empty(); }
  std::vector<int> blamed() const override;

 private:
  Exchange& exchange_;
  const std::uint64_t sequence_;
  std::vector<std::string> texts_;  // [rank]
  std::vector<bool> arrived_;       // [rank]
};

class SendOperation final : public Operation {
 public:
  SendOperation(Exchange& exchange, int to, ByteView bytes) : exchange_(exchange), to_(to), bytes_(bytes) {}

  void start() override;
  std::optional<std::span<std::byte>> place(int, const FrameHeader&) override { return std::nullopt; }
  void arrived(int, const FrameHeader&) override {}
  bool borrow(int, const FrameHeader&, const std::byte*) override { return false; }
  bool needs(int) const override { return false; }
  bool is_complete() const override { return true; }
  std::vector<int> blamed() const override { return {to_}; }

 private:
  Exchange& exchange_;
  const int to_;
  const ByteView bytes_;
};

class ReceiveOperation final : public Operation {
 public:
  ReceiveOperation(Exchange& exchange, int from, std::span<std::byte> bytes)
      : exchange_(exchange), from_(from), bytes_(bytes) {}

  void start() override {}
  std::optional<std::span<std::byte>> place(int peer, const FrameHeader& header) override;
  void arrived(int, const FrameHeader&) override { arrived_ = true; }
  bool borrow(int, const FrameHeader&, const std::byte*) override { return false; }
  bool needs(int peer) const override { return peer == from_ && !arrived_; }
  bool is_complete() const override { return arrived_; }
  std::vector<int> blamed() const override { return {from_}; }

 private:
  Exchange& exchange_;
  const int from_;
  const std::span<std::byte> bytes_;
  bool arrived_ = false;
};

}  // namespace dtrain::comm::tcp
