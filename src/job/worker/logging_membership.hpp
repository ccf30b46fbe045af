// A membership that logs each generation in the worker's log: its number, the rank and its shards.
#pragma once

#include <fmt/format.h>

#include <dtrain/base/reporter.hpp>
#include <dtrain/comm/tree.hpp>
#include <dtrain/elastic/membership.hpp>

#include "job/logs/rank_line.hpp"

namespace dtrain::job {

// Borrows both. `shards`: V; 0: each worker has one shard of its own.
class LoggingMembership final : public elastic::Membership {
 public:
  LoggingMembership(elastic::Membership& inner, int shards, Reporter& reporter)
      : inner_(inner), shards_(shards), reporter_(reporter) {}

  void probed(const std::string& hash) override { inner_.probed(hash); }
  elastic::Entry enter(const elastic::TrainingPosition& position) override {
    elastic::Entry entry = inner_.enter(position);
    if (entry.communicator) log_entry(entry);
    return entry;
  }
  void entered(const elastic::TrainingPosition& position) override { inner_.entered(position); }
  std::uint64_t vote() override { return inner_.vote(); }
  elastic::Verdict judge(std::span<const std::uint64_t> votes, bool at_epoch_end) override {
    return inner_.judge(votes, at_epoch_end);
  }
  void require_generation() override { inner_.require_generation(); }
  void begin_apply() override { inner_.begin_apply(); }
  void end_apply(const elastic::TrainingPosition& position) override { inner_.end_apply(position); }
  void lost(const PeerLost& error) override {
    reporter_.note(fmt::format("lost the others: {}", error.what()));
    inner_.lost(error);
  }
  void progress(elastic::Phase phase) override { inner_.progress(phase); }
  void computes(double share) override { inner_.computes(share); }
  void report(const Json& event) override { inner_.report(event); }

 private:
  void log_entry(const elastic::Entry& entry) {
    const int rank = entry.communicator->rank(), ranks = entry.communicator->size();
    std::string line = rank_line(entry.generation, rank, ranks);
    if (shards_ > 0) {
      const comm::ShardSpan span = comm::shards_of_rank(rank, ranks, shards_);
      line += fmt::format(", shards [{}, {}) of {}", span.first, span.last, shards_);
    }
    reporter_.note(line);
  }

  elastic::Membership& inner_;
  const int shards_;
  Reporter& reporter_;
};

}  // namespace dtrain::job
