#include "allreduce_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include <dtrain/base/stats.hpp>
#include <dtrain/comm/tree.hpp>

#include "bench/forked_ranks.hpp"
#include "bench/membership_simulation.hpp"
#include "compressed_exchange.hpp"
#include "config/exchange/link_option.hpp"

namespace dtrain::cli {

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

namespace {

// Memory and time of a simulation grow with the square of the ranks.
constexpr int kMostRanks = 2048;
// Processor time of a frame beside that of its bytes, on each side. Measured by plain exchanges of 2, 8 and 32 ranks by
// TCP on an AMD EPYC (family 26): what grew with the frames where bytes did not, 1 to 4 us.
constexpr double kFrameSeconds = 2e-6;

int shards_for(const SimulationOptions& options, int ranks) {
  return options.shards > 0 ? options.shards : comm::power_of_two_at_least(ranks);
}

// Processor time of one reduction by TCP in all rounds, per byte that a rank sent or received; its additions are part
// of it, since a rank adds half of what it receives.
comm::HostModel measure_host(const HostProbe& probe, std::int64_t floats, bool rounded, bool plain) {
  const int ranks = probe.ranks;
  const comm::ReductionShape shape{
      .shards = comm::power_of_two_at_least(ranks), .size = floats, .rounded = rounded ? floats : 0};
  const auto results = bench::run_forked(ranks, probe.rounds, kDeadline, [&](bench::ForkedRank& me) {
    comm::MeshPlan mesh, plain_mesh;
    const auto first_endpoint = me.make_endpoint(mesh, false);
    const auto first = first_endpoint->connect(mesh, kConnectDeadline);
    const auto second_endpoint = plain ? me.make_plain_endpoint(plain_mesh, *first) : nullptr;
    const auto second = plain ? second_endpoint->connect(plain_mesh, kConnectDeadline) : nullptr;
    comm::Communicator& comm = plain ? *second : *first;
    const comm::ShardSpan span = comm::shards_of_rank(me.rank(), ranks, shape.shards);
    const auto reduce = [&] {
      const auto reduction = comm.begin_reduction(shape, {});
      for (int shard = span.first; shard < span.last; ++shard) {
        reduction->leaf(shard);
        reduction->ready(shard, 0, shape.size);
      }
      comm.recycle(reduction->finish().sum);
    };
    reduce();
    for (double& seconds : me.numbers()) {
      comm.all_gather({});
      const double begin = cpu_seconds();
      reduce();
      seconds = cpu_seconds() - begin;
    }
    first->all_gather({});
  });
  std::vector<double> of_rounds;
  for (std::size_t round = 0; round < static_cast<std::size_t>(probe.rounds); ++round) {
    double seconds = 0;
    for (const std::vector<double>& of_rank : results) seconds += of_rank[round] / ranks;
    of_rounds.push_back(seconds);
  }
  std::ranges::sort(of_rounds);
  const double width = rounded ? 2 : sizeof(float);
  const double moved = 4 * static_cast<double>(floats) * width * (ranks - 1) / ranks;  // sent and received
  return {.frame = kFrameSeconds, .byte = quantile(of_rounds, 0.5) / moved};
}

std::string limit_text(const comm::SimulatedStep& step) {
  using Limit = comm::SimulatedStep::Limit;
  const double percent = 100 * step.limit_share;
  switch (step.limit) {
    case Limit::latency:
      return fmt::format("latency, {:.0f} % of the time", percent);
    case Limit::sending:
      return fmt::format("sending of host {}, busy {:.0f} %", step.limit_at, percent);
    case Limit::receiving:
      return fmt::format("receiving of host {}, busy {:.0f} %", step.limit_at, percent);
    case Limit::thread:
      return fmt::format("thread of rank {}, busy {:.0f} %", step.limit_at, percent);
  }
  return {};
}

const char* limit_name(comm::SimulatedStep::Limit limit) {
  using Limit = comm::SimulatedStep::Limit;
  switch (limit) {
    case Limit::latency:
      return "latency";
    case Limit::sending:
      return "sending";
    case Limit::receiving:
      return "receiving";
    case Limit::thread:
      return "thread";
  }
  return "";
}

// Times and bytes of two exchanges, one after the other; what limits the longer one.
comm::SimulatedStep both(const comm::SimulatedStep& first, const comm::SimulatedStep& second) {
  comm::SimulatedStep sum = first.seconds < second.seconds ? second : first;
  sum.seconds = first.seconds + second.seconds;
  sum.busiest_link_bytes = first.busiest_link_bytes + second.busiest_link_bytes;
  sum.rounds = first.rounds + second.rounds;
  sum.frames = first.frames + second.frames;
  return sum;
}

// The ring is that of floats as they are.
comm::SimulatedStep simulate_compressed(comm::ExchangeModel model, const train::GradientCompression& kind) {
  using train::Compression;
  if (kind.kind == Compression::two_bit) model.packing = comm::Packing::counts;
  if (kind.kind == Compression::top_k) {
    model.packing = comm::Packing::sparse;
    model.density = kind.share;
  }
  if (kind.kind != Compression::power_sgd) return comm::simulate_reduction(model);
  const comm::ReductionShape plain{.shards = model.shards, .size = model.floats};
  const train::GradientCompressor factors(kind, tensors_of(model.floats), model.shards, {0, 0});
  const double floats = static_cast<double>(model.floats);
  model.floats = factors.left_shape(plain).size;
  const double part = floats / static_cast<double>(model.floats);
  comm::SimulatedStep step = comm::simulate_reduction(model);
  step.ring_bytes *= part;
  step.ring_seconds *= part;
  model.floats = factors.right_shape(plain).size;
  if (model.floats == 0) return step;
  comm::SimulatedStep second = comm::simulate_reduction(model);
  second.ring_bytes = step.ring_bytes;
  second.ring_seconds = step.ring_seconds;
  return both(step, second);
}

Json row(const comm::ExchangeModel& model, const std::string& gradients, const comm::SimulatedStep& step) {
  return Json::object({{"ranks", model.ranks},
                       {"shards", model.shards},
                       {"gradients", gradients},
                       {"seconds", step.seconds},
                       {"ring_seconds", step.ring_seconds},
                       {"ring_ratio", step.ring_ratio()},
                       {"busiest_link_bytes", step.busiest_link_bytes},
                       {"ring_bytes", step.ring_bytes},
                       {"byte_ratio", step.byte_ratio()},
                       {"rounds", step.rounds},
                       {"frames", step.frames},
                       {"limit", limit_name(step.limit)},
                       {"limit_at", step.limit_at < 0 ? Json() : Json(step.limit_at)},
                       {"limit_share", step.limit_share}});
}

Json host_json(const comm::HostModel& host, const std::optional<HostProbe>& probe) {
  if (!probe) return {};
  return Json::object(
      {{"measured_with_ranks", probe->ranks}, {"frame_seconds", host.frame}, {"byte_seconds", host.byte}});
}

Json change_json(const bench::SimulatedChange& change) {
  return Json::object(
      {{"noticed_seconds", change.noticed}, {"pause_seconds", change.pause}, {"state_seconds", change.state}});
}

// Changes of membership for each number of ranks, one host a rank.
Json simulate_changes(const SimulationOptions& options, std::int64_t floats, Reporter& reporter) {
  const double state =
      options.state_megabytes > 0 ? 1e6 * options.state_megabytes : 2.0 * sizeof(float) * static_cast<double>(floats);
  if (!reporter.json()) {
    reporter.answer(
        fmt::format("changes of membership, a state of {:.0f} MB; pause of training in ms, and s until the "
                    "coordinator acts",
                    state / 1e6));
    reporter.answer(fmt::format("{:>5}{:>16}{:>10}{:>10}{:>10}{:>10}{:>10}{:>12}", "ranks",
                                fmt::format("{} join", options.newcomers), "of state", "killed", "silent", "after s",
                                "takeover", "after s"));
  }
  Json rows = Json::array();
  for (const double ranks : options.ranks) {
    const bench::SimulatedChanges changes = bench::simulate_membership({.ranks = static_cast<int>(ranks),
                                                                        .newcomers = options.newcomers,
                                                                        .link = *options.link,
                                                                        .state_bytes = state});
    rows.push_back(Json::object({{"ranks", static_cast<int>(ranks)},
                                 {"newcomers", options.newcomers},
                                 {"state_bytes", state},
                                 {"join", change_json(changes.join)},
                                 {"killed", change_json(changes.killed)},
                                 {"silent", change_json(changes.silent)},
                                 {"takeover", change_json(changes.takeover)}}));
    if (reporter.json()) continue;
    reporter.answer(fmt::format("{:>5}{:>16.0f}{:>10.0f}{:>10.0f}{:>10.0f}{:>10.2f}{:>10.0f}{:>12.2f}", ranks,
                                1e3 * changes.join.pause, 1e3 * changes.join.state, 1e3 * changes.killed.pause,
                                1e3 * changes.silent.pause, changes.silent.noticed, 1e3 * changes.takeover.pause,
                                changes.takeover.noticed));
  }
  return rows;
}

}  // namespace

void check(const SimulationOptions& options) {
  if (!options.link) {
    throw UsageError("--simulate needs the links that it shall simulate: --link RATE,LATENCY",
                     "for example --link 10gbit,50us");
  }
  for (const double ranks : options.ranks) {
    if (!(ranks >= 2 && ranks <= kMostRanks) || ranks != static_cast<int>(ranks)) {
      throw UsageError(fmt::format("--simulate: '{}' is not a whole number from 2 to {}", ranks, kMostRanks));
    }
    if (options.shards == 0) continue;
    if (!comm::is_power_of_two(options.shards)) {
      throw UsageError(fmt::format("--shards: {} is not a power of two", options.shards));
    }
    if (ranks > options.shards) {
      throw UsageError(
          fmt::format("--simulate: {} ranks are more than {} shards, so some would have none", ranks, options.shards),
          "give --shards at least the number of ranks, or leave it out");
    }
  }
}

ExitCode simulate(const SimulationOptions& options, std::int64_t floats, bool rounded, const Compressions& compressions,
                  const std::optional<HostProbe>& probe, Reporter& reporter) {
  if (rounded && !compressions.empty()) {
    throw UsageError("--bfloat16 and --gradient-compression: gradients are compressed from float32",
                     "leave --bfloat16 out");
  }
  const comm::HostModel host = probe ? measure_host(*probe, floats, rounded, options.plain) : comm::HostModel{};
  if (!reporter.json()) {
    if (probe) {
      reporter.answer(fmt::format("hosts: {:.2f} ns for each byte and {:.0f} us for each frame, as {} ranks here ({})",
                                  1e9 * host.byte, 1e6 * host.frame, probe->ranks,
                                  options.plain ? "plain" : "encrypted"));
    } else {
      reporter.answer("hosts: no time; --ranks N measures it with N ranks here");
    }
    reporter.answer(fmt::format("{:>5}{:>11}{:>11}{:>8}{:>11}{:>8}  {:<14}{}", "ranks", "ms", "ring ms", "ratio",
                                "bytes", "rounds", "gradients", "limit"));
  }
  comm::LinkModel link = *options.link;
  link.unevenness = options.unevenness;
  Json rows = Json::array();
  for (const double ranks : options.ranks) {
    const comm::ExchangeModel model{.ranks = static_cast<int>(ranks),
                                    .shards = shards_for(options, static_cast<int>(ranks)),
                                    .floats = floats,
                                    .rounded = rounded,
                                    .ranks_per_host = options.ranks_per_host,
                                    .link = link,
                                    .host = host};
    Compressions kinds(1);  // as they are
    kinds.insert(kinds.end(), compressions.begin(), compressions.end());
    for (const train::GradientCompression& kind : kinds) {
      const comm::SimulatedStep step = simulate_compressed(model, kind);
      const std::string gradients = rounded ? "bfloat16" : gradients_text(kind);
      rows.push_back(row(model, gradients, step));
      if (reporter.json()) continue;
      reporter.answer(fmt::format("{:>5}{:>11.1f}{:>11.1f}{:>8.2f}{:>10.2f}x{:>8}  {:<14}{}", model.ranks,
                                  1e3 * step.seconds, 1e3 * step.ring_seconds, step.ring_ratio(), step.byte_ratio(),
                                  step.rounds, gradients, limit_text(step)));
    }
  }
  const Json changes = options.changes ? simulate_changes(options, floats, reporter) : Json();
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.bench-allreduce-simulation/1"},
                                       {"floats", floats},
                                       {"rounded", rounded},
                                       {"link", config::link_text(link)},
                                       {"unevenness", link.unevenness},
                                       {"ranks_per_host", options.ranks_per_host},
                                       {"host", host_json(host, probe)},
                                       {"simulations", rows},
                                       {"changes", changes}}));
  }
  return ExitCode::ok;
}

}  // namespace dtrain::cli
