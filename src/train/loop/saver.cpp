#include "saver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>

#include <dtrain/base/error.hpp>
#include <dtrain/train/export.hpp>

namespace dtrain::train {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds kFirstPause = 1s, kLongestPause = 60s;
constexpr auto kSignInterval = 200ms;

bool is_finite(const Checkpoint& checkpoint) {
  return std::ranges::all_of(checkpoint.state.parameters, [](float value) { return std::isfinite(value); });
}

}  // namespace

Saver::Saver(const nn::Graph& graph, const backend::Executable& executable, const TrainerOptions& options,
             const data::Loader& training)
    : graph_(graph),
      executable_(executable),
      options_(options),
      samples_(training.size()),
      records_(options.checkpoint_prefix ? training.record_order() : data::RecordOrder{}) {
  if (options.checkpoint_prefix) start_thread();
}

void Saver::start_thread() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    throw Error(fmt::format("cannot start the thread that writes checkpoints: {}", error.code().message()),
                "a limit on processes (ulimit -u, or of the container) may be too low");
  }
}

Saver::~Saver() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = abandon_ = true;
    if (written_) written_->is_reported = written_->is_handed_out;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::vector<ReportEvent> Saver::try_place() {
  if (!options_.checkpoint_prefix || std::exchange(tried_place_, true)) return {};
  try {
    try_prefix(*options_.checkpoint_prefix, options_.store);
    return {};
  } catch (const Error& error) {
    return {WarningReport{fmt::format("no checkpoint can be saved at present: {}; training goes on", error.what())}};
  }
}

void Saver::save(const RunState& run, std::uint64_t generation, const SignOfLife& alive) {
  if (!options_.checkpoint_prefix) return;
  end_writing(alive);
  kept_.reset();
  take(snapshot(run, generation), false);  // without the lock: the thread does not use the executable
}

void Saver::save_unless_there(const RunState& run, std::uint64_t generation, const SignOfLife& alive) {
  if (!options_.checkpoint_prefix) return;
  end_writing(alive);
  kept_.reset();
  take(snapshot(run, generation), true);
}

void Saver::end_writing(const SignOfLife& alive) {
  Lock lock(mutex_);
  give_up(lock, alive);
}

void Saver::take(Checkpoint copy, bool may_be_there) {
  {
    const std::lock_guard lock(mutex_);
    taken_ = copy.cursor;
    copy_ = std::move(copy);
    may_be_there_ = may_be_there;
    abandon_ = hurry_ = tried_ = finishing_ = false;
  }
  changed_.notify_all();
}

void Saver::keep(const RunState& run, std::uint64_t generation) {
  if (!options_.checkpoint_prefix) return;
  kept_ = snapshot(run, generation);
}

void Saver::drop_kept() { kept_.reset(); }

void Saver::add_evaluation(const RunState& run) {
  if (!options_.checkpoint_prefix) return;
  {
    const std::lock_guard lock(mutex_);
    const bool is_lost = taken_ == run.cursor && !copy_ && saved_ != run.cursor;
    if (is_lost) return;
    evaluated_ = {run.cursor, run.best};
    complete_copy();
  }
  changed_.notify_all();
}

void Saver::add_evaluation_to_kept(const RunState& run) {
  if (kept_ && kept_->cursor == run.cursor) kept_->best = run.best;
}

void Saver::save_kept(const SignOfLife& alive) {
  if (!kept_) return;
  end_writing(alive);
  take(*std::exchange(kept_, std::nullopt), true);
}

std::vector<ReportEvent> Saver::news() {
  const std::lock_guard lock(mutex_);
  if (written_ && std::exchange(written_->is_handed_out, true)) {
    written_->is_reported = true;
    changed_.notify_all();
  }
  return std::exchange(news_, {});
}

void Saver::settle(const SignOfLife& alive) {
  Lock lock(mutex_);
  while ((copy_ && (writing_ || !tried_)) || evaluated_) wait_a_moment(lock, alive);
}

void Saver::finish(std::chrono::milliseconds patience, const SignOfLife& alive) {
  Lock lock(mutex_);
  if (!copy_ && !evaluated_) return;
  hurry_ = finishing_ = true;
  changed_.notify_all();
  wait_until_written(lock, alive, Clock::now() + patience);
  if (!copy_) return;
  const std::string stem = name_of(*taken_).stem();
  give_up(lock, alive);
  if (saved_ == taken_) return;
  lost_ = fmt::format("the weights of {} are lost: {}; {}", stem, failure_.what, last_good_words());
  lost_hint_ = failure_.is_full ? "make room" : failure_.hint;
  news_.push_back(LostReport{lost_});
}

bool Saver::has_taken(const Cursor& cursor) const { return taken_ == cursor; }

bool Saver::has_saved(const Cursor& cursor) const {
  const std::lock_guard lock(mutex_);
  return saved_ == cursor;
}

