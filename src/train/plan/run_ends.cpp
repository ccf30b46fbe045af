#include <dtrain/train/run_ends.hpp>

#include <fmt/format.h>

#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::train {

// A checkpoint that came from MXNet does not know its data.
std::string other_samples(const Checkpoint& start, std::uint64_t samples) {
  if (start.job.samples == 0 || start.job.samples == samples) return {};
  return fmt::format("the training data has {} samples an epoch, not the {} of the checkpoint", samples,
                     start.job.samples);
}

static DataError refused_inside(const Cursor& cursor, const std::string& why) {
  return DataError(
      fmt::format("the checkpoint stands at sample {} of an epoch, and {}", cursor.position, why),
      fmt::format(
          "resume with the data that it was trained on{}",
          cursor.epoch == 0 ? "" : fmt::format(", or begin with these data by setting 'load-epoch' {}", cursor.epoch)));
}

Cursor starting_cursor(const Checkpoint& start, std::uint64_t samples) {
  Cursor cursor = start.cursor;
  const std::string other = other_samples(start, samples);
  const bool is_inside = cursor.step != 0 || cursor.position != 0;
  if (is_inside && (!other.empty() || cursor.position > samples)) {
    throw refused_inside(cursor, other.empty() ? fmt::format("the training data has only {}", samples) : other);
  }
  if (!other.empty() || cursor.samples_seen == 0) cursor.samples_seen = cursor.epoch * samples;
  return cursor;
}

// What differs, in a word; empty: nothing that is known. A set may have moved to a server meanwhile, or from one: then
// the sizes alone are compared.
static std::string other_records(const data::RecordOrder& saved, const data::RecordOrder& here) {
  if (saved.sizes.empty() || here.sizes.empty()) return {};
  if (saved.sizes != here.sizes) return "sizes";
  const bool are_compared = !saved.contents.empty() && !here.contents.empty();
  return are_compared && saved.contents != here.contents ? "labels or pictures" : "";
}

void require_record_order(const Checkpoint& start, const std::function<data::RecordOrder()>& here) {
  const Cursor& cursor = start.cursor;
  const data::RecordOrder& saved = start.job.records;
  const bool is_inside = cursor.position > 0 && cursor.position < start.job.samples;
  if (!is_inside || saved.sizes.empty()) return;
  const std::string other = other_records(saved, here());
  if (other.empty()) return;
  throw refused_inside(cursor, fmt::format("the training data has other records than it was trained on, or the same "
                                           "in another order: their {} differ",
                                           other));
}

// Empty: the accuracies of both compare, as far as it is known.
static std::string other_validation(const std::optional<ValidationSet>& saved, const ValidationSet& here) {
  if (!saved || saved->samples == 0) return {};
  if (saved->samples != here.samples)
    return fmt::format("the validation data has {} samples, not the {} of the checkpoint", here.samples,
                       saved->samples);
  if (const std::string other = other_records(saved->records, here.records); !other.empty())
    return fmt::format("the validation data has other records than that of the checkpoint: their {} differ", other);
  if (saved->views != here.views)
    return fmt::format("setting 'test-views' {}: the checkpoint's validation averaged {}", here.views,
                       count_text(saved->views, "view"));
  return {};
}

static bool knows_best(const Checkpoint& start, const ValidationSet& here) {
  return start.best.accuracy >= 0 && other_validation(start.best.data, here).empty();
}

// The complete epochs but the one whose evaluation is due.
static std::uint32_t evaluated_epochs(const Checkpoint& start) {
  return start.cursor.epoch - (start.best.is_due && start.cursor.epoch > 0 ? 1 : 0);
}

BestEpoch starting_best(const Checkpoint& start, const ValidationSet* here, bool resumes) {
  BestEpoch best = start.best;
  if (!here) best.is_due = false;
  if (!here || knows_best(start, *here)) return best;
  best.accuracy = -1, best.epoch = 0;
  best.since = resumes ? evaluated_epochs(start) : 0;
  return best;
}

