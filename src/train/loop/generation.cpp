#include "generation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/tree.hpp>
#include <dtrain/nn/synchronized_norms.hpp>
#include <dtrain/train/progressive_sizes.hpp>

#include "agreement.hpp"
#include "compression/holding_executable.hpp"
#include "server_section.hpp"
#include "step_report.hpp"

namespace dtrain::train {
namespace {

using elastic::Phase;
using namespace std::chrono_literals;

constexpr auto kNormPause = 500ms;

std::chrono::microseconds microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
}

// The floats that are gradients, or the movement of weights, come first and may travel as bfloat16.
comm::ReductionShape shape_of(const RunContext& context, int shards) {
  const backend::ContributionLayout layout(context.graph);
  const bool rounds = context.options.gradient_dtype == backend::DType::bfloat16;
  return {.shards = shards,
          .size = context.local ? context.local->contribution_size() : layout.size(),
          .rounded = rounds ? layout.gradients : 0};
}

std::unique_ptr<GradientCompressor> compressor_of(const RunContext& context, int shards, comm::ShardSpan own) {
  if (!context.holding) return nullptr;
  return std::make_unique<GradientCompressor>(context.options.compression, context.graph.parameters, shards, own);
}

// The samples that are mixed among each other: of a shard, or of a replica's inner step.
std::vector<backend::ShardRange> mixed_groups(const std::vector<backend::ShardRange>& shards, int inner_steps) {
  std::vector<backend::ShardRange> groups;
  for (const backend::ShardRange& shard : shards) {
    const std::vector<backend::ShardRange> parts = inner_parts(shard, inner_steps);
    groups.insert(groups.end(), parts.begin(), parts.end());
  }
  return groups;
}

Diverged diverged(const char* what, const Cursor& cursor, double rate, std::string way_out, bool same_bits) {
  return Diverged(fmt::format("{} is not finite at epoch {} step {} with learning rate {:g}", what, cursor.epoch,
                              cursor.step, rate),
                  std::move(way_out), same_bits);
}

}  // namespace

EpochPlan plan_for(const TrainerOptions& options, const data::Loader& training, int workers) {
  const std::uint64_t samples = training.size();
  if (options.servers.is_asynchronous()) return {.samples = samples, .global_batch = options.worker_batch, .shards = 1};
  if (options.elastic_batch == ElasticBatch::fixed_global) {
    return {.samples = samples,
            .global_batch = options.global_batch,
            .shards = options.logical_shards,
            .last = last_steps(training.groups(), options.global_batch)};
  }
  return {.samples = samples,
          .global_batch = options.worker_batch * workers,
          .shards = comm::power_of_two_at_least(workers),
          .workers = workers};
}

Generation::Generation(const RunContext& context, comm::Communicator& comm, std::uint64_t number,
                       const std::vector<std::string>& hosts, RunState& run)
    : context_(context),
      comm_(comm),
      number_(number),
      hosts_(hosts),
      run_(run),
      plan_(plan_for(context.options, context.training, comm.size())),
      balance_(comm.size(), plan_.shards, context.options.shard_window),
      feed_(context.training, context.executable),
      compressor_(compressor_of(context, plan_.shards, own_span())),
      window_(context.executable, run),
      step_(context.executable, comm, shape_of(context, plan_.shards), compressor_.get()) {
  open_window();
  step_.give_signs_of_life([this] { context_.membership.progress(Phase::computing); });
  if (plan_.shards > 1 && nn::has_synchronized_norms(context.graph)) step_.meet_at_norms(context.membership);
  const bool is_update_of_all = !context.options.servers.is_asynchronous();
  const double share = is_update_of_all ? static_cast<double>(plan_.global_batch) / context.options.global_batch : 1;
  run_.batch = plan_.global_batch;
  run_.ramp = aimed_at(run_.ramp, share, context.options.elastic_rate, context.options.ramp_steps);
}

