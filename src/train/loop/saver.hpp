// When and under which name a run's state becomes a checkpoint. Failure to write one never ends the training.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include <dtrain/train/trainer.hpp>

#include "run_state.hpp"

namespace dtrain::train {

// The trainer's thread copies the state; a thread of this object writes it while the next steps are made. At most one
// copy exists at a time: the next save waits until the last is written. A copy that cannot be written is tried again
// with growing pauses, until it is written, the next one takes its place or finish() runs out of patience. Files appear
// by a rename, so a crash leaves the old checkpoint or the new one. Older checkpoints are removed only once the new one
// is reported: until the job has heard of it, a worker that starts begins with an older one.
//
// The checkpoint of an epoch is saved before the epoch is evaluated, so that a long evaluation puts nothing at risk.
// What is found goes into the copy, or into the manifest once that is written.
//
// Rank 0 may die while it writes the checkpoint of an epoch, which no other rank passes through again. So the next rank
// keeps a copy too, and a rank of each of the next two hosts, until the next epoch ends.
//
// All members but work() and what it calls belong to the trainer's thread. `mutex_` guards what both threads use, and
// is not held while files are written.
class Saver {
 public:
  // May throw, which ends the wait; what is being written is written all the same.
  using SignOfLife = std::function<void()>;

  // All but `training` must outlive this.
  Saver(const nn::Graph& graph, const backend::Executable& executable, const TrainerOptions& options,
        const data::Loader& training);
  // Waits for a write that has begun.
  ~Saver();
  Saver(const Saver&) = delete;

  // Looks once in the life of this object whether checkpoints can be written; a warning if not.
  std::vector<ReportEvent> try_place();
  // Takes a copy of the executable's state, which stands at run.cursor. Calls `alive` several times a second while it
  // waits. Nothing without options.checkpoint_prefix.
  void save(const RunState& run, std::uint64_t generation, const SignOfLife& alive);
  // The same, unless its checkpoint is there: for a rank that may save in place of another.
  void save_unless_there(const RunState& run, std::uint64_t generation, const SignOfLife& alive);
  // For a rank that does not save: keeps a copy of that state in place of the one before.
  void keep(const RunState& run, std::uint64_t generation);
  void drop_kept();
  // The state of run.cursor is evaluated now: what was saved of it, here or before this process, gets run.best. Only a
  // warning where that cannot be written: who resumes from there evaluates again.
  void add_evaluation(const RunState& run);
  // The same of what keep() copied.
  void add_evaluation_to_kept(const RunState& run);
  // For a rank that saves now in place of another: writes what keep() copied, unless its checkpoint is there.
  void save_kept(const SignOfLife& alive);
  // What to report since the last call: files, and warnings that name the last good checkpoint. What the last call gave
  // counts as reported now.
  std::vector<ReportEvent> news();
  // Waits for a write that has begun or is about to, and for none that failed.
  void settle(const SignOfLife& alive);
  // Waits until the last copy is written, `patience` at most where that fails.
  void finish(std::chrono::milliseconds patience, const SignOfLife& alive);

  // Whether this process copied the state of this cursor last, or wrote it.
  bool has_taken(const Cursor& cursor) const;
  bool has_saved(const Cursor& cursor) const;
  // What finish() could not save and why, and what to do about the cause, which may be empty; empty: nothing.
  std::string lost() const;
  std::string lost_hint() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;
  // Why a try failed; `what` is empty where it succeeded.
  struct Failure {
    std::string what = {}, hint = {};
    bool is_full = false;  // the disk
  };

  void start_thread();
  void work();
  void end_writing(const SignOfLife& alive);
  void take(Checkpoint copy, bool may_be_there);
  void remove_reported(Lock& lock);
  void complete_copy();
  void write_evaluation(Lock& lock);
  void write_until_done(Lock& lock);
  Failure write(const Checkpoint& checkpoint, std::vector<ReportEvent>& reports);
  void remove_later(const CheckpointName& newest, std::vector<ReportEvent>& reports);
  void remove(const CheckpointName& name) const;
  bool may_be_best(const CheckpointName& name, const BestEpoch& best) const;
  void remove_older(const CheckpointName& newest, const BestEpoch& best, std::vector<ReportEvent>& reports) const;
  bool is_there(const CheckpointName& name, const Checkpoint& checkpoint) const;
  CheckpointName name_of(const Cursor& cursor) const;
  void pause(Lock& lock, std::chrono::milliseconds time);
  void give_up(Lock& lock, const SignOfLife& alive);
  void wait_until_written(Lock& lock, const SignOfLife& alive, std::optional<Clock::time_point> until);
  void wait_a_moment(Lock& lock, const SignOfLife& alive);
  std::string last_good_words() const;
  Checkpoint snapshot(const RunState& run, std::uint64_t generation) const;

  const nn::Graph& graph_;
  const backend::Executable& executable_;
  const TrainerOptions& options_;
  const std::uint64_t samples_;
  const data::RecordOrder records_;
  std::optional<Cursor> taken_;
  std::optional<Checkpoint> kept_;  // of keep()
  std::string lost_, lost_hint_;
  bool tried_place_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Checkpoint> copy_;  // until it is written or given up
  // What add_evaluation() brought, until it is written.
  struct Evaluated {
    Cursor cursor;
    BestEpoch best;
    friend bool operator==(const Evaluated&, const Evaluated&) = default;
  };
  std::optional<Evaluated> evaluated_;
  bool may_be_there_ = false;  // another process may have written it already; set before the thread sees copy_
  bool writing_ = false;       // the thread reads copy_ without the lock, or writes evaluated_
  bool tried_ = false;         // at least once
  bool hurry_ = false;         // no pause before the next try
  bool abandon_ = false;       // give up when the present try fails
  bool finishing_ = false;     // the trainer waits for the last copy
  bool ending_ = false;
  Failure failure_;  // of the last try
  std::vector<ReportEvent> news_;
  // The checkpoint that was written last, until older ones are removed.
  struct Written {
    CheckpointName name;
    BestEpoch best;
    bool is_handed_out = false;  // news() has given its report
    bool is_reported = false;
  };
  std::optional<Written> written_;
  Path last_good_;
  Clock::time_point last_good_at_;
  std::optional<Cursor> saved_;
  bool removed_later_ = false;  // of the thread alone
  std::thread thread_;          // last: it uses all of the above
};

}  // namespace dtrain::train
