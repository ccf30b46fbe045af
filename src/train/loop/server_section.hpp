// A part of an epoch that the workers of a generation train by parameter servers, from one common state to the next.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "generation.hpp"
#include "servers/server_link.hpp"
#include "shard_memory.hpp"

namespace dtrain::train {

// All must outlive this. All ranks make it with the same run, whose position is amid an epoch. One thread, the
// trainer's.
class ServerSection {
 public:
  ServerSection(const RunContext& context, comm::Communicator& comm, std::uint64_t generation, RunState& run,
                const EpochPlan& plan, BatchFeed& feed);
  // Where the section is not over, its shards go into the memory.
  ~ServerSection();
  ServerSection(const ServerSection&) = delete;

  // Until the epoch's samples are trained, a checkpoint is due or all ranks agree to leave. Executable and run are the
  // same on all ranks then.
  elastic::Verdict train();

 private:
  using Clock = std::chrono::steady_clock;
  class Leaves;

  void make_server();
  void connect();
  void train_batches();
  void take_batch();
  RankStep step_of(const Ticket& ticket) const;
  Cursor place_of(const Ticket& ticket) const;
  FedBatch load(const Ticket& ticket);
  void pull();
  void confirm();
  void compute_and_push(const Ticket& ticket, const FedBatch& batch);
  double rate_of(std::uint64_t number) const;
  void note_progress();
  void look_for_agreement();
  void report();
  void between();
  std::vector<std::uint64_t> gather_votes();

  bool speaks() const { return comm_.rank() == 0; }
  bool is_synchronous() const { return context_.options.servers.is_synchronous(); }

  const RunContext& context_;
  comm::Communicator& comm_;
  RunState& run_;
  const EpochPlan plan_;
  BatchFeed& feed_;
  ShardMemory& memory_;
  OpenSection& section_;
  const std::uint64_t samples_before_;  // of the run, before this epoch
  const std::unique_ptr<Leaves> leaves_;
  std::unique_ptr<ShardServer> server_;
  std::unique_ptr<ServerLink> link_;

  std::deque<Ticket> taken_;                   // that are being loaded
  bool more_ = true;                           // batches may be left
  std::optional<std::uint64_t> to_confirm_;    // the batch that was pushed last
  std::uint64_t steps_ = 0;                    // that this worker has pushed
  std::uint64_t told_ = 0, samples_told_ = 0;  // steps that were reported
  bool agreed_ = false;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point mark_ = begin_;
};

}  // namespace dtrain::train
