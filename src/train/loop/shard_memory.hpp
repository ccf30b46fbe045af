// What a worker holds of a section that is not over: its shards and replicas, and the state with which the section
// began. It outlives the generation, so that the next one can put the shards together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/comm/communicator.hpp>
#include <dtrain/elastic/membership.hpp>

#include "run_state.hpp"
#include "servers/shard_server.hpp"

namespace dtrain::train {

struct OpenSection {
  std::string key;  // of the section, the same on all of its workers
  BookPlan book;
  std::vector<ShardLayout> layouts;
  backend::ModelState base;
  std::map<int, ServedShard> shards;
};

struct ShardMemory {
  std::optional<OpenSection> open;
  std::string completed;  // key of the section that was put together last
};

// All ranks call it, also those that have no part in the section. The shards of a section that is open become one state
// again, in the executable and in `run` of all workers that have it. Nothing, where no section is open. Returns false
// where a shard is lost with its replica: then the workers stand where the section began. Throws PeerLost; then nothing
// has changed. `run` is the one with which the section began.
[[nodiscard]] bool put_together(comm::Communicator& comm, backend::Executable& executable,
                                elastic::Membership& membership, ShardMemory& memory, RunState& run);
// The worker stands again where the section began.
void give_up_section(backend::Executable& executable, ShardMemory& memory);

}  // namespace dtrain::train
