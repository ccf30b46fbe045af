// Moves the state of a model between ranks in chunks, each checked by its hash.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/comm/communicator.hpp>
#include <dtrain/train/transfer_plan.hpp>

namespace dtrain::train {

// The buffers of a state in chunks of at most so many: in the order of backend::kStateBuffers.
std::vector<ByteView> chunks_of(const backend::ModelState& state);
std::vector<std::span<std::byte>> room_in(backend::ModelState& state);

// The two sides of a transfer; all ranks of `roles` call one of them at the same time. A receiver passes chunks on with
// the hash that their holder gave them, so what is damaged on its way is noticed by all that get it, and fetched again
// from a holder. A receiver that gets no good copy throws Error; then all others throw PeerLost, as they
// do for any rank that is lost. Neither bytes nor hashes wait for each other: hashing has threads of its own.
using SignOfLife = std::function<void()>;
void send_chunks(comm::Communicator& comm, const Roles& roles, const std::vector<ByteView>& chunks,
                 const SignOfLife& sign_of_life);
void receive_chunks(comm::Communicator& comm, const Roles& roles, const std::vector<std::span<std::byte>>& room,
                    const SignOfLife& sign_of_life);

}  // namespace dtrain::train
