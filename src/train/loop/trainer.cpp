#include <dtrain/train/trainer.hpp>

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/synchronized_norms.hpp>
#include <dtrain/train/progressive_sizes.hpp>

#include "compression/holding_executable.hpp"
#include "generation.hpp"
#include "shard_memory.hpp"
#include "state_sync.hpp"
#include "warm_up.hpp"

namespace dtrain::train {
namespace {

using elastic::Entry;
using Ended = TrainResult::Ended;

LocalExecutable* local_of(backend::Executable& executable, const TrainerOptions& options) {
  auto* const local = dynamic_cast<LocalExecutable*>(&executable);
  DTRAIN_CHECK((local != nullptr) == options.local.any(), "rounds of local steps need an executable of replicas");
  return local;
}

// What the state on the GPU was is lost.
DeviceFailure with_way_out(const DeviceFailure& failure, bool can_resume) {
  const char* const way =
      can_resume ? "the last checkpoint is good: resume from it" : "no checkpoint has been saved yet: begin again";
  return DeviceFailure(failure.what(), failure.hint().empty() ? way : fmt::format("{}; {}", way, failure.hint()));
}

// Of every group, as an epoch has its batches.
std::string grouped_probe(const RunContext& context, EpochPlan plan, int block) {
  std::string probe;
  plan.last.clear();
  for (const data::PictureGroup& group : context.training.groups()) {
    context.grouped->use(group.shape);
    plan.samples = group.samples;
    const nn::Graph graph = with_image(context.graph, group.shape);
    probe += warm_up(graph, context.executable, plan, block, backend::ContributionLayout(graph).size());
  }
  return probe;
}

// Of one inner step where steps are rounds: more of them would take long and compute nothing new.
std::string computed_probe(const RunContext& context, int block) {
  EpochPlan plan = plan_for(context.options, context.training, 1);
  if (context.grouped) return grouped_probe(context, std::move(plan), block);
  if (!context.local) {
    const std::int64_t size = backend::ContributionLayout(context.graph).size();
    return warm_up(context.graph, context.executable, plan, block, size);
  }
  plan.global_batch /= context.options.local.steps;
  const double rate = context.options.schedule.rate(0, plan.samples);
  context.local->begin_round({.updates = {{context.options.optimizer, static_cast<float>(rate)}}});
  return warm_up(context.graph, context.executable, plan, block, context.local->contribution_size());
}

// The run over its generations.
class Run {
 public:
  Run(const nn::Graph& graph, backend::Executable& executable, data::Loader& training, data::Loader* validation,
      elastic::Membership& membership, const TrainerOptions& options, const Checkpoint* start, Observer& observer)
      : membership_(membership),
        holding_(holding_for(graph, executable, options)),
        run_(start_of_run(start, training, validation, options)),
        saver_(graph, outer(executable), options, training),
        reporter_(observer),
        sync_(graph, outer(executable), membership, options, training, validation, start),
        context_{.graph = graph,
                 .executable = outer(executable),
                 .local = local_of(executable, options),
                 .holding = holding_.get(),
                 .resizing = dynamic_cast<ResizingExecutable*>(&executable),
                 .grouped = dynamic_cast<GroupedExecutable*>(&executable),
                 .training = training,
                 .validation = validation,
                 .membership = membership,
                 .options = options,
                 .saver = saver_,
                 .reporter = reporter_,
                 .ledger = options.ledger ? &ledger_.emplace(*options.ledger) : nullptr,
                 .shards = options.servers.any() ? &shards_ : nullptr,
                 .began_trained = start && start->cursor != Cursor{},
                 .start = run_.cursor} {
    if (options.warm_up) {
      const int block = validation ? options.evaluation_block : 0;
      const std::string probe = computed_probe(context_, block);
      if (options.elastic_batch == ElasticBatch::fixed_global && options.same_bits) membership.probed(probe);
    }
  }

  TrainResult train() {
    try {
      TrainResult end = train_to_its_end();
      finish_ledger(std::chrono::seconds(1));
      return end;
    } catch (const DeviceFailure& failure) {
      save_what_is_left();
      throw with_way_out(failure, has_checkpoint(context_, run_.cursor));
    } catch (...) {
      save_what_is_left();
      throw;
    }
  }

 private:
  static std::unique_ptr<HoldingExecutable> holding_for(const nn::Graph& graph, backend::Executable& executable,
                                                        const TrainerOptions& options) {
    if (!options.compression.any()) return nullptr;
    return std::make_unique<HoldingExecutable>(executable, graph.parameter_count);
  }
  backend::Executable& outer(backend::Executable& inner) const { return holding_ ? *holding_ : inner; }

  TrainResult train_to_its_end() {
    for (;;) {
      Entry entry = membership_.enter(sync_.training_position(run_));
      if (entry.kind != Entry::Kind::train) return leave(entry);
      generation_ = entry.generation;
      const std::optional<Generation::End> end = live_through(entry);
      if (end == Generation::End::done) return result(Ended::done);
      if (end == Generation::End::stopped) return result(Ended::stopped);
    }
  }