Generation::End Generation::train() {
  if (context_.ledger) context_.ledger->begin_generation(number_, run_.cursor, plan_.samples, steps_ahead(run_, plan_));
  tell_share();
  tell(run_.settled);
  if (speaks()) {
    tell(context_.saver.try_place());
    context_.saver.save_kept([this] { context_.membership.progress(Phase::saving); });
  }
  // The generation before may have ended while its ranks waited here for a save. Where a step is pending, settle()
  // saves. A checkpoint does not know what parameter servers are ahead of it.
  if (run_.pending.empty() && run_.ahead.empty()) make_up_for_a_save();
  make_up_for_an_evaluation();
  while (!is_over(run_, context_.options)) {
    Verdict verdict = train_epoch();
    if (verdict == Verdict::go_on) {
      verdict = close_epoch();
    } else {
      let_peers_finish();
    }
    if (is_over(run_, context_.options)) break;
    if (verdict == Verdict::change) {
      report_saves();
      return End::changed;
    }
    if (verdict == Verdict::stop) {
      stop();
      return End::stopped;
    }
  }
  return End::done;
}

// The sum of the last step may not be on all ranks yet: Communicator::all_gather().
void Generation::let_peers_finish() {
  context_.membership.progress(Phase::reducing);
  comm_.all_gather({});
}

// Trains what is left of the epoch. After the last step there is no verdict: closing the epoch gives one.
elastic::Verdict Generation::train_epoch() {
  if (context_.shards) return train_by_servers();
  start_loading();
  while (run_.cursor.position < plan_.samples) {
    const Verdict verdict = train_step();
    if (verdict != Verdict::go_on && run_.cursor.position < plan_.samples) return verdict;
  }
  return Verdict::go_on;
}

elastic::Verdict Generation::train_by_servers() {
  while (run_.cursor.position < plan_.samples) {
    const Verdict verdict = ServerSection(context_, comm_, number_, run_, plan_, feed_).train();
    mark_ = Clock::now();
    context_.reporter.tell(context_.saver.news());
    if (verdict != Verdict::go_on && run_.cursor.position < plan_.samples) return verdict;
    save_where_due();
  }
  return Verdict::go_on;
}

void Generation::start_loading() {
  std::vector<data::Slice> slices;
  MixPlan mix{.options = context_.options.mix, .seed = context_.options.seed, .image = context_.graph.input()};
  for (std::uint64_t position = run_.cursor.position; position < plan_.samples;
       position += static_cast<std::uint64_t>(plan_.step_size(position))) {
    RankStep step = rank_step(plan_, position, own_span());
    if (step.slice.count == 0) continue;
    slices.push_back(step.slice);
    if (mix.options.any()) mix.shards.push_back(mixed_groups(step.shards, inner_steps_at(position)));
  }
  feed_.start(run_.cursor.epoch, std::move(slices), std::move(mix));
}

elastic::Verdict Generation::train_step() {
  try {
    return make_step();
  } catch (...) {
    window_.undo();
    throw;
  }
}

int Generation::window_steps() const { return compressor_ ? context_.options.compression.window : 1; }

// The last step of a window. The steps of an epoch are counted, so windows are the same for any workers.
bool Generation::closes_window() const {
  const std::uint64_t window = static_cast<std::uint64_t>(window_steps()), position = run_.cursor.position;
  const bool ends_epoch = position + static_cast<std::uint64_t>(plan_.step_size(position)) >= plan_.samples;
  return (run_.cursor.step + 1) % window == 0 || ends_epoch;
}

