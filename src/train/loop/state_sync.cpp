#include "state_sync.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/secret.hpp>

#include "checkpoint/manifest.hpp"
#include "first_state.hpp"
#include "state_transfer.hpp"

namespace dtrain::train {
namespace {

backend::ModelState start_state(const nn::Graph& graph, const TrainerOptions& options, data::Loader& training,
                                const Checkpoint* start) {
  return start ? start->state : first_state(graph, options, training);
}

// Who took a step that the others then took again, without it, is where they are and holds something else.
std::string bits_of(const backend::ModelState& state) {
  std::string digests;
  for (const auto buffer : backend::kStateBuffers) {
    const Xxh128 digest = xxh128(std::as_bytes(std::span(state.*buffer)));
    digests += to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
  }
  return digests;
}

}  // namespace

// What a rank says of itself before anything moves: all that the others need but the weights.
struct StateSync::Offer {
  bool has_state = false;
  std::uint64_t updates = 0;
  backend::LossScale loss_scale;
  std::uint64_t parameters = 0, statistics = 0, optimizer = 0, average = 0;  // floats
  std::string bits;                                                          // as in Claim
  RunState run;
  std::optional<LostStart> lost;

  Claim claim() const { return {has_state, run.cursor, updates, bits}; }

  Json json() const {
    Json json = Json::object({{"has_state", has_state},
                              {"updates", updates},
                              {"loss_scale", to_json(loss_scale)},
                              {"parameters", parameters},
                              {"statistics", statistics},
                              {"optimizer", optimizer},
                              {"average", average},
                              {"bits", bits},
                              {"run", to_json(run)}});
    if (lost) json["lost"] = Json::object({{"epoch", lost->epoch}, {"step", lost->step}, {"reason", lost->reason}});
    return json;
  }

  static Offer from(const Json& json) {
    const auto count = [&](const char* key) { return static_cast<std::uint64_t>(json.at(key).as_integer()); };
    const Json* const lost = json.find("lost");
    return {.has_state = json.at("has_state").as_bool(),
            .updates = count("updates"),
            .loss_scale = loss_scale_from(json.at("loss_scale")),
            .parameters = count("parameters"),
            .statistics = count("statistics"),
            .optimizer = count("optimizer"),
            .average = count("average"),
            .bits = json.at("bits").as_string(),
            .run = run_state_from_json(json.at("run")),
            .lost = lost ? std::optional(lost_from(*lost)) : std::nullopt};
  }

