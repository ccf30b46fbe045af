#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/simulation.hpp>

#include "packing.hpp"
#include "rank.hpp"

namespace dtrain::comm {
namespace {

using namespace simulate;

void check(const ExchangeModel& model) {
  if (model.ranks < 2) throw UsageError(fmt::format("{} ranks exchange nothing: a simulation needs 2", model.ranks));
  if (!is_power_of_two(model.shards)) {
    throw UsageError(fmt::format("{} shards: the tree needs a power of two", model.shards));
  }
  if (model.ranks > model.shards) {
    throw UsageError(fmt::format("{} ranks are more than the {} shards that they add up", model.ranks, model.shards),
                     "give at least as many shards as ranks");
  }
  if (model.rounded && model.packing != Packing::none) throw UsageError("floats are rounded or packed, not both");
  if (!(model.density > 0 && model.density <= 1)) throw UsageError("a share of floats is above 0 and at most 1");
  if (model.floats < 1) throw UsageError("nothing is added up: an array needs at least one float");
  if (model.ranks_per_host < 1) throw UsageError("a host has at least one rank");
  if (!(model.link.bytes_per_second > 0)) throw UsageError("a link needs a bandwidth above 0");
  if (!(model.link.unevenness >= 0 && model.link.unevenness < 1)) {
    throw UsageError("the unevenness of a link is from 0 to less than 1");
  }
  if (!(model.link.latency >= 0)) throw UsageError("the latency of a link is at least 0");
}

// What a float of a node at this level travels in, on average. Places of sparse floats are drawn for each shard.
double width_of(const ExchangeModel& model, int level) {
  constexpr int kMasked = 64, kMaskBytes = 8;
  if (model.packing == Packing::counts) {
    constexpr std::int64_t kMany = 1 << 20;
    return static_cast<double>(packed_sizes(Packing::counts, level, kMany).most) / kMany;
  }
  if (model.packing == Packing::none) return model.rounded ? sizeof(bfloat16_bits) : sizeof(float);
  double zero = 1 - model.density;  // how likely
  for (int each = 0; each < level; ++each) zero *= zero;
  double none = zero;  // of all floats of a mask
  for (int floats = 1; floats < kMasked; floats *= 2) none *= none;
  return 1.0 / kMasked / 8 + (1 - none) * kMaskBytes / kMasked + (1 - zero) * sizeof(float);
}

std::vector<double> widths_of(const ExchangeModel& model) {
  std::vector<double> widths;
  for (int level = 0; 1 << level <= model.shards; ++level) widths.push_back(width_of(model, level));
  return widths;
}

ReductionShape shape_of(const ExchangeModel& model) {
  return {.shards = model.shards, .size = model.floats, .rounded = model.rounded ? model.floats : 0};
}

class Simulation {
 public:
  explicit Simulation(const ExchangeModel& model)
      : model_(model),
        plan_(even_spans(model.ranks, model.shards)),
        stations_(Station::of_all_ranks(plan_, way_of(shape_of(model), model.ranks_per_host > 1))),
        buckets_(cut_into_buckets(shape_of(model))),
        hosts_((model.ranks + model.ranks_per_host - 1) / model.ranks_per_host),
        network_(events_, segments_, model.link, hosts_,
                 static_cast<std::size_t>(model.ranks) * static_cast<std::size_t>(model.ranks)),
        world_{model_, plan_, stations_, buckets_, events_, segments_, network_, widths_of(model)} {
    for (int rank = 0; rank < model.ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(world_, rank));
  }