// Inside a window no step is final, so none is told or saved, and no rank leaves.
elastic::Verdict Generation::make_step() {
  step_begin_ = Clock::now();
  const bool closes = closes_window(), is_whole = plan_.step_size(run_.cursor.position) == plan_.global_batch;
  if (compressor_) compressor_->begin_step(closes);
  const RankStep mine = rank_step(plan_, run_.cursor.position, own_span());
  const FedBatch batch = load(mine.slice);
  const std::vector<comm::Note>& notes = contribute(batch, mine.shards, closes ? context_.membership.vote() : 0);
  if (!window_.is_open()) settle();
  if (!closes) window_.open();
  apply(closes);
  last_step_ =
      is_whole ? StepTimes{.own = own_time_, .step = microseconds_since(step_begin_), .lanes = context_.options.lanes}
               : StepTimes{};
  if (closes) {
    balance(notes);
    open_window();
  }
  for (const std::string& warning : context_.executable.take_warnings())
    context_.reporter.tell({WarningReport{warning}});
  if (!closes) return Verdict::go_on;
  if (comm_.size() > 1) return context_.membership.judge(votes_of(notes), false);
  // A rank without peers needs no vote, and a request may still count for the step during which it came.
  settle();
  return context_.membership.judge(std::array{context_.membership.vote()}, false);
}

FedBatch Generation::load(const data::Slice& slice) {
  return load_batch(context_, feed_, slice, run_.cursor, speaks());
}

const std::vector<comm::Note>& Generation::contribute(const FedBatch& batch,
                                                      const std::vector<backend::ShardRange>& shards,
                                                      std::uint64_t vote) {
  context_.membership.progress(Phase::computing);
  const std::uint64_t slice = comm_.size() > 1 ? state_slice(context_.executable, context_.options.local.steps) : 0;
  begin_round();
  if (context_.resizing) context_.resizing->begin_step(done_share());
  if (context_.grouped) context_.grouped->use(batch.batch.shape);
  step_.compute(batch.host(), shards, {context_.options.seed, run_.cursor.epoch},
                note_of(vote, run_.cursor, slice, last_step_));
  own_time_ = microseconds_since(step_begin_) - step_.waited_at_norms();
  context_.membership.progress(Phase::reducing);
  if (step_.exchange()) {
    // What the GPU takes is this rank's own time, by which the coordinator finds slow workers.
    context_.membership.progress(Phase::computing);
    step_.wait_until_computed();
    context_.membership.progress(Phase::reducing);
  }
  const std::vector<comm::Note>& notes = step_.reduce();
  require_agreement(notes, comm_.rank());
  return notes;
}

// Gradients that stay on GPUs are recorded for the shards of the first step. Where a window ends no shard holds
// anything back, so it takes nothing along.
void Generation::balance(const std::vector<comm::Note>& notes) {
  const bool can_move = plan_.workers == 0 && context_.executable.device_parts().empty();
  if (context_.options.shard_window == 0ms || !can_move) return;
  if (!balance_.note(times_of(notes))) return;
  compressor_ = compressor_of(context_, plan_.shards, own_span());
  step_.set_spans(balance_.spans(), compressor_.get());
  ShardsReport report;
  for (const comm::ShardSpan& span : balance_.spans()) report.shards.push_back(span.size());
  tell({std::move(report)});
  tell_share();
  if (run_.cursor.position < plan_.samples) start_loading();
}

void Generation::tell_share() const {
  if (context_.options.servers.is_asynchronous()) return context_.membership.computes(1);
  const double share = static_cast<double>(own_span().size()) / plan_.shards;
  context_.membership.computes(plan_.workers > 0 ? 1.0 / plan_.workers : share);
}

// The learning rate of an inner step is that of the samples that all replicas have seen before it.
void Generation::begin_round() {
  if (!context_.local) return;
  const int steps = inner_steps_at(run_.cursor.position);
  const int samples = plan_.step_size(run_.cursor.position);
  Round round;
  round.between = [this] {
    context_.membership.progress(Phase::computing);
    context_.membership.require_generation();
  };
  for (int step = 0; step < steps; ++step) {
    const auto before = static_cast<std::uint64_t>(std::int64_t{samples} * step / steps);
    const double rate = context_.options.schedule.rate(run_.cursor.samples_seen + before, plan_.samples);
    round.updates.push_back({context_.options.optimizer, static_cast<float>(rate)});
  }
  context_.local->begin_round(std::move(round));
}

