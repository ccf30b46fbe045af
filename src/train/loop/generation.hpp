// The part of a run between two changes of membership: steps, and the ends of epochs.
#pragma once

#include <dtrain/train/batch_feed.hpp>
#include <dtrain/train/ledger.hpp>
#include <dtrain/train/local_steps.hpp>

#include "events/rank_zero_reporter.hpp"
#include "saver.hpp"
#include "shard_balance.hpp"
#include "step.hpp"
#include "step_window.hpp"

namespace dtrain::train {

class GroupedExecutable;
class HoldingExecutable;
class ResizingExecutable;
struct ShardMemory;

// What all generations of a run share; all borrowed.
struct RunContext {
  const nn::Graph& graph;
  backend::Executable& executable;
  LocalExecutable* local;        // the executable, where steps are rounds; else null
  HoldingExecutable* holding;    // the executable, where gradients are compressed; else null
  ResizingExecutable* resizing;  // what computes, where images grow; else null
  GroupedExecutable* grouped;    // what computes, where each step has a size of its own; else null
  data::Loader& training;
  data::Loader* validation;  // null: none
  elastic::Membership& membership;
  const TrainerOptions& options;
  Saver& saver;
  RankZeroReporter& reporter;
  LedgerWriter* ledger;  // where samples are recorded; else null
  ShardMemory* shards;   // where parameters live on servers; else null
  bool began_trained;    // the run began with a checkpoint
  Cursor start;          // of that checkpoint, or of the run; a generation may have found a later one
};

// Throws Diverged naming the step and its learning rate. `way_out`: way_out_of_divergence(). `same_bits`: that of the
// options.
void require_finite_loss(const backend::StepMetrics& metrics, const Cursor& cursor, double rate,
                         const std::function<std::string()>& way_out, bool same_bits);
// Whether the run began with a checkpoint or has come to a place where one is saved. The same on all ranks.
bool has_checkpoint(const RunContext& context, const Cursor& cursor);
// What the user can begin again with. `is_at_checkpoint`: the weights that gave no finite loss are those of the last
// checkpoint, from which a run would end like this again, whatever its learning rate.
std::string way_out_of_divergence(const RunContext& context, const RunState& run, bool is_at_checkpoint);

// The plan of an epoch among so many workers.
EpochPlan plan_for(const TrainerOptions& options, const data::Loader& training, int workers);

class Generation {
 public:
  // All must outlive this. `run` is the same on all ranks, and stays so. `hosts`: elastic::Entry::hosts.
  Generation(const RunContext& context, comm::Communicator& comm, std::uint64_t number,
             const std::vector<std::string>& hosts, RunState& run);

  enum class End { done, changed, stopped };
  // Trains until the job is done or all ranks agree to leave. Throws PeerLost; then `run` stands where the executable's
  // state does.
  End train();

 private:
  using Verdict = elastic::Verdict;

  Verdict train_epoch();
  Verdict train_by_servers();
  void start_loading();
  Verdict train_step();
  Verdict make_step();
  int window_steps() const;
  bool closes_window() const;
  FedBatch load(const data::Slice& slice);
  int inner_steps_at(std::uint64_t position) const {
    return inner_steps(context_.options.local, plan_.global_batch, plan_.step_size(position));
  }
  void begin_round();
  // Of the run, by the samples that all ranks have seen.
  double done_share() const {
    const double all = static_cast<double>(context_.options.epochs) * static_cast<double>(plan_.samples);
    return static_cast<double>(run_.cursor.samples_seen) / all;
  }
  const std::vector<comm::Note>& contribute(const FedBatch& batch, const std::vector<backend::ShardRange>& shards,
                                            std::uint64_t vote);
  void apply(bool closes);
  void open_window();
  void balance(const std::vector<comm::Note>& notes);
  void tell_share() const;
  comm::ShardSpan own_span() const { return balance_.spans()[static_cast<std::size_t>(comm_.rank())]; }
  void advance(const backend::StepMetrics& m, double rate, double gradient_norm);
  double gradient_norm();
  void settle();
  void require_finite_weights() const;
  void save(const RunState& run, const Saver::SignOfLife& alive);
  void work_together(elastic::Phase phase, const std::function<void(const Saver::SignOfLife&)>& work);
  void save_together(const std::function<void(const Saver::SignOfLife&)>& work);
  bool gather_working(bool works);
  void report_saves();
  void save_where_due();
  void make_up_for_a_save();
  bool save_is_due() const;
  bool is_at_checkpoint() const;

  Verdict close_epoch();
  void report_epoch();
  void make_up_for_an_evaluation();
  std::vector<std::uint64_t> end_epoch(RunState next);
  void save_next_epoch(const RunState& next);
  void keep_next_epoch(const RunState& next);
  EvaluationReport evaluate(std::vector<ReportEvent>& saved);
  void add_evaluation(const RunState& next);
  void end_saves(const RunState& next, std::vector<ReportEvent>& saved);
  void tell_saves(std::vector<ReportEvent>& saved);
  std::vector<ReportEvent> findings_of_epoch() const;
  void let_peers_finish();
  std::vector<std::uint64_t> gather_votes(std::vector<ReportEvent>& reports);
  void stop();

  bool speaks() const { return comm_.rank() == 0; }
  void tell(const std::vector<ReportEvent>& events);
  void note_time();

  using Clock = std::chrono::steady_clock;

  const RunContext& context_;
  comm::Communicator& comm_;
  const std::uint64_t number_;
  const std::vector<std::string>& hosts_;
  RunState& run_;
  const EpochPlan plan_;
  ShardBalance balance_;
  BatchFeed feed_;
  std::unique_ptr<GradientCompressor> compressor_;  // where gradients are compressed; else each step is a window
  StepWindow window_;
  StepRunner step_;
  std::chrono::microseconds own_time_{};  // of the step that is made: without waiting for others
  double last_rate_ = 0;                  // of the last step that was applied
  StepTimes last_step_;                   // of this rank
  Clock::time_point step_begin_;
  Clock::time_point next_norm_{};          // when the gradient's norm is measured again
  Clock::time_point mark_ = Clock::now();  // up to where the epoch's time is counted
};

}  // namespace dtrain::train