std::string Saver::lost() const { return lost_; }

std::string Saver::lost_hint() const { return lost_hint_; }

// Ends the tries of a copy that cannot be written; one that is being written is waited for.
void Saver::give_up(Lock& lock, const SignOfLife& alive) {
  abandon_ = true;
  changed_.notify_all();
  try {
    wait_until_written(lock, alive, {});
  } catch (...) {  // of `alive`, which is called without the lock
    lock.lock();
    abandon_ = false;
    throw;
  }
}

// At least until the try that runs is over.
void Saver::wait_until_written(Lock& lock, const SignOfLife& alive, std::optional<Clock::time_point> until) {
  while ((copy_ || evaluated_) && (writing_ || hurry_ || !until || Clock::now() < *until)) {
    wait_a_moment(lock, alive);
  }
}

void Saver::wait_a_moment(Lock& lock, const SignOfLife& alive) {
  changed_.wait_for(lock, kSignInterval);
  lock.unlock();
  alive();
  lock.lock();
}

void Saver::work() {
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return copy_ || evaluated_ || ending_ || (written_ && written_->is_reported); });
    remove_reported(lock);
    if (!copy_ && !evaluated_ && ending_) return;
    if (copy_) write_until_done(lock);
    copy_.reset();
    if (evaluated_) write_evaluation(lock);
    changed_.notify_all();
  }
}

// While the thread does not read the copy.
void Saver::complete_copy() {
  if (writing_ || !copy_ || !evaluated_ || copy_->cursor != evaluated_->cursor) return;
  copy_->best = evaluated_->best;
  evaluated_.reset();
}

// Older checkpoints are looked at again: with the best epoch it is known which of them stay.
void Saver::write_evaluation(Lock& lock) {
  const Evaluated evaluated = *evaluated_;
  const CheckpointName name = name_of(evaluated.cursor);
  std::vector<ReportEvent> reports;
  writing_ = true;
  lock.unlock();
  try {
    save_evaluation(name, evaluated.best, options_.store);
  } catch (const std::exception& error) {
    reports.emplace_back(WarningReport{
        fmt::format("the validation of {} is not in its manifest: {}; a run that resumes from there evaluates again",
                    name.stem(), error.what())});
  }
  lock.lock();
  writing_ = hurry_ = false;
  if (evaluated_ == evaluated) evaluated_.reset();
  if (!written_) written_ = Written{.name = name, .best = {}, .is_handed_out = true, .is_reported = true};
  written_->best = evaluated.best;
  news_.insert(news_.end(), reports.begin(), reports.end());
}

void Saver::remove_reported(Lock& lock) {
  if (!written_ || !written_->is_reported) return;
  const Written written = *std::exchange(written_, std::nullopt);
  lock.unlock();
  std::vector<ReportEvent> reports;
  remove_older(written.name, written.best, reports);
  lock.lock();
  news_.insert(news_.end(), reports.begin(), reports.end());
}

void Saver::write_until_done(Lock& lock) {
  for (auto next_pause = kFirstPause;; next_pause = std::min(2 * next_pause, kLongestPause)) {
    writing_ = tried_ = true;
    hurry_ = false;
    lock.unlock();
    std::vector<ReportEvent> reports;
    const Failure failure = write(*copy_, reports);
    lock.lock();
    writing_ = false;
    failure_ = failure;
    if (!failure.what.empty()) complete_copy();
    const bool is_written = failure.what.empty();
    if (is_written) {
      saved_ = copy_->cursor;
      last_good_ = std::get<SavedReport>(reports.front()).path;
      last_good_at_ = Clock::now();
      written_ = Written{.name = name_of(copy_->cursor), .best = copy_->best};
    }
    news_.insert(news_.end(), reports.begin(), reports.end());
    if (is_written) return;
    const std::string then = abandon_ ? "" : fmt::format(" next try in {} s,", next_pause / 1s);
    const char* const waits = failure.is_full ? "the run waits for room" : "the run waits";
    news_.push_back(WarningReport{fmt::format("checkpoint not saved: {}; {},{} {}", failure.what,
                                              finishing_ ? waits : "training goes on", then, last_good_words())});
    pause(lock, next_pause);
    if (abandon_) return;
  }
}

// Not a pause where the trainer waits for the next try, or for the end of the tries.
void Saver::pause(Lock& lock, std::chrono::milliseconds time) {
  changed_.notify_all();
  changed_.wait_for(lock, time, [this] { return abandon_ || hurry_; });
}

