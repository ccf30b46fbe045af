// A membership that says in the worker's log what it is given: generation, rank, and which shards that makes.
#pragma once

#include <fmt/format.h>

#include <dtrain/base/reporter.hpp>
#include <dtrain/comm/tree.hpp>
#include <dtrain/elastic/membership.hpp>

namespace dtrain::job {

// Borrows both. `shards`: V; 0: every worker has one of its own.
class ToldMembership final : public elastic::Membership {
 public:
  ToldMembership(elastic::Membership& inner, int shards, Reporter& reporter)
      : inner_(inner), shards_(shards), reporter_(reporter) {}

  void probed(const std::string& hash) override { inner_.probed(hash); }
  elastic::Entry enter(const elastic::Standing& standing) override {
    elastic::Entry entry = inner_.enter(standing);
    if (entry.communicator) tell(entry);
    return entry;
  }
  void entered(const elastic::Standing& standing) override { inner_.entered(standing); }
  std::uint64_t vote() override { return inner_.vote(); }
  elastic::Verdict judge(std::span<const std::uint64_t> votes, bool at_epoch_end) override {
    return inner_.judge(votes, at_epoch_end);
  }
  void begin_apply() override { inner_.begin_apply(); }
  void end_apply(const elastic::Standing& standing) override { inner_.end_apply(standing); }
  void lost(const PeerLost& error) override {
    reporter_.note(fmt::format("lost the others: {}", error.what()));
    inner_.lost(error);
  }
  void progress(elastic::Phase phase) override { inner_.progress(phase); }
  void report(const Json& event) override { inner_.report(event); }

 private:
  void tell(const elastic::Entry& entry) {
    const int rank = entry.communicator->rank(), ranks = entry.communicator->size();
    std::string line = fmt::format("generation {}: rank {} of {}", entry.generation, rank, ranks);
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
