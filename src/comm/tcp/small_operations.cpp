#include "small_operations.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

namespace dtrain::comm::tcp {
namespace {

// Limit of what one rank may give to all_gather(): a peer must not make us reserve more.
constexpr std::uint64_t kLargestText = 64 << 20;

}  // namespace

GatherOperation::GatherOperation(Exchange& exchange, std::uint64_t sequence, ByteView mine)
    : exchange_(exchange),
      sequence_(sequence),
      texts_(static_cast<std::size_t>(exchange.ranks())),
      arrived_(texts_.size()) {
  DTRAIN_CHECK(mine.size() <= kLargestText, "all_gather() is for small things");
  texts_[static_cast<std::size_t>(exchange.rank())] = text_of(mine);
  arrived_[static_cast<std::size_t>(exchange.rank())] = true;
}

void GatherOperation::start() {
  const int rank = exchange_.rank();
  const std::string& mine = texts_[static_cast<std::size_t>(rank)];
  for (int peer = 0; peer < exchange_.ranks(); ++peer) {
    if (peer == rank) continue;
    const FrameHeader header{.kind = FrameKind::gather, .sequence = sequence_, .bytes = mine.size()};
    exchange_.send(peer, {header, reinterpret_cast<const std::byte*>(mine.data())});
  }
}

std::optional<std::span<std::byte>> GatherOperation::place(int peer, const FrameHeader& header) {
  if (header.sequence > sequence_ || header.kind == FrameKind::message) return std::nullopt;
  if (header.kind != FrameKind::gather || header.sequence < sequence_ || header.bytes > kLargestText) {
    throw PeerLost(exchange_.name_of(peer) + " sent something else than bytes for all_gather()");
  }
  if (!needs(peer)) throw PeerLost(exchange_.name_of(peer) + " sent its bytes for all_gather() twice");
  std::string& text = texts_[static_cast<std::size_t>(peer)];
  text.resize(header.bytes);
  return std::as_writable_bytes(std::span(text));
}

std::vector<int> GatherOperation::blamed() const {
  std::vector<int> late;
  for (std::size_t peer = 0; peer < arrived_.size(); ++peer) {
    if (!arrived_[peer]) late.push_back(static_cast<int>(peer));
  }
  return late;
}

void SendOperation::start() {
  const FrameHeader header{.kind = FrameKind::message, .bytes = bytes_.size()};
  exchange_.send(to_, {header, bytes_.data()});
}

std::optional<std::span<std::byte>> ReceiveOperation::place(int peer, const FrameHeader& header) {
  if (peer != from_ || arrived_) return std::nullopt;
  // A frame of the next reduction has overtaken the message on another connection. It waits until the message is here.
  if (may_overtake(header.kind)) return std::nullopt;
  if (header.kind != FrameKind::message || header.bytes != bytes_.size()) {
    throw PeerLost(fmt::format("{} sent a frame {} of {} bytes where a message of {} was expected",
                               exchange_.name_of(peer), kind_name(header.kind), header.bytes, bytes_.size()));
  }
  return bytes_;
}

}  // namespace dtrain::comm::tcp