std::vector<std::string> notes_on_best(const Checkpoint& start, const ValidationSet* here,
                                       const TrainerOptions& options) {
  std::vector<std::string> notes;
  if (!here) return notes;
  const std::uint32_t since = starting_best(start, here, options.resumes).since;
  if (since > 0 && !knows_best(start, *here)) {
    const std::string other = other_validation(start.best.data, *here);
    const bool keeps = options.keep_best && options.keep_checkpoints > 0;
    if (!other.empty() || chooses_by_accuracy(options)) {
      notes.push_back(fmt::format(
          "{}; {}{} on{}", other.empty() ? "the checkpoint does not say which epoch was the best one" : other,
          kBestBeginsAnew, since, keeps ? ", and the checkpoints of the epochs before stay" : ""));
    }
  }
  if (start.best.is_due)
    notes.push_back("the run ended before the last epoch of the checkpoint was evaluated: that is done first");
  return notes;
}

bool chooses_by_accuracy(const TrainerOptions& options) { return options.early_stop > 0 || options.keep_best; }

BestEpoch after_evaluation(const BestEpoch& best, const EvaluationReport& report) {
  BestEpoch next = best;
  next.is_due = false;
  if (report.accuracy > best.accuracy) next.accuracy = report.accuracy, next.epoch = report.epoch + 1;
  return next;
}

bool stops_early(const Cursor& cursor, const BestEpoch& best, const TrainerOptions& options) {
  const std::uint32_t patience = options.early_stop, due = best.is_due ? 1 : 0;
  return patience > 0 && best.accuracy >= 0 && cursor.epoch >= best.epoch + patience + due;
}

bool is_over(const Cursor& cursor, const BestEpoch& best, const TrainerOptions& options) {
  return cursor.epoch >= options.epochs || stops_early(cursor, best, options);
}

std::string why_over(const Checkpoint& start, const TrainerOptions& options) {
  const std::uint32_t epochs = start.cursor.epoch;
  if (epochs >= options.epochs) {
    if (options.epochs == 0) return {};
    return fmt::format(
        "{} epochs are trained already, and setting 'num-epochs' {} asks for no more: a larger number "
        "trains on",
        epochs, options.epochs);
  }
  if (!stops_early(start.cursor, start.best, options)) return {};
  const std::string best = best_words(start.best, epochs, options);
  return fmt::format(
      "the run stopped early after {} epochs, {} of them without a better validation: a larger number "
      "than setting 'early-stop' {}, or none, trains on{}{}",
      epochs, epochs - start.best.epoch, options.early_stop, best.empty() ? "" : "; ", best);
}

// A run before may have kept fewer. Where this process sees no later checkpoint, as on another machine than that of the
// files, or while the best one is being written, the options alone say what is kept.
static bool is_gone(const CheckpointName& best) {
  if (net::is_object_url(best.prefix.string())) return false;
  try {
    bool has_later = false;
    for (const CheckpointName& there : list_checkpoints(best.prefix)) {
      if (there.stem() == best.stem()) return false;
      has_later |= std::pair(there.epoch, there.step) > std::pair(best.epoch, best.step);
    }
    return has_later;
  } catch (const Error&) {  // the run has ended well all the same
    return false;
  }
}

std::string best_words(const BestEpoch& best, std::uint32_t epochs, const TrainerOptions& options) {
  if (!chooses_by_accuracy(options) || best.accuracy < 0 || !options.checkpoint_prefix) return {};
  const CheckpointName name{*options.checkpoint_prefix, best.epoch};
  const std::string words = "best: " + name.stem();
  const bool is_kept = options.keep_best || options.keep_checkpoints == 0 || best.epoch == epochs;
  return is_kept && !is_gone(name) ? words : words + ", which was not kept";
}

}  // namespace dtrain::train
