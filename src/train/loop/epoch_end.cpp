// How a generation closes an epoch. Every part may be done again: when a rank is lost before the last gathering is
// complete, the next generation begins at the epoch's end and closes it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <dtrain/base/error.hpp>

#include "agreement.hpp"
#include "evaluation.hpp"
#include "generation.hpp"

namespace dtrain::train {

using elastic::Phase;

namespace {

// Hosts beside that of rank 0 of which a rank keeps a copy. As many may be lost at once.
constexpr std::size_t kKeepers = 2;

// Ranks close up: rank 1 is the next rank 0, or the first rank of another host where all of the hosts before it are
// lost.
bool may_be_next_rank_zero(int rank, const std::vector<std::string>& hosts) {
  if (rank == 1) return true;
  const auto at = static_cast<std::size_t>(rank);
  if (at >= hosts.size()) return false;
  const std::set<std::string> before(hosts.begin(), hosts.begin() + rank);
  return before.size() <= kKeepers && !before.contains(hosts[at]);
}

// Works with the average of the weights in their place, where there is one.
template <typename Work>
void by_average(backend::Executable& executable, Work work) {
  executable.exchange_average();
  try {
    work();
  } catch (...) {
    executable.exchange_average();
    throw;
  }
  executable.exchange_average();
}

}  // namespace

elastic::Verdict Generation::close_epoch() {
  std::vector<ReportEvent> saved;
  if (comm_.size() > 1) gather_votes(saved);  // all ranks have applied the last step
  settle();
  report_epoch();
  require_finite_weights();
  const bool follows = context_.validation && follows_best(run_.best, context_.options);
  if (follows) evaluate();
  RunState next = run_;
  if (follows) next.best = after_evaluation(run_.best, *run_.evaluation);
  next.begin_next_epoch();
  saved = save_next_epoch(next);
  if (!follows) evaluate();
  const std::vector<std::uint64_t> votes = gather_votes(saved);

  context_.membership.begin_apply();
  run_.best = next.best;
  run_.begin_next_epoch();
  run_.settled.insert(run_.settled.end(), saved.begin(), saved.end());
  const std::vector<ReportEvent> findings = findings_of_epoch();
  run_.settled.insert(run_.settled.end(), findings.begin(), findings.end());
  context_.membership.end_apply(training_position_of(run_));
  tell(findings);
  mark_ = Clock::now();
  return context_.membership.judge(votes, true);
}

// The epoch was closed just now.
std::vector<ReportEvent> Generation::findings_of_epoch() const {
  if (!context_.validation) return {};
  std::vector<ReportEvent> findings = {*run_.evaluation};
  const bool has_loss = !nn::detection_of(context_.graph) && run_.evaluation->samples > 0;
  if (has_loss && !std::isfinite(run_.evaluation->loss)) {
    findings.push_back(
        WarningReport{"the validation loss is not finite: the weights have grown too large, so begin again "
                      "with a smaller setting 'lr'"});
  }
  const std::uint32_t epochs = run_.cursor.epoch;
  if (stops_early(run_.cursor, run_.best, context_.options) && epochs < context_.options.epochs) {
    const std::string best = best_words(run_.best, epochs, context_.options);
    findings.push_back(WarningReport{
        .text = fmt::format("early stop: no validation accuracy of the last {} epochs is above {:.6f}, that of "
                            "epoch {}{}{}",
                            epochs - run_.best.epoch, run_.best.accuracy, run_.best.epoch - 1, best.empty() ? "" : "; ",
                            best),
        .is_note = true});
  }
  return findings;
}

void Generation::report_epoch() {
  const backend::StepMetrics& m = run_.totals;
  const double count = std::max(m.count, 1.0);  // an old checkpoint of an epoch's end does not have them
  const EpochReport report{.epoch = run_.cursor.epoch,
                           .loss = m.loss_sum / count,
                           .accuracy = accuracy_of(context_.graph, m.correct, count),
                           .top_k_accuracy = accuracy_of(context_.graph, m.top_k_correct, count),
                           .time = run_.epoch_time};
  run_.settled.emplace_back(report);
  tell({report});
}

// Rank 0 saves; the state is already that with which the next epoch begins. The last epoch is not over before its
// weights are written.
std::vector<ReportEvent> Generation::save_next_epoch(const RunState& next) {
  if (!speaks()) keep_next_epoch(next);
  save_together([&](const Saver::SignOfLife& alive) {
    if (!speaks()) return;
    if (!context_.saver.has_taken(next.cursor)) save(next, alive);
    if (is_over(next, context_.options)) context_.saver.finish(context_.options.save_patience, alive);
  });
  if (!speaks()) return {};
  std::vector<ReportEvent> reports = context_.saver.news();
  tell(reports);
  return reports;
}

// The end of the last epoch is not left before it is saved.
void Generation::keep_next_epoch(const RunState& next) {
  if (may_be_next_rank_zero(comm_.rank(), hosts_) && !is_over(next, context_.options)) {
    context_.saver.keep(next, number_);
  } else {
    context_.saver.drop_kept();
  }
}

void Generation::evaluate() {
  if (!context_.validation) return;
  context_.membership.progress(Phase::evaluating);
  by_average(context_.executable, [&] {
    Evaluation evaluation(
        {context_.graph, context_.executable, nn::image_views(context_.options.test_views), {}, context_.grouped},
        *context_.validation, context_.options.evaluation_block, comm_);
    work_together(Phase::evaluating, [&](const Saver::SignOfLife& alive) { evaluation.compute(alive); });
    run_.evaluation = evaluation.finish();
  });
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
