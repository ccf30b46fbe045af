#include "shard_memory.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/secret.hpp>

#include "checkpoint/manifest.hpp"
#include "state_transfer.hpp"

namespace dtrain::train {
namespace {

// A copy of a shard, as a rank offers it.
struct Copy {
  int rank = 0;
  std::uint64_t version = 0, updates = 0;
  bool has_previous = false;
};

struct Offer {
  std::string open, completed;
  std::map<int, Copy> shards;
  std::set<std::uint64_t> done;  // of a rank that has the first shard
  std::optional<backend::StepMetrics> totals;
};

// The epoch's sums, in the order of its batches.
backend::StepMetrics totals_of(const ServedShard& first, const RunState& run) {
  RunState sums;
  sums.totals = run.totals;
  for (const auto& [number, batch] : first.applied) {
    if (first.done.contains(number)) sums.add(batch.metrics);
  }
  return sums.totals;
}

Json runs_of(const std::set<std::uint64_t>& numbers) {
  Json::Array runs;
  for (auto each = numbers.begin(); each != numbers.end();) {
    const std::uint64_t first = *each;
    std::uint64_t end = first;
    for (; each != numbers.end() && *each == end; ++each) ++end;
    runs.push_back(Json::array({first, end}));
  }
  return Json(std::move(runs));
}

std::set<std::uint64_t> numbers_in(const Json& runs) {
  std::set<std::uint64_t> numbers;
  for (const Json& run : runs.as_array()) {
    const auto end = static_cast<std::uint64_t>(run.as_array().at(1).as_integer());
    for (auto number = static_cast<std::uint64_t>(run.as_array().at(0).as_integer()); number < end; ++number) {
      numbers.insert(number);
    }
  }
  return numbers;
}

Json offer_of(const ShardMemory& memory, const RunState& run) {
  Json offer = Json::object({{"completed", memory.completed}});
  if (!memory.open) return offer;
  offer["open"] = memory.open->key;
  Json::Array shards;
  for (const auto& [number, served] : memory.open->shards) {
    const ParameterShard& shard = *served.shard;
    shards.push_back(Json::object({{"shard", number},
                                   {"version", shard.version()},
                                   {"updates", shard.state().updates},
                                   {"previous", !shard.previous().empty()}}));
  }
  offer["shards"] = Json(std::move(shards));
  const auto first = memory.open->shards.find(0);
  if (first == memory.open->shards.end()) return offer;
  offer["done"] = runs_of(first->second.done);
  offer["totals"] = totals_json(totals_of(first->second, run));
  return offer;
}

Offer offer_from(const Json& json, int rank) {
  Offer offer;
  offer.completed = json.at("completed").as_string();
  const Json* const open = json.find("open");
  if (!open) return offer;
  offer.open = open->as_string();
  const auto count = [](const Json& of, const char* key) {
    return static_cast<std::uint64_t>(of.at(key).as_integer());
  };
  for (const Json& shard : json.at("shards").as_array()) {
    offer.shards[static_cast<int>(shard.at("shard").as_integer())] = {
        rank, count(shard, "version"), count(shard, "updates"), shard.at("previous").as_bool()};
  }
  if (const Json* done = json.find("done")) {
    offer.done = numbers_in(*done);
    offer.totals = totals_from(json.at("totals"));
  }
  return offer;
}

// What all ranks know from the same offers.
struct Plan {
  std::vector<int> receivers;  // ranks that have the section
  std::vector<Copy> copies;    // of each shard, the one to be taken
  const Offer* book = nullptr;
};

// nullopt: a shard is lost. Of synchronous workers each shard has the batches that all servers have; one that is a
// batch ahead goes back.
std::optional<Plan> plan_of(const std::vector<Offer>& offers, const OpenSection& section) {
  Plan plan;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const Offer& offer = offers[rank];
    if (offer.open != section.key) continue;
    plan.receivers.push_back(static_cast<int>(rank));
    if (offer.totals && (!plan.book || offer.done.size() > plan.book->done.size())) plan.book = &offer;
  }
  if (!plan.book) return std::nullopt;
  const bool exact = section.book.shares();
  const std::uint64_t done = plan.book->done.size();
  for (int shard = 0; shard < std::ssize(section.layouts); ++shard) {
    std::optional<Copy> best;
    for (const int rank : plan.receivers) {
      const auto& held = offers[static_cast<std::size_t>(rank)].shards;
      const auto found = held.find(shard);
      if (found == held.end()) continue;
      const Copy& copy = found->second;
      if (exact && copy.version != done && (copy.version != done + 1 || !copy.has_previous)) continue;
      if (!best || (!exact && copy.version > best->version)) best = copy;
    }
    if (!best) return std::nullopt;
    plan.copies.push_back(*best);
  }
  return plan;
}

void send_floats(comm::Communicator& comm, int to, std::span<const float> floats, const std::function<void()>& alive) {
  for (ByteView rest = std::as_bytes(floats); !rest.empty();
       rest = rest.subspan(std::min(kTransferChunk, rest.size()))) {
    comm.send(to, rest.first(std::min(kTransferChunk, rest.size())));
    alive();
  }
}

void receive_floats(comm::Communicator& comm, int from, std::span<float> floats, const std::function<void()>& alive) {
  for (std::span<std::byte> rest = std::as_writable_bytes(floats); !rest.empty();
       rest = rest.subspan(std::min(kTransferChunk, rest.size()))) {
    comm.receive(from, rest.first(std::min(kTransferChunk, rest.size())));
    alive();
  }
}

// Shard by shard, from the rank that has it to all others.
backend::ModelState gather_shards(comm::Communicator& comm, const OpenSection& section, const Plan& plan,
                                  const std::function<void()>& alive) {
  backend::ModelState state = section.base;
  const std::size_t slots = state.parameters.empty() ? 0 : state.optimizer.size() / state.parameters.size();
  const bool exact = section.book.shares();
  for (std::size_t shard = 0; shard < section.layouts.size(); ++shard) {
    const Copy& copy = plan.copies[shard];
    const ShardLayout& layout = section.layouts[shard];
    const bool goes_back = exact && copy.version > plan.book->done.size();
    std::vector<float> floats;
    if (copy.rank == comm.rank()) {
      const ParameterShard& held = *section.shards.at(static_cast<int>(shard)).shard;
      floats = goes_back ? held.previous() : held.floats();
      for (const int to : plan.receivers) {
        if (to != comm.rank()) send_floats(comm, to, floats, alive);
      }
    } else {
      floats.resize(shard_floats(layout, slots, !state.average.empty()));
      receive_floats(comm, copy.rank, floats, alive);
    }
    put_shard(layout, floats, state);
    state.updates = std::max(state.updates, copy.updates - (goes_back ? 1 : 0));
  }
  return state;
}

void move_on(const OpenSection& section, const Offer& book, RunState& run) {
  const EpochBook::Standing standing = EpochBook::standing(section.book, book.done);
  Cursor& cursor = run.cursor;
  cursor.samples_seen += standing.position - cursor.position;
  cursor.position = standing.position;
  cursor.step += standing.batches;
  run.ahead = standing.ahead;
  run.totals = *book.totals;
  run.settled.clear();
  run.pending.clear();
}

}  // namespace