  static LostStart lost_from(const Json& json) {
    return {.epoch = static_cast<std::uint32_t>(json.at("epoch").as_integer()),
            .step = static_cast<std::uint64_t>(json.at("step").as_integer()),
            .reason = json.at("reason").as_string()};
  }
};

StateSync::StateSync(const nn::Graph& graph, backend::Executable& executable, elastic::Membership& membership,
                     const TrainerOptions& options, data::Loader& training, const data::Loader* validation,
                     const Checkpoint* start)
    : graph_(graph),
      executable_(executable),
      membership_(membership),
      options_(options),
      training_(training),
      validation_(validation),
      start_{.checkpoint = start, .lost = options.lost_start},
      fresh_(start_state(graph, options, training, start)) {}

elastic::TrainingPosition StateSync::training_position(const RunState& run) const {
  elastic::TrainingPosition position = training_position_of(run);
  position.has_state = has_state_;
  return position;
}

void StateSync::bring_together(comm::Communicator& comm, RunState& run) {
  std::vector<Offer> offers = gather_offers(comm, run);
  if (std::ranges::none_of(offers, &Offer::has_state)) {
    find_start(run);
    offers = gather_offers(comm, run);
  }
  const Roles roles = roles_of(claims_of(offers));
  const Offer& leader = offers[static_cast<std::size_t>(roles.leader)];
  require_trained(offers, leader);
  backend::ModelState received = exchange(comm, roles, leader);

  membership_.begin_apply();
  if (!received.parameters.empty()) {
    executable_.write_state(std::move(received));
  } else if (!has_state_) {
    executable_.write_state(std::move(*fresh_));
  }
  fresh_.reset();
  has_state_ = true;
  run = leader.run;
  membership_.end_apply(training_position(run));
}

std::vector<StateSync::Offer> StateSync::gather_offers(comm::Communicator& comm, const RunState& run) {
  const std::string mine = offer(run).json().dump();
  std::vector<Offer> offers;
  for (const std::string& text : comm.all_gather(bytes_of(mine))) {
    offers.push_back(Offer::from(Json::parse(text, "a peer's offer")));
  }
  return offers;
}

std::vector<Claim> StateSync::claims_of(const std::vector<Offer>& offers) {
  std::vector<Claim> claims;
  for (const Offer& offer : offers) claims.push_back(offer.claim());
  return claims;
}

// A worker that waited for long before it became a member may know of an old checkpoint only.
void StateSync::find_start(RunState& run) {
  if (!options_.find_start) return;
  membership_.progress(elastic::Phase::entering);
  if (const std::optional<RunStart> found = options_.find_start()) {
    start_ = *found;
    fresh_.reset();
    run = start_of_run(start_.checkpoint, training_, validation_, options_);
  }
  membership_.progress(elastic::Phase::entering);
}

// No rank has the state in memory any more: the leader begins with what it could read, which may be from before the
// steps that a checkpoint has. Training these again in silence would look like progress.
void StateSync::require_trained(const std::vector<Offer>& offers, const Offer& leader) {
  if (leader.has_state) return;
  const std::tuple start(leader.run.cursor.epoch, leader.run.cursor.step);
  for (const Offer& offer : offers) {
    if (!offer.lost || std::tuple(offer.lost->epoch, offer.lost->step) <= start) continue;
    throw DataError(fmt::format("the run has trained up to epoch {} step {}, and no worker can go on from there: {}",
                                offer.lost->epoch, offer.lost->step, offer.lost->reason),
                    "make that file readable again; or stop the job and give setting 'resume', which finds the newest "
                    "undamaged checkpoint");
  }
}

StateSync::Offer StateSync::offer(const RunState& run) {
  const backend::ModelState& state = own_state();
  return {.has_state = has_state_,
          .updates = state.updates,
          .loss_scale = state.loss_scale,
          .parameters = state.parameters.size(),
          .statistics = state.statistics.size(),
          .optimizer = state.optimizer.size(),
          .average = state.average.size(),
          .bits = has_state_ && !options_.same_bits ? bits_of(state) : std::string(),
          .run = run,
          .lost = has_state_ ? std::nullopt : start_.lost};
}

// What this rank received; empty on those that need nothing.
backend::ModelState StateSync::exchange(comm::Communicator& comm, const Roles& roles, const Offer& from) {
  if (roles.receivers.empty()) return {};
  const auto sign_of_life = [this] { membership_.progress(elastic::Phase::entering); };
  const bool receives = std::ranges::find(roles.receivers, comm.rank()) != roles.receivers.end();
  if (!receives) {
    send_chunks(comm, roles, chunks_of(own_state()), sign_of_life);
    return {};
  }
  backend::ModelState received = staging(from);
  receive_chunks(comm, roles, room_in(received), sign_of_life);
  received.updates = from.updates;
  received.loss_scale = from.loss_scale;
  return received;
}

const backend::ModelState& StateSync::own_state() {
  if (has_state_) return executable_.state();
  if (!fresh_) fresh_ = start_state(graph_, options_, training_, start_.checkpoint);
  return *fresh_;
}

backend::ModelState StateSync::staging(const Offer& from) {
  if (from.parameters != static_cast<std::uint64_t>(graph_.parameter_count) ||
      from.statistics != static_cast<std::uint64_t>(graph_.statistic_count)) {
    throw DataError(fmt::format("the job trains {} parameters and {} statistics, this worker {} and {}",
                                from.parameters, from.statistics, graph_.parameter_count, graph_.statistic_count),
                    "start this worker with the options of the job");
  }
  backend::ModelState state;
  if (fresh_) state = std::move(*fresh_);
  fresh_.reset();
  state.parameters.resize(from.parameters);
  state.statistics.resize(from.statistics);
  state.optimizer.resize(from.optimizer);
  state.average.resize(from.average);
  return state;
}

}  // namespace dtrain::train
