#include "state_transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>

namespace dtrain::train {
namespace {

constexpr int kAttempts = 4;

// Peers proved the job's token: this guards against damage, not against malice.
using Digest = Xxh128;

template <typename Bytes>
void cut(Bytes buffer, std::vector<Bytes>& chunks) {
  while (!buffer.empty()) {
    const std::size_t size = std::min(kTransferChunk, buffer.size());
    chunks.push_back(buffer.first(size));
    buffer = buffer.subspan(size);
  }
}

// The hash follows its bytes.
class Sender {
 public:
  Sender(comm::Communicator& comm, const std::vector<ByteView>& chunks) : comm_(comm), chunks_(chunks) {}

  void take_part(const Transfer& transfer) {
    if (transfer.from != comm_.rank()) return;
    const ByteView bytes = chunks_[transfer.chunk];
    comm_.send(transfer.to, bytes);
    if (std::exchange(hashed_, transfer.chunk) != transfer.chunk) digest_ = xxh128(bytes);
    comm_.send(transfer.to, digest_);
  }

  std::vector<Delivery> take_damaged() { return {}; }

 private:
  comm::Communicator& comm_;
  const std::vector<ByteView>& chunks_;
  std::size_t hashed_ = SIZE_MAX;
  Digest digest_{};  // of chunk hashed_, which may go to several receivers
};

class Receiver {
 public:
  Receiver(comm::Communicator& comm, const std::vector<std::span<std::byte>>& room) : comm_(comm), room_(room) {}

  void take_part(const Transfer& transfer) {
    if (transfer.to != comm_.rank()) return;
    Digest claimed{};
    comm_.receive(transfer.from, room_[transfer.chunk]);
    comm_.receive(transfer.from, claimed);
    if (xxh128(room_[transfer.chunk]) != claimed) damaged_.push_back({transfer.chunk, transfer.to});
  }

  std::vector<Delivery> take_damaged() { return std::exchange(damaged_, {}); }

 private:
  comm::Communicator& comm_;
  const std::vector<std::span<std::byte>>& room_;
  std::vector<Delivery> damaged_;
};

// The damaged chunks of all ranks, in an order that is the same on all ranks.
std::vector<Delivery> gather_damaged(comm::Communicator& comm, const std::vector<Delivery>& mine) {
  std::vector<std::uint64_t> numbers;
  for (const Delivery& delivery : mine) numbers.push_back(delivery.chunk);
  const std::vector<std::string> all = comm.all_gather(std::as_bytes(std::span(numbers)));
  std::vector<Delivery> deliveries;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= all[rank].size(); at += sizeof(std::uint64_t)) {
      std::uint64_t chunk = 0;
      std::memcpy(&chunk, all[rank].data() + at, sizeof chunk);
      deliveries.push_back({static_cast<std::size_t>(chunk), static_cast<int>(rank)});
    }
  }
  std::ranges::stable_sort(deliveries, {}, &Delivery::chunk);
  return deliveries;
}

[[noreturn]] void give_up(const comm::Communicator& comm, const std::vector<Delivery>& open) {
  const std::string what = fmt::format("the state arrived damaged at rank {}, {} times", open.front().to, kAttempts);
  const bool mine = std::ranges::any_of(open, [&](const Delivery& delivery) { return delivery.to == comm.rank(); });
  if (mine) throw Error(what, "memory or network of this machine may be faulty");
  throw PeerLost(what);
}

// `side` is a Sender or a Receiver: it picks its own part out of every round's transfers.
template <typename Side>
void move_chunks(comm::Communicator& comm, const Roles& roles, std::size_t chunks, Side side,
                 const SignOfLife& sign_of_life) {
  std::vector<Delivery> open = all_deliveries(roles, chunks);
  for (int attempt = 0; !open.empty(); ++attempt) {
    if (attempt == kAttempts) give_up(comm, open);
    for (const Transfer& transfer : plan_transfers(roles, open, attempt)) {
      side.take_part(transfer);
      sign_of_life();
    }
    open = gather_damaged(comm, side.take_damaged());
  }
}

}  // namespace

std::vector<ByteView> chunks_of(const backend::ModelState& state) {
  std::vector<ByteView> chunks;
  for (const auto buffer : backend::kStateBuffers) cut(std::as_bytes(std::span(state.*buffer)), chunks);
  return chunks;
}

std::vector<std::span<std::byte>> room_in(backend::ModelState& state) {
  std::vector<std::span<std::byte>> room;
  for (const auto buffer : backend::kStateBuffers) cut(std::as_writable_bytes(std::span(state.*buffer)), room);
  return room;
}

void send_chunks(comm::Communicator& comm, const Roles& roles, const std::vector<ByteView>& chunks,
                 const SignOfLife& sign_of_life) {
  move_chunks(comm, roles, chunks.size(), Sender(comm, chunks), sign_of_life);
}

void receive_chunks(comm::Communicator& comm, const Roles& roles, const std::vector<std::span<std::byte>>& room,
                    const SignOfLife& sign_of_life) {
  move_chunks(comm, roles, room.size(), Receiver(comm, room), sign_of_life);
}

}  // namespace dtrain::train