  // A disk that was full may have room by now, and no further step would write what was kept.
  void finish_ledger(std::chrono::milliseconds patience) {
    if (!ledger_) return;
    ledger_->finish(patience);
    const std::string complaint = ledger_->take_complaint();
    if (!complaint.empty()) reporter_.tell({WarningReport{complaint}});
  }

  // After an error: tries once, because the coordinator waits for the error, which ends the run in any case.
  void save_what_is_left() {
    try {
      saver_.finish({}, [] {});
      reporter_.tell(saver_.news());
      finish_ledger({});
    } catch (const std::exception&) {
    }
  }

  // nullopt: a peer was lost, and the generation with it.
  std::optional<Generation::End> live_through(const Entry& entry) {
    comm::Communicator& comm = *entry.communicator;
    try {
      membership_.progress(elastic::Phase::entering);
      put_shards_together(comm);
      sync_.bring_together(comm, run_);
      membership_.entered(sync_.training_position(run_));
      return Generation(context_, comm, generation_, entry.hosts, run_).train();
    } catch (const PeerLost& error) {
      membership_.lost(error);
      return {};
    }
  }

  // Of a section that the loss of a worker ended.
  void put_shards_together(comm::Communicator& comm) {
    if (!context_.shards || put_together(comm, context_.executable, membership_, shards_, run_)) return;
    if (comm.rank() != 0) return;
    reporter_.tell({WarningReport{fmt::format(
        "a parameter server was lost together with its replica: epoch {} goes on from step {}, where all workers had "
        "the same state last",
        run_.cursor.epoch, run_.cursor.step)}});
  }

  TrainResult leave(const Entry& entry) {
    give_up_section(context_.executable, shards_);
    const auto sign_of_life = [this] { membership_.progress(elastic::Phase::saving); };
    if (entry.kind == Entry::Kind::checkpoint && sync_.has_state() && !saver_.has_taken(run_.cursor)) {
      sign_of_life();
      reporter_.tell(run_.settled);
      reporter_.tell(run_.pending);
      saver_.save(run_, generation_, sign_of_life);
    }
    saver_.finish(context_.options.save_patience, sign_of_life);
    reporter_.tell(saver_.news());
    TrainResult end = result(entry.kind == Entry::Kind::leave ? Ended::removed : Ended::stopped);
    end.reason = entry.reason;
    return end;
  }

  TrainResult result(Ended ended) const {
    return {.ended = ended,
            .cursor = run_.cursor,
            .evaluation = run_.evaluation,
            .saved = saver_.has_saved(run_.cursor),
            .lost = saver_.lost(),
            .lost_hint = saver_.lost_hint(),
            .reason = {}};
  }

  elastic::Membership& membership_;
  const std::unique_ptr<HoldingExecutable> holding_;  // where gradients are compressed
  RunState run_;
  Saver saver_;
  RankZeroReporter reporter_;
  StateSync sync_;
  std::optional<LedgerWriter> ledger_;
  ShardMemory shards_;
  const RunContext context_;  // borrows from the members above
  std::uint64_t generation_ = 0;
};

}  // namespace

std::optional<Diverged> divergence_at_end(const TrainResult& result, bool same_bits) {
  const std::optional<EvaluationReport>& last = result.evaluation;
  if (result.ended != Ended::done || !last || last->boxes || last->samples == 0) return std::nullopt;
  if (std::isfinite(last->loss)) return std::nullopt;
  return Diverged(fmt::format("the validation loss is not finite at epoch {}, with which the run ends", last->epoch),
                  "begin again with a smaller setting 'lr'", same_bits);
}

TrainResult train(const nn::Graph& graph, backend::Executable& executable, data::Loader& training,
                  data::Loader* validation, elastic::Membership& membership, const TrainerOptions& options,
                  const Checkpoint* start, Observer& observer) {
  DTRAIN_CHECK(options.elastic_batch == ElasticBatch::fixed_global || options.worker_batch > 0,
               "a batch that follows the workers needs the share of one");
  DTRAIN_CHECK(
      !options.local.any() || (options.elastic_batch == ElasticBatch::fixed_global && options.optimizer.average == 0 &&
                               options.global_batch % options.local.steps == 0),
      "a round of local steps has a fixed batch and no average of weights");
  DTRAIN_CHECK(!options.servers.any() ||
                   (options.elastic_batch == ElasticBatch::fixed_global && !options.local.any() &&
                    options.servers.backend && (options.servers.is_synchronous() || options.worker_batch > 0)),
               "parameter servers need a backend, a fixed batch and no rounds");
  DTRAIN_CHECK(!nn::has_synchronized_norms(graph) || (!options.local.any() && !options.servers.any()),
               "norms meet where all ranks compute a step together");
  DTRAIN_CHECK(
      !options.compression.any() || (!options.local.any() && options.gradient_dtype == backend::DType::float32 &&
                                     options.dtype != backend::DType::float16),
      "gradients of float32 are compressed");
  Run run(graph, executable, training, validation, membership, options, start, observer);
  return run.train();
}

}  // namespace dtrain::train
