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
#include "step_report.hpp"

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

// The weights are saved before they are evaluated, which may take long: a run that ends meanwhile goes on from there,
// and its manifest says that the evaluation is due.
elastic::Verdict Generation::close_epoch() {
  std::vector<ReportEvent> saved;
  if (comm_.size() > 1) gather_votes(saved);  // all ranks have applied the last step
  settle();
  report_epoch();
  require_finite_weights();
  RunState next = run_;
  next.begin_next_epoch();
  next.best.is_due = context_.validation != nullptr;
  save_next_epoch(next);
  return context_.membership.judge(end_epoch(std::move(next)), true);
}

// The run before ended between the checkpoint of an epoch and its evaluation.
void Generation::make_up_for_an_evaluation() {
  if (run_.best.is_due) end_epoch(run_);
}

// `next`: where the run stands once all ranks have come to the end of this.
std::vector<std::uint64_t> Generation::end_epoch(RunState next) {
  std::vector<ReportEvent> saved;
  if (next.best.is_due) {
    next.evaluation = evaluate(saved);
    next.evaluation->epoch = next.cursor.epoch - 1;
    next.best = after_evaluation(next.best, *next.evaluation);
    add_evaluation(next);
  }
  end_saves(next, saved);
  std::vector<std::uint64_t> votes = gather_votes(saved);

  context_.membership.begin_apply();
  run_ = std::move(next);
  run_.settled.insert(run_.settled.end(), saved.begin(), saved.end());
  const std::vector<ReportEvent> findings = findings_of_epoch();
  run_.settled.insert(run_.settled.end(), findings.begin(), findings.end());
  context_.membership.end_apply(training_position_of(run_));
  tell(findings);
  mark_ = Clock::now();
  return votes;
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
                           .top_k_accuracy = top_k_accuracy_of(context_, m, count),
                           .time = run_.epoch_time};
  run_.settled.emplace_back(report);
  tell({report});
}

// Rank 0 saves; the state is already that with which the next epoch begins.
void Generation::save_next_epoch(const RunState& next) {
  if (!speaks()) keep_next_epoch(next);
  save_together([&](const Saver::SignOfLife& alive) {
    if (speaks() && !context_.saver.has_taken(next.cursor)) save(next, alive);
  });
}

// The end of the last epoch is not left before it is saved.
void Generation::keep_next_epoch(const RunState& next) {
  if (may_be_next_rank_zero(comm_.rank(), hosts_) && !is_over(next, context_.options)) {
    context_.saver.keep(next, number_);
  } else {
    context_.saver.drop_kept();
  }
}

void Generation::add_evaluation(const RunState& next) {
  if (speaks()) {
    context_.saver.add_evaluation(next);
  } else {
    context_.saver.add_evaluation_to_kept(next);
  }
}

// The last epoch is not over before its weights are written.
void Generation::end_saves(const RunState& next, std::vector<ReportEvent>& saved) {
  if (is_over(next, context_.options)) {
    context_.saver.drop_kept();
    save_together([&](const Saver::SignOfLife& alive) {
      if (speaks()) context_.saver.finish(context_.options.save_patience, alive);
    });
  }
  tell_saves(saved);
}

// Adds to `saved` what it tells.
void Generation::tell_saves(std::vector<ReportEvent>& saved) {
  if (!speaks()) return;
  const std::vector<ReportEvent> news = context_.saver.news();
  tell(news);
  saved.insert(saved.end(), news.begin(), news.end());
}

EvaluationReport Generation::evaluate(std::vector<ReportEvent>& saved) {
  context_.membership.progress(Phase::evaluating);
  const int top_k = context_.options.top_k;
  EvaluationReport report;
  by_average(context_.executable, [&] {
    Evaluation evaluation(
        {context_.graph, context_.executable, nn::image_views(context_.options.test_views), {}, context_.grouped},
        *context_.validation, context_.options.evaluation_block, comm_);
    work_together(Phase::evaluating, [&](const Saver::SignOfLife& alive) {
      evaluation.compute([&] {
        alive();
        tell_saves(saved);
      });
    });
    report = evaluation.finish();
  });
  report.top_k = top_k;
  if (top_k == 0) report.top_k_accuracy = kNotAskedFor;
  return report;
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
