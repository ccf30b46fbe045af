#include "state_transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
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

// One rank's part of a transfer. The hash follows its bytes.
class Part {
 public:
  // Of a holder: `room` is empty.
  Part(comm::Communicator& comm, const std::vector<ByteView>& chunks, const std::vector<std::span<std::byte>>& room)
      : comm_(comm), chunks_(chunks), room_(room), digests_(chunks.size()) {}

  void take(const Transfer& transfer) {
    if (transfer.from == comm_.rank()) send(transfer);
    if (transfer.to == comm_.rank()) receive(transfer);
  }

  std::vector<Delivery> take_damaged() { return std::exchange(damaged_, {}); }

 private:
  void send(const Transfer& transfer) {
    const ByteView bytes = chunks_[transfer.chunk];
    comm_.send(transfer.to, bytes);
    std::optional<Digest>& digest = digests_[transfer.chunk];
    if (!digest) digest = xxh128(bytes);
    comm_.send(transfer.to, *digest);
  }

  void receive(const Transfer& transfer) {
    Digest& claimed = digests_[transfer.chunk].emplace();
    comm_.receive(transfer.from, room_[transfer.chunk]);
    comm_.receive(transfer.from, claimed);
    if (xxh128(room_[transfer.chunk]) != claimed) damaged_.push_back({transfer.chunk, transfer.to});
  }

  comm::Communicator& comm_;
  const std::vector<ByteView>& chunks_;
  const std::vector<std::span<std::byte>>& room_;
  std::vector<std::optional<Digest>> digests_;  // [chunk]: what the holder said, or of a holder what it computed
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

void move_chunks(comm::Communicator& comm, const Roles& roles, const std::vector<ByteView>& chunks,
                 const std::vector<std::span<std::byte>>& room, const SignOfLife& sign_of_life) {
  Part part(comm, chunks, room);
  std::vector<Transfer> transfers = plan_transfers(roles, chunks.size());
  for (int attempt = 1; !transfers.empty(); ++attempt) {
    for (const Transfer& transfer : transfers) {
      part.take(transfer);
      sign_of_life();
    }
    const std::vector<Delivery> damaged = gather_damaged(comm, part.take_damaged());
    if (attempt == kAttempts && !damaged.empty()) give_up(comm, damaged);
    transfers = plan_repeats(roles, damaged, attempt);
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
  move_chunks(comm, roles, chunks, {}, sign_of_life);
}

void receive_chunks(comm::Communicator& comm, const Roles& roles, const std::vector<std::span<std::byte>>& room,
                    const SignOfLife& sign_of_life) {
  move_chunks(comm, roles, {room.begin(), room.end()}, room, sign_of_life);
}

}  // namespace dtrain::train