  SimulatedStep run() {
    for (const auto& rank : ranks_) rank->start();
    while (!events_.empty()) carry_out(events_.next());
    SimulatedStep step;
    for (const auto& rank : ranks_) {
      DTRAIN_CHECK(rank->completed_at() >= 0, "a schedule completes once all frames have come");
      step.seconds = std::max(step.seconds, rank->completed_at());
      step.rounds = std::max(step.rounds, rank->rounds());
      step.frames += rank->frames_sent();
    }
    const double bytes = static_cast<double>(model_.floats) * (model_.rounded ? sizeof(bfloat16_bits) : sizeof(float));
    step.ring_bytes = 2 * bytes * (model_.ranks - 1) / model_.ranks;
    step.ring_seconds = step.ring_bytes / model_.link.bytes_per_second;
    find_limit(step);
    return step;
  }

 private:
  Rank& rank(std::uint32_t number) { return *ranks_[number]; }
  std::uint32_t sender_of(std::uint32_t segment) { return segments_[segment].connection / connections(); }
  std::uint32_t receiver_of(std::uint32_t segment) { return segments_[segment].connection % connections(); }
  std::uint32_t connections() const { return static_cast<std::uint32_t>(model_.ranks); }  // of a rank

  void carry_out(const Event& event) {
    switch (event.kind) {
      case EventKind::link_free:
        return network_.link_free(event.id);
      case EventKind::at_link:
        return network_.at_link(event.id);
      case EventKind::delivered:
        return rank(receiver_of(event.id)).deliver(event.id);
      case EventKind::acknowledged:
        return rank(sender_of(event.id)).acknowledged(event.id);
      case EventKind::leaves_ready:
        return rank(event.id).leaves_ready();
      case EventKind::thread_free:
        return rank(event.id).thread_free();
    }
  }

  void find_limit(SimulatedStep& step) const {
    const auto offer = [&](SimulatedStep::Limit limit, int at, double busy) {
      if (busy / step.seconds <= step.limit_share) return;
      step.limit = limit;
      step.limit_at = at;
      step.limit_share = busy / step.seconds;
    };
    offer(SimulatedStep::Limit::latency, -1, step.rounds * model_.link.latency);
    for (int host = 0; host < hosts_; ++host) {
      const Network::Load &out = network_.sending(host), &in = network_.receiving(host);
      step.busiest_link_bytes =
          std::max({step.busiest_link_bytes, static_cast<double>(out.bytes), static_cast<double>(in.bytes)});
      offer(SimulatedStep::Limit::sending, host, out.busy);
      offer(SimulatedStep::Limit::receiving, host, in.busy);
    }
    for (int rank = 0; rank < model_.ranks; ++rank) {
      offer(SimulatedStep::Limit::thread, rank, ranks_[static_cast<std::size_t>(rank)]->busy());
    }
  }

  const ExchangeModel model_;
  const MergePlan plan_;
  const std::vector<Station> stations_;
  const std::vector<Bucket> buckets_;
  const int hosts_;
  Events events_;
  Segments segments_;
  Network network_;
  simulate::World world_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace

SimulatedStep simulate_reduction(const ExchangeModel& model) {
  check(model);
  return Simulation(model).run();
}

std::vector<double> simulate_transfers(const LinkModel& link, int hosts,
                                       const std::vector<SimulatedTransfer>& transfers) {
  Events events;
  Segments segments;
  Network network(events, segments, link, hosts, transfers.size());
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    for (std::int64_t left = transfers[i].bytes; left > 0; left -= kSegmentBytes) {
      const std::uint32_t number = segments.make();
      Segment& segment = segments[number];
      segment.connection = static_cast<std::uint32_t>(i);
      segment.from = transfers[i].from;
      segment.to = transfers[i].to;
      segment.bytes = std::min(left, kSegmentBytes);
      network.send(number);
    }
  }
  std::vector<double> ends(transfers.size());
  while (!events.empty()) {
    const Event event = events.next();
    if (event.kind == EventKind::link_free) network.link_free(event.id);
    if (event.kind == EventKind::at_link) network.at_link(event.id);
    if (event.kind == EventKind::delivered) ends[segments[event.id].connection] = event.at;
  }
  return ends;
}

}  // namespace dtrain::comm