Saver::Failure Saver::write(const Checkpoint& checkpoint, std::vector<ReportEvent>& reports) {
  try {
    if (!is_finite(checkpoint)) throw Error("the weights are no longer finite");
    const Cursor& cursor = checkpoint.cursor;
    const CheckpointName name = name_of(cursor);
    const bool there = may_be_there_ && is_there(name, checkpoint);
    reports.push_back(
        SavedReport{there ? Path(name.stem() + ".safetensors") : save_checkpoint(name, checkpoint, options_.store)});
    if (there && !checkpoint.best.is_due) save_evaluation(name, checkpoint.best, options_.store);
    if (options_.checkpoint_format == CheckpointFormat::mxnet && cursor.step == 0) {
      Checkpoint exported = checkpoint;
      use_average(exported);
      const auto write = [&](const Path& prefix) { return export_mxnet(exported, prefix, cursor.epoch); };
      for (const Path& path : export_to(*options_.checkpoint_prefix, write, options_.store)) {
        reports.push_back(SavedReport{path});
      }
    }
    remove_later(name, reports);
    return {};
  } catch (const Error& error) {
    reports.clear();
    return {error.what(), error.hint(), dynamic_cast<const DiskFull*>(&error) != nullptr};
  } catch (const std::exception& error) {
    reports.clear();
    return {.what = error.what()};
  }
}

// Under this name there may be the checkpoint of another run.
bool Saver::is_there(const CheckpointName& name, const Checkpoint& checkpoint) const {
  try {
    return state_sha256(load_checkpoint_file(name.stem() + ".json", options_.store)) == state_sha256(checkpoint);
  } catch (const Error&) {
    return false;
  }
}

// Before the new checkpoint is reported. Later in the run a later name could be that of the run itself, saved by a rank
// that has taken over.
void Saver::remove_later(const CheckpointName& newest, std::vector<ReportEvent>& reports) {
  if (!options_.replaces_later || removed_later_) return;
  try {
    for (const CheckpointName& name : list_checkpoints(newest.prefix, options_.store)) {
      if (std::pair(name.epoch, name.step) <= std::pair(newest.epoch, newest.step)) break;
      remove(name);
    }
    const bool writes_params = options_.checkpoint_format == CheckpointFormat::mxnet;
    remove_replaced_mxnet(newest, {.writes_params = writes_params, .needs_symbol = options_.needs_symbol},
                          options_.store);
    removed_later_ = true;
  } catch (const Error& error) {
    reports.emplace_back(WarningReport{fmt::format("a later checkpoint of an earlier run stays: {}", error.what())});
  }
}

void Saver::remove(const CheckpointName& name) const {
  const bool with_mxnet = options_.checkpoint_format == CheckpointFormat::mxnet && name.step == 0;
  remove_checkpoint(name, options_.store, with_mxnet);
}

bool Saver::may_be_best(const CheckpointName& name, const BestEpoch& best) const {
  if (!options_.keep_best || name.step != 0) return false;
  return name.epoch <= best.since || (best.accuracy >= 0 && name.epoch == best.epoch);
}

// Checkpoints that come later in the order of names are those of another run, and stay.
void Saver::remove_older(const CheckpointName& newest, const BestEpoch& best, std::vector<ReportEvent>& reports) const {
  if (options_.keep_checkpoints <= 0) return;
  try {
    int kept = 0;
    for (const CheckpointName& name : list_checkpoints(newest.prefix, options_.store)) {
      const bool later = std::pair(name.epoch, name.step) > std::pair(newest.epoch, newest.step);
      if (later || ++kept <= options_.keep_checkpoints) continue;
      if (!may_be_best(name, best)) remove(name);
    }
  } catch (const Error& error) {
    reports.emplace_back(WarningReport{fmt::format("an older checkpoint stays: {}", error.what())});
  }
}

CheckpointName Saver::name_of(const Cursor& cursor) const {
  return {*options_.checkpoint_prefix, cursor.epoch, cursor.step};
}

std::string Saver::last_good_words() const {
  if (last_good_.empty()) return "this process has saved none since it started";
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - last_good_at_);
  return fmt::format("the last good one is {} ({} s old)", last_good_.string(), age.count());
}

Checkpoint Saver::snapshot(const RunState& run, std::uint64_t generation) const {
  const bool follows_workers = options_.elastic_batch == ElasticBatch::per_worker;
  return {.graph = graph_,
          .state = executable_.read_state(),
          .cursor = run.cursor,
          .job = {.seed = options_.seed,
                  .samples = samples_,
                  .global_batch = (run.batch > 0 ? run.batch : options_.global_batch) / options_.local.steps,
                  .rate_batch = follows_workers ? options_.global_batch : 0,
                  .worker_batch = options_.worker_batch,
                  .logical_shards = options_.logical_shards,
                  .local = options_.local,
                  .compression = options_.compression,
                  .generation = generation,
                  .dtype = backend::dtype_name(options_.dtype),
                  .optimizer = options_.optimizer,
                  .schedule = options_.schedule,
                  .preprocessing = options_.preprocessing,
                  .order = options_.order,
                  .records = records_},
          .ramp = run.ramp,
          .epoch_totals = run.totals,
          .top_k = options_.top_k,
          .best = run.best};
}

}  // namespace dtrain::train