void give_up_section(backend::Executable& executable, ShardMemory& memory) {
  if (!memory.open) return;
  executable.write_state(std::move(memory.open->base));
  memory.open.reset();
}

bool put_together(comm::Communicator& comm, backend::Executable& executable, elastic::Membership& membership,
                  ShardMemory& memory, RunState& run) {
  const auto alive = [&] {
    membership.progress(elastic::Phase::entering);
    membership.require_generation();
  };
  const std::string mine = offer_of(memory, run).dump();
  std::vector<Offer> offers;
  for (const std::string& text : comm.all_gather(bytes_of(mine))) {
    offers.push_back(offer_from(Json::parse(text, "a peer's shards"), static_cast<int>(offers.size())));
  }
  if (!memory.open) return true;
  const std::string& key = memory.open->key;
  // Others have put it together already, and are further.
  const bool too_late = std::ranges::any_of(offers, [&](const Offer& offer) { return offer.completed == key; });
  const std::optional<Plan> plan = too_late ? std::nullopt : plan_of(offers, *memory.open);
  if (!plan) {
    membership.begin_apply();
    give_up_section(executable, memory);
    membership.end_apply(training_position_of(run));
    return too_late;
  }
  backend::ModelState state = gather_shards(comm, *memory.open, *plan, alive);
  membership.begin_apply();
  executable.write_state(std::move(state));
  move_on(*memory.open, *plan->book, run);
  memory.completed = memory.open->key;
  memory.open.reset();
  membership.end_apply(training_position_of(run));
  return true;
}

}  // namespace dtrain::train
