// Where a run begins, and when its evaluations end it. Pure, but for best_words() and what uses it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

// Where a run of `samples` an epoch goes on from a checkpoint. With other data than the checkpoint's the schedule goes
// on by whole epochs; in the middle of an epoch that throws DataError, because the order of its samples is lost.
Cursor starting_cursor(const Checkpoint& start, std::uint64_t samples);
// "the training data has 40 samples an epoch, not the 45 of the checkpoint"; empty: they agree, or it is not known.
std::string other_samples(const Checkpoint& start, std::uint64_t samples);

// Throws DataError where the checkpoint stands inside an epoch whose records are not those of `here`, or not in their
// order: some samples would be trained twice, others never. Calls `here` only where that is to be compared.
void require_record_order(const Checkpoint& start, const std::function<data::RecordOrder()>& here);

// The best epoch with which a run goes on from a checkpoint: none where that was found on other data than `here`, on
// which the run evaluates. `here` null: it does not evaluate. `resumes`: as in TrainerOptions. `data` stays that of the
// checkpoint.
BestEpoch starting_best(const Checkpoint& start, const ValidationSet* here, bool resumes);
// With which a note of notes_on_best() says that earlier accuracies compare with no later one.
inline constexpr std::string_view kBestBeginsAnew = "the best epoch is looked for from epoch ";
// What of that the user may not expect.
std::vector<std::string> notes_on_best(const Checkpoint& start, const ValidationSet* here,
                                       const TrainerOptions& options);

// Whether evaluations decide when the run ends, or which checkpoints stay.
bool chooses_by_accuracy(const TrainerOptions& options);
// The best epoch once this evaluation is known; of two that are equal, the earlier one.
BestEpoch after_evaluation(const BestEpoch& best, const EvaluationReport& report);
// No better evaluation for as many epochs as the options say; one that is due may be better.
bool stops_early(const Cursor& cursor, const BestEpoch& best, const TrainerOptions& options);
bool is_over(const Cursor& cursor, const BestEpoch& best, const TrainerOptions& options);
// Why a run from this checkpoint trains nothing, and what to give; empty: it trains.
std::string why_over(const Checkpoint& start, const TrainerOptions& options);

// "best: m/p-0004", or that its checkpoint is not kept, for which it looks into the folder. Empty where the run does
// not choose, or saves nothing. `epochs`: how many are complete.
std::string best_words(const BestEpoch& best, std::uint32_t epochs, const TrainerOptions& options);

}  // namespace dtrain::train
