// How a generation closes an epoch. Every part may be done again: when a rank is lost before the last gathering is
// complete, the next generation begins at the epoch's end and closes it.
#include <algorithm>

#include <dtrain/base/error.hpp>

#include "agreement.hpp"
#include "evaluation.hpp"
#include "generation.hpp"

namespace dtrain::train {

using elastic::Phase;

elastic::Verdict Generation::close_epoch() {
  std::vector<ReportEvent> saved;
  if (comm_.size() > 1) gather_votes(saved);  // all ranks have applied the last step
  settle();
  report_epoch();
  saved = save_next_epoch();
  evaluate();
  const std::vector<std::uint64_t> votes = gather_votes(saved);

  context_.membership.begin_apply();
  run_.begin_next_epoch();
  run_.settled.insert(run_.settled.end(), saved.begin(), saved.end());
  if (context_.validation) run_.settled.push_back(*run_.evaluation);
  context_.membership.end_apply(training_position_of(run_));
  if (context_.validation) tell({*run_.evaluation});
  mark_ = Clock::now();
  return context_.membership.judge(votes, true);
}

void Generation::report_epoch() {
  const backend::StepMetrics& m = run_.totals;
  const double count = std::max(m.count, 1.0);  // an old checkpoint of an epoch's end does not have them
  const EpochReport report{.epoch = run_.cursor.epoch,
                           .loss = m.loss_sum / count,
                           .accuracy = m.correct / count,
                           .top_k_accuracy = m.top_k_correct / count,
                           .time = run_.epoch_time};
  run_.settled.push_back(report);
  tell({report});
}

// Rank 0 saves; the state is already that with which the next epoch begins. The last epoch is not over before its
// weights are written.
std::vector<ReportEvent> Generation::save_next_epoch() {
  RunState next = run_;
  next.begin_next_epoch();
  if (!speaks()) return {};
  if (!context_.saver.has_taken(next.cursor)) save(next);
  if (next.cursor.epoch >= context_.options.epochs) finish_saving();
  std::vector<ReportEvent> reports = context_.saver.news();
  tell(reports);
  return reports;
}

void Generation::evaluate() {
  if (!context_.validation) return;
  const auto sign_of_life = [this] { context_.membership.progress(Phase::evaluating); };
  sign_of_life();
  run_.evaluation = evaluate_blocks({context_.graph, context_.executable, nn::image_views(context_.options.test_views)},
                                    *context_.validation, context_.options.evaluation_block, comm_, sign_of_life);
  run_.evaluation->epoch = run_.cursor.epoch;
}

// Also a barrier. `reports` goes in as what rank 0 saved, and comes out so on all ranks.
std::vector<std::uint64_t> Generation::gather_votes(std::vector<ReportEvent>& reports) {
  context_.membership.progress(Phase::reducing);
  const std::string mine =
      Json::object(
          {{"vote", context_.membership.vote()}, {"place", place_of(run_.cursor)}, {"reports", to_json(reports)}})
          .dump();
  std::vector<std::uint64_t> votes;
  std::vector<Json> all;
  for (const std::string& text : comm_.all_gather(bytes_of(mine))) {
    all.push_back(Json::parse(text, "a peer's vote"));
    votes.push_back(static_cast<std::uint64_t>(all.back().at("vote").as_integer()));
    if (all.back().at("place") != all.front().at("place")) throw PeerLost("the ranks are at the ends of other epochs");
  }
  reports = events_from(all.front().at("reports"));
  return votes;
}

}  // namespace dtrain::train