void Generation::apply(bool closes) {
  const TrainerOptions& options = context_.options;
  const backend::StepMetrics metrics = step_.metrics();
  const double rate = options.schedule.rate(run_.cursor.samples_seen, plan_.samples) * gamma_of(run_.ramp);
  const auto way_out = [&] { return way_out_of_divergence(context_, run_, is_at_checkpoint()); };
  require_finite_loss(metrics, run_.cursor, rate, way_out, options.same_bits);
  if (closes && compressor_ && !compressor_->is_rest_finite())
    throw diverged("a gradient that compression held back", run_.cursor, rate, way_out(), options.same_bits);
  const double norm = gradient_norm();

  context_.membership.progress(Phase::applying);
  context_.membership.begin_apply();
  step_.apply({corrected(options.optimizer, run_.ramp), static_cast<float>(rate)});
  last_rate_ = rate;
  if (closes && compressor_) context_.holding->hold_back(compressor_->take_rest());
  note_time();
  advance(metrics, rate, norm);
  if (closes) window_.close();
  context_.membership.end_apply(training_position_of(window_.settled()));
}

void Generation::open_window() {
  if (compressor_) compressor_->open(context_.holding->held_back());
}

// Seldom, because it reads all gradients; and in the first step of each epoch, so that short epochs have it too. What a
// round of local steps exchanges are movements of weights.
double Generation::gradient_norm() {
  constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
  const Clock::time_point now = Clock::now();
  if (!speaks() || context_.local || (now < next_norm_ && run_.cursor.step > 0)) return kNotMeasured;
  next_norm_ = now + kNormPause;
  const backend::ContributionLayout layout(context_.graph);
  return step_.gradient_norm(static_cast<std::size_t>(layout.gradients)).value_or(kNotMeasured);
}

void Generation::advance(const backend::StepMetrics& m, double rate, double gradient_norm) {
  Cursor& cursor = run_.cursor;
  const int samples = plan_.step_size(cursor.position);
  StepReport report = step_report(context_, m);
  report.epoch = cursor.epoch;
  report.step = cursor.step;
  report.steps = cursor.step + plan_.steps_from(cursor.position);
  report.samples = samples;
  report.samples_seen = cursor.samples_seen + static_cast<std::uint64_t>(samples);
  report.learning_rate = rate;
  report.gradient_norm = gradient_norm;
  report.time = mark_ - step_begin_;
  ++cursor.step;
  cursor.samples_seen = report.samples_seen;
  cursor.position += static_cast<std::uint64_t>(samples);
  run_.add(m);
  run_.ramp = after_step(run_.ramp);
  run_.pending.emplace_back(report);
}

// The last step before a save or an evaluation has no step after it whose loss would show that it broke the weights.
// The same on all ranks.
void Generation::require_finite_weights() const {
  const std::vector<float>& weights = context_.executable.state().parameters;
  if (std::ranges::all_of(weights, [](float value) { return std::isfinite(value); })) return;
  throw diverged("a weight", run_.cursor, last_rate_, way_out_of_divergence(context_, run_, false),
                 context_.options.same_bits);
}

void require_finite_loss(const backend::StepMetrics& metrics, const Cursor& cursor, double rate,
                         const std::function<std::string()>& way_out, bool same_bits) {
  if (!std::isfinite(metrics.loss_sum)) throw diverged("the loss", cursor, rate, way_out(), same_bits);
}

// All ranks have applied the step before the one that is being made, and the state still stands there: the step before
// is final.
void Generation::settle() {
  context_.reporter.tell(context_.saver.news());
  if (run_.pending.empty()) return;
  run_.settled = std::exchange(run_.pending, {});
  tell(run_.settled);
  save_where_due();
}

void Generation::tell(const std::vector<ReportEvent>& events) {
  if (speaks()) context_.reporter.tell(events);
}

void Generation::note_time() {
  const Clock::time_point now = Clock::now();
  run_.epoch_time += now - mark_;
  mark_ = now;
}

}  // namespace dtrain::train
